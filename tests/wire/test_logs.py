"""What the server's log says: one line an event, in either form, whatever clients say of themselves."""

import http.client
import json
import re
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, Server

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLED = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-00"}
SECRET = "Zanzibarian"
TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} (info|warning|error) [a-z_]+ ")


@pytest.fixture(scope="module", params=["text", "json"])
def logged(request):
    """A server with each kind of log, and what it has written once it has ended."""
    server = Server("--log-format", request.param)
    ask_all(server)
    assert server.stop() == 0
    return request.param, server.lines


def ask_all(server):
    server.post({"prompt": SECRET, "max_tokens": 3}, {"X-Request-Id": "traced", **CALLED})
    server.post({"prompt": "a", "max_tokens": -1}, {"X-Request-Id": "refused"})
    server.post({"prompt": f"{SECRET}\n2026-01-01T00:00:00.000 info request id=forged", "max_tokens": 1}, {"X-Request-Id": "prompt"})
    for hostile in ("a\tinfo request id=forged", 'a","id":"forged', "a id=forged", "x" * 5000, "\x85forged", "forged\xe2\x80\xa8"):
        server.request("GET", "/v1/models", headers={"X-Request-Id": hostile.encode("latin-1")})
    server.request("GET", "/%0a%0dinfo%20request%20id=forged", headers={"X-Request-Id": "path"})
    for request in (b"GET /\"}{\"id\":\"forged\" HTTP/1.1\r\nHost: a\r\nX-Request-Id: raw\r\nConnection: close\r\n\r\n",
                    b"GET /a\x0binfo HTTP/1.1\r\nHost: a\r\n\r\n", b"B\"REW /\\ HTTP/1.1\r\nHost: a\r\n\r\n", b"\xff\xfe\r\n\r\n"):
        with server.socket() as raw:
            raw.sendall(request)
            while raw.recv(65536):
                pass


def requests_of(kind, lines):
    if kind == "json":
        return [event for event in map(json.loads, lines) if event["event"] == "request"]
    return [dict(pair.split("=", 1) for pair in line.split(" request ", 1)[1].split()) for line in lines if " info request " in line]


def test_every_line_is_of_the_form_that_was_asked_for(logged):
    kind, lines = logged
    if kind == "json":
        for line in lines:
            event = json.loads(line)
            assert list(event)[:3] == ["time", "level", "event"], line
        events = [json.loads(line)["event"] for line in lines]
        assert {"start", "request", "drain"} <= set(events) and events[-1] == "stopped"
    else:
        begun = next(i for i, line in enumerate(lines) if line.startswith("ready in"))
        assert all(TEXT_LINE.match(line) for line in lines[begun + 2:]), lines


def test_requests_carry_their_id_and_their_trace(logged):
    told = {one["id"]: one for one in requests_of(*logged)}
    assert told["traced"]["trace_id"] == TRACE and str(told["traced"]["status"]) == "200"
    assert told["refused"]["trace_id"] == "" and str(told["refused"]["status"]) == "400"
    assert str(told["traced"]["completion_tokens"]) == "3"


def test_no_client_forges_a_line_or_a_key(logged):
    kind, lines = logged
    told = requests_of(kind, lines)
    assert len(told) == 14, told
    for one in told:
        assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", one["id"]) and "forged" not in one["id"]
        assert set(one) >= {"id", "method", "path", "status", "prompt_tokens", "completion_tokens", "first_ms", "ms", "trace_id", "labels"}
    if kind == "json":
        keys = {"time", "level", "event", "id", "method", "path", "status", "prompt_tokens", "completion_tokens", "first_ms", "ms", "trace_id", "labels"}
        assert all(set(one) == keys for one in told)
        assert '/"}{"id":"forged"' in {one["path"] for one in told}


def test_prompts_and_keys_are_never_logged(logged):
    _, lines = logged
    assert not any(SECRET in line for line in lines)


def test_why_a_start_fails_is_an_event_too(tmp_path):
    done = subprocess.run([BINARY, "serve", tmp_path, "--log-format", "json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and done.stdout == ""
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert events[-1]["event"] == "cannot_go_on" and events[-1]["level"] == "error" and str(tmp_path) in events[-1]["message"]


def test_a_reader_of_the_log_that_is_stuck_holds_up_no_request():
    """Far more is logged than a pipe holds before anybody reads it."""
    process = subprocess.Popen([BINARY, "serve", "--port", "0", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = next(match[0] for line in process.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
        logged = 0
        while logged < 200_000:
            connection.request("GET", "/v1/models/" + "m" * 150)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 404
            logged += 300
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        assert re.search(r"^quire:log_lines_dropped_total\{[^}]*\} 0$", text, re.M), "a mebibyte may wait"
        process.terminate()
        lines = process.stderr.read().splitlines()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
    requests = [line for line in lines if " info request " in line]
    assert len(requests) == (logged // 300) and "stopped" in lines[-1], "and then all of it is there"
