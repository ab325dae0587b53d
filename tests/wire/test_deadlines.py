"""Deadlines, what gateways' headers hope for, and what a busy server says at the door: over HTTP, with the engine behind it."""

import contextlib
import json
import re
import threading

import pytest
from conftest import PACED, Server, idle

LONG = {"ignore_eos": True, "max_tokens": 480}


def error_of(answer):
    return answer.json["error"]


def outcomes(server):
    """{(slo, outcome): sequences}"""
    text = server.request("GET", "/metrics", port=server.metrics_port).text
    found = re.findall(r'^quire:slo_sequences_total\{(.*)\} (\S+)$', text, re.MULTILINE)
    return {(re.search('slo="([^"]*)"', labels)[1], re.search('outcome="([^"]*)"', labels)[1]): float(value)
            for labels, value in found}


@pytest.fixture(scope="module")
def narrow():
    """One place: whoever comes second waits. It has measured how long things take."""
    running = Server("--max-num-seqs", "1", *PACED)
    for _ in range(3):
        running.complete("Once upon a time", **{**LONG, "max_tokens": 10})
    yield running
    assert running.stop() == 0, running.log[-4000:]


@contextlib.contextmanager
def held(server, **fields):
    """The server's place is taken by an answer that takes seconds."""
    server.wait_until(idle, "an idle engine")
    with server.stream("Once upon a time", **{**LONG, **fields}) as events:
        next(events)
        yield


def test_a_deadline_in_the_body_or_the_head_of_an_idle_server_is_kept(server):
    before = outcomes(server)["deadline", "kept"]
    whole = server.complete("Once upon a time", max_tokens=4)
    assert server.complete("Once upon a time", max_tokens=4, deadline_ms=60_000, seed=1, temperature=0)["choices"]
    answer = server.post({"prompt": "Once upon a time", "max_tokens": 4}, {"X-Request-Timeout": "60.5"})
    assert answer.status == 200, answer.text
    assert whole["usage"]["completion_tokens"] == answer.json["usage"]["completion_tokens"]
    assert outcomes(server)["deadline", "kept"] == before + 2


@pytest.mark.parametrize("name, good, bad", [
    ("X-Request-Timeout", ["0.001", "1", "3599.999", "3600"], ["0", "0.0009", "3600.001", "-1", "1e3", "nan", "1 s", "", "9" * 400]),
    ("x-slo-ttft-ms", ["0.001", "250", "3600000"], ["0", "3600000.001", "inf", "fast", "1.2.3"]),
    ("x-slo-tpot-ms", ["0.001", "12.5", "3600000"], ["0", "3600001", "+1"]),
    ("x-gateway-inference-objective", ["standard", "7", "a" * 128], ["a" * 129]),
    ("x-gateway-inference-fairness-id", ["team", "a" * 128], ["a" * 129]),
    ("x-session-id", ["s", "a" * 128], ["a" * 129]),
])
def test_a_header_has_its_range_and_is_named_where_it_is_at_fault(server, name, good, bad):
    for path, body in (("/v1/completions", {"prompt": "a", "max_tokens": 1}),
                       ("/v1/embeddings", {"input": "a"})):
        headers = {"Content-Type": "application/json"}
        for value in good:
            answer = server.request("POST", path, json.dumps(body), {**headers, name: value})
            assert answer.status in (200, 429, 504), answer.text
            assert answer.status != 400
        for value in bad:
            answer = server.request("POST", path, json.dumps(body), {**headers, name: value})
            assert answer.status == 400, (value[:20], answer.text)
            assert error_of(answer)["param"] == name


def test_a_header_that_comes_twice_is_refused(server):
    with server.socket() as raw:
        body = b'{"prompt":"a","max_tokens":1}'
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Request-Timeout: 5\r\nx-request-timeout: 5\r\n"
                    b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        text = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert text.startswith("HTTP/1.1 400") and "X-Request-Timeout" in text


def test_an_answer_that_would_be_late_is_refused_at_once_with_when_to_try_again(narrow):
    steps = narrow.wait_until(idle, "an idle engine")["quire:engine_steps_total"]
    before = outcomes(narrow)["deadline", "refused"]
    answer = narrow.post({"prompt": "Once upon a time", **LONG, "deadline_ms": 4000})  # it takes nine seconds and a half
    assert answer.status == 429, answer.text
    assert error_of(answer)["code"] == "deadline_cannot_be_met" and error_of(answer)["param"] == "deadline_ms"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert narrow.metrics()["quire:engine_steps_total"] == steps, "the engine has not heard of it"
    assert outcomes(narrow)["deadline", "refused"] == before + 1


def test_a_request_that_waits_past_its_deadline_gets_504_and_leaves_the_queue(start_server):
    server = start_server("--max-num-seqs", "1", *PACED)  # no sequence has ended there, so it expects no wait and refuses nobody
    with held(server):
        answer = server.post({"prompt": "b", "max_tokens": 1, "deadline_ms": 500})
        assert answer.status == 504, answer.text
        assert error_of(answer)["type"] == "timeout_error"
        server.wait_until(lambda m: m["vllm:num_requests_waiting"] == 0, "an empty line")
    assert outcomes(server)["deadline", "missed"] == 1


def test_a_request_that_runs_past_its_deadline_ends_with_the_beginning_of_its_answer(start_server):
    server = start_server()
    whole = server.text("Once upon a time", temperature=0, **{**LONG, "max_tokens": 400})
    # 400 tokens take eight seconds at least. On a busy machine a deadline may pass before the first token, which is another answer.
    for deadline_ms in (500, 1000, 2000, 4000, 7000):
        server = start_server(*PACED)  # has measured nothing, so it refuses nobody
        answer = server.post({"prompt": "Once upon a time", "temperature": 0, **LONG, "max_tokens": 400, "deadline_ms": deadline_ms, "stream": True})
        assert answer.status in (200, 504), answer.text
        told = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
        errors = [json.loads(event)["error"] for event in told if '"error"' in event]
        if answer.status == 200 and errors and '"choices"' in told[0]:
            break
    else:
        pytest.fail(f"no deadline fell between the first token and the last: {answer.text[-500:]}")
    assert [error["code"] for error in errors] == [504]
    text = "".join(choice["text"] for event in told if event != "[DONE]" and '"choices"' in event
                   for choice in json.loads(event)["choices"])
    assert whole.startswith(text) and len(text) < len(whole)
    server.wait_until(lambda m: m["vllm:kv_cache_usage_perc"] == 0, "every block is back")


def test_a_sheddable_request_never_waits(narrow):
    headers = {"x-gateway-inference-objective": "sheddable"}
    narrow.wait_until(idle, "an idle engine")
    assert narrow.post({"prompt": "a", "max_tokens": 1}, headers).status == 200
    with held(narrow):
        answer = narrow.post({"prompt": "a", "max_tokens": 1}, headers)
        assert answer.status == 429 and error_of(answer)["code"] == "shed", answer.text
        assert int(answer.headers["retry-after"]) >= 1


def test_what_is_hoped_for_is_counted_and_sheds_who_is_sheddable(narrow):
    hoped = {"x-slo-ttft-ms": "0.001", "x-slo-tpot-ms": "0.001"}
    narrow.wait_until(idle, "an idle engine")
    before = outcomes(narrow)
    assert narrow.post({"prompt": "a", "max_tokens": 8, "ignore_eos": True}, hoped).status == 200
    after = outcomes(narrow)
    assert after["ttft", "missed"] == before["ttft", "missed"] + 1
    assert after["tpot", "missed"] == before["tpot", "missed"] + 1
    shed = narrow.post({"prompt": "a", "max_tokens": 8}, {**hoped, "x-gateway-inference-objective": "-1"})
    assert shed.status == 429 and error_of(shed)["param"] == "x-slo-ttft-ms", shed.text
    assert outcomes(narrow)["ttft", "refused"] == before["ttft", "refused"] + 1
    kept = narrow.post({"prompt": "a", "max_tokens": 8}, {"x-slo-ttft-ms": "60000", "x-slo-tpot-ms": "60000"})
    assert kept.status == 200
    assert outcomes(narrow)["ttft", "kept"] == before["ttft", "kept"] + 1


def test_labels_stand_in_the_log_line_of_their_request(server):
    server.post({"prompt": "a", "max_tokens": 1},
                {"X-Request-Id": "labelled-1", "x-session-id": "session-7", "x-gateway-inference-objective": "gold",
                 "x-gateway-inference-fairness-id": "team-q"})
    server.wait_for_log("session_id=session-7")
    line = next(line for line in server.log.splitlines() if "labelled-1" in line)
    assert "objective=gold" in line and "fairness_id=team-q" in line


def test_nothing_of_this_changes_a_token(server):
    fields = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0.9, "seed": 5}
    plain = server.post(fields).json["choices"][0]["text"]
    for headers in ({"X-Request-Timeout": "3000"}, {"x-slo-ttft-ms": "1", "x-slo-tpot-ms": "1"},
                    {"x-gateway-inference-objective": "critical", "x-gateway-inference-fairness-id": "q"}):
        assert server.post(fields, headers).json["choices"][0]["text"] == plain


@pytest.mark.full
def test_under_fair_scheduling_one_who_floods_does_not_keep_another_waiting(start_server):
    server = start_server("--scheduling-policy", "fair", "--max-num-seqs", "2", *PACED)
    flood = {"prompt": "Once upon a time", "ignore_eos": True, "max_tokens": 15}
    threads = [threading.Thread(target=server.post, args=(flood, {"x-gateway-inference-fairness-id": "greedy"}))
               for _ in range(24)]
    for thread in threads:
        thread.start()
    server.wait_until(lambda m: m["vllm:num_requests_waiting"] >= 12, "a line")
    answer = server.post({**flood, "max_tokens": 4}, {"x-gateway-inference-fairness-id": "polite", "X-Request-Id": "polite"})
    for thread in threads:
        thread.join()
    assert answer.status == 200
    server.wait_until(idle, "an idle engine")
    assert server.stop() == 0
    ended = re.findall(r"\brequest id=(\S+) method=POST", server.log)  # in the order in which they were answered
    assert len(ended) == 25
    assert ended.index("polite") <= 24 - 6, "it went before most of those that had come before it"


def test_a_plain_api_key_alone_may_read_metrics(start_server):
    server = start_server("--api-key", "only-this-key")
    bearer = {"Authorization": "Bearer only-this-key"}
    assert server.request("GET", "/metrics").status == 401
    assert "vllm:num_requests_running" in server.request("GET", "/metrics", headers=bearer).text
    assert server.request("POST", "/admin/cache/save", "{}", bearer).status == 403
