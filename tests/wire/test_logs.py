"""What the server's log says: one line an event, in either form, whatever clients say of themselves."""

import contextlib
import hashlib
import http.client
import json
import os
import pty
import re
import subprocess
import time

import pytest

from conftest import BINARY, PATIENCE_S, Server

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLED = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-00"}
SECRET = "Zanzibarian"
TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (info|warning|error) [a-z_]+ ")
WORD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)')


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
    found = []
    for line in lines:
        if " info request " in line:
            words = dict(WORD.findall(line.split(" request ", 1)[1]))
            found.append({key: json.loads(value) if value.startswith('"') else value for key, value in words.items()})
    return found


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
    assert "trace_id" not in told["refused"] and str(told["refused"]["status"]) == "400"
    assert str(told["traced"]["completion_tokens"]) == "3"


def test_a_line_says_why_a_request_was_refused(logged):
    told = {one["id"]: one for one in requests_of(*logged)}["refused"]
    assert told["error"] == "invalid_request_error" and told["param"] == "max_tokens" and "max_tokens" in told["message"]


def test_no_field_is_empty(logged):
    assert all(str(value) != "" for one in requests_of(*logged) for value in one.values())


def test_no_client_forges_a_line_or_a_key(logged):
    kind, lines = logged
    told = requests_of(kind, lines)
    assert len(told) == 14, told
    keys = {"time", "level", "event", "id", "method", "path", "status", "error", "param", "message", "model", "stream", "prompt_tokens",
            "cached_tokens", "completion_tokens", "finish_reason", "queued_ms", "first_ms", "ms", "client", "trace_id"}
    for one in told:
        assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", one["id"]) and "forged" not in one["id"]
        assert set(one) >= {"id", "status", "client"} and set(one) <= keys
    assert '/"}{"id":"forged"' in {one.get("path") for one in told}


def test_a_line_of_an_answer_says_what_it_took_and_whom_it_was_for(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"name=alice hash=sha256:{hashlib.sha256(b'secret').hexdigest()}\n")
    path.chmod(0o600)
    server = Server("--api-key-file", path, "--log-format", "json")
    asked = {"prompt": "Once upon a time there was a cat that sat on the mat", "max_tokens": 4, "ignore_eos": True, "n": 2, "seed": 1}
    for name in ("first", "again"):
        assert server.post({**asked, "stream": name == "again"}, {"X-Request-Id": name, "Authorization": "Bearer secret"}).status == 200
    assert server.request("GET", "/v1/models", headers={"X-Request-Id": "models"}).status == 401
    assert server.stop() == 0
    told = {one["id"]: one for one in requests_of("json", server.lines)}
    first, again = told["first"], told["again"]
    assert (first["key"], first["client"], first["finish_reason"], first["stream"]) == ("alice", "127.0.0.1", "length", False)
    assert (first["completion_tokens"], first["cached_tokens"]) == (8, 0) and first["prompt_tokens"] > 0
    assert again["stream"] is True and again["cached_tokens"] >= 0 and first["model"] == again["model"]
    assert 0 <= first["queued_ms"] <= first["first_ms"] <= first["ms"]
    assert told["models"]["error"] == "authentication_error" or told["models"]["error"] == "invalid_api_key"
    assert "key" not in told["models"] and told["models"]["client"] == "127.0.0.1"


@pytest.mark.parametrize("level, ids", [("off", set()), ("errors", {"refused"}), ("all", {"good", "refused"}), ("content", {"good", "refused"})])
def test_log_requests_says_which_requests_are_logged(level, ids):
    server = Server("--log-requests", level, "--log-format", "json")
    server.post(json.dumps({"prompt": SECRET, "max_tokens": 1}) + " " * 5000, {"X-Request-Id": "good"})
    server.post({"prompt": SECRET, "max_tokens": -1}, {"X-Request-Id": "refused"})
    assert server.stop() == 0
    told = {one["id"]: one for one in requests_of("json", server.lines)}
    assert set(told) == ids
    assert any(SECRET in line for line in server.lines) == (level == "content")
    if level == "content":
        assert json.loads(told["refused"]["content"]) == {"prompt": SECRET, "max_tokens": -1}
        assert len(told["good"]["content"]) == 4096
        assert any('"prompts_are_logged"' in line for line in server.lines)


def test_a_server_at_work_says_how_fast_it_is_and_an_idle_one_says_nothing():
    server = Server("--log-stats-interval", "100ms", "--log-format", "json", "--min-step-time", "5ms")
    server.post({"prompt": "Once upon a time", "max_tokens": 100, "ignore_eos": True})
    server.wait_for_log('"throughput"')
    assert server.stop() == 0
    told = [event for event in map(json.loads, server.lines) if event["event"] == "throughput"]
    assert sum(one["completion_tokens_per_s"] for one in told) > 0
    quiet = Server("--log-stats-interval", "20ms", "--log-format", "json")
    time.sleep(0.3)
    assert quiet.stop() == 0
    assert not any('"throughput"' in line for line in quiet.lines)


def properties(schema):
    """Names of all properties in a document."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


def test_what_is_wrong_with_any_field_is_logged_without_its_value(start_server):
    """Error messages name fields, those of a schema too, and quote no value of a client."""
    server = start_server()
    names = set(properties(server.request("GET", "/openapi.json").json)) - {"prompt", "messages", "model"}
    assert len(names) > 40
    for path, body in (("/v1/completions", {"prompt": SECRET}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}]})):
        for name in sorted(names):
            for value in (SECRET, [SECRET], {"type": SECRET}):
                server.request("POST", path, json.dumps({**body, "max_tokens": 1, name: value}), {"Content-Type": "application/json"})
    assert SECRET not in server.log


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


@pytest.mark.parametrize("no_color, coloured", [(None, True), ("", True), ("1", False)])
def test_levels_are_coloured_on_a_terminal_unless_no_color_is_set(no_color, coloured):
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    if no_color is not None:
        environment["NO_COLOR"] = no_color
    leader, follower = pty.openpty()
    process = subprocess.Popen([BINARY, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=follower, text=True, env=environment)
    os.close(follower)
    try:
        assert any("ready in" in line for line in process.stdout)
        process.terminate()
        seen = b""
        with contextlib.suppress(OSError):  # that is how a terminal ends
            while piece := os.read(leader, 65536):
                seen += piece
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(leader)
    assert b"stopped" in seen and (b"\x1b[" in seen) == coloured
