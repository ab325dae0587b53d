"""Requests as things: their names, what became of them, and an end to them."""

import json
import re
import threading

import pytest

from conftest import idle

KEY = "a-key-of-my-own-00"
LONG = {"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True}


def explain(server, name, key=KEY):
    return server.request("GET", f"/v1/requests/{name}/explain", headers={"X-Request-Key": key})


def wait_until_finished(server, name, key=KEY):
    """A request is among the finished ones a little after the last byte of its answer."""
    server.wait_until(lambda _: explain(server, name, key).json.get("state") == "finished", f"{name} among the finished")


def test_every_answer_carries_a_request_id(server):
    answers = {
        "whole": server.post({"prompt": "a", "max_tokens": 1}),
        "stream": server.post({"prompt": "a", "max_tokens": 1, "stream": True}),
        "refused": server.post({"prompt": "a", "max_tokens": -1}),
        "refused stream": server.post({"prompt": "a", "max_tokens": -1, "stream": True}),
        "no JSON": server.post("{"),
        "no such path": server.get("/nowhere"),
        "wrong method": server.get("/v1/completions"),
        "models": server.get("/v1/models"),
        "probe": server.get("/health"),
    }
    for what, answer in answers.items():
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"]), what
    with server.socket() as raw:
        raw.sendall(b"NONSENSE\r\n\r\n")
        assert re.search(rb"\r\nX-Request-Id: [0-9a-f]{32}\r\n", raw.recv(65536))


@pytest.mark.parametrize("given, taken", [("a", True), ("A-z_0.9:", True), ("x" * 128, True), ("x" * 129, False),
                                          ("a b", False), ("a/b", False), ("ä".encode().decode("latin-1"), False)])
def test_a_request_id_is_taken_where_it_is_short_and_plain(server, given, taken):
    for body in ({"prompt": "a", "max_tokens": 1}, {"prompt": "a", "max_tokens": -1}):
        assert (server.post(body, {"X-Request-Id": given}).headers["x-request-id"] == given) == taken


def test_an_answer_reports_where_its_time_went(server):
    answer = server.complete(list(range(300, 340)), max_tokens=12, ignore_eos=True)
    told, usage = answer["timings"], answer["usage"]
    assert told["prompt_n"] + told["cache_n"] == usage["prompt_tokens"] == 40
    assert told["predicted_n"] == usage["completion_tokens"] == 12
    assert told["queued_ms"] > 0 and told["prompt_ms"] > 0 and told["predicted_ms"] > 0
    assert told["prompt_per_second"] == pytest.approx(told["prompt_n"] / told["prompt_ms"] * 1000, rel=1e-2)
    assert told["predicted_per_second"] == pytest.approx(11 / told["predicted_ms"] * 1000, rel=1e-2)


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}])
def test_a_stream_reports_it_in_its_last_event_alone(server, options):
    with server.stream("Once upon a time", max_tokens=8, n=2, ignore_eos=True, **options) as events:
        events = list(events)
    assert events.pop() == "[DONE]"
    events = [json.loads(event) for event in events]
    assert [("timings" in event) for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1]["timings"]["predicted_n"] == 16
    assert bool(events[-1]["choices"]) == (not options)


def test_what_became_of_a_request_can_be_asked_with_its_key(server):
    prompt = list(range(400, 700))
    answer = server.post({"prompt": prompt, "max_tokens": 20, "n": 2, "ignore_eos": True, "seed": 1})
    key, name = answer.headers["x-request-key"], answer.json["id"]
    assert re.fullmatch("[0-9a-f]{32}", key)
    wait_until_finished(server, name, key)
    told = explain(server, name, key).json
    assert told["id"] == answer.headers["x-request-id"] == name.removeprefix("cmpl-")
    assert [one["end"] for one in told["sequences"]] == ["length", "length"]
    first = told["sequences"][0]
    assert first["prompt_tokens"] == 300 and first["generated_tokens"] == 20
    assert first["cached_tokens"] + sum(chunk["rows"] for chunk in first["prefill"]) == 300
    times = [first["queued_ms"], *first["token_ms"], first["ended_ms"]]
    assert times == sorted(times) and len(first["token_ms"]) == 20
    assert first["longest_gap"]["ms"] > 0
    timings = answer.json["timings"]
    assert timings["queued_ms"] == min(one["queued_ms"] for one in told["sequences"])
    by_bearer = server.request("GET", f"/v1/requests/{name}/explain", headers={"Authorization": f"Bearer {key}"})
    assert by_bearer.json == told


def test_without_the_key_there_is_no_such_request(server):
    answer = server.post({"prompt": "a", "max_tokens": 1}, {"X-Request-Id": "somebodys", "X-Request-Key": KEY})
    assert answer.headers["x-request-key"] == KEY
    absent = explain(server, "nobodys")
    assert absent.status == 404
    for key in ("", "a-key-of-my-own-01", KEY[:-1]):
        wrong = explain(server, "somebodys", key)
        assert (wrong.status, wrong.text) == (404, absent.text)
    wait_until_finished(server, "somebodys")
    assert server.request("DELETE", "/v1/requests/somebodys", headers={"X-Request-Key": KEY}).status == 404


def test_a_key_that_anybody_could_guess_is_refused(server):
    for key, status in (("x" * 15, 400), ("x" * 16, 200), ("x" * 128, 200), ("x" * 129, 400), ("x y" * 10, 400)):
        answer = server.post({"prompt": "a", "max_tokens": 1}, {"X-Request-Key": key})
        assert answer.status == status, key
        if status == 400:
            assert answer.error["param"] == "X-Request-Key"


def test_a_running_stream_is_cancelled_by_name(paced):
    server = paced
    before = server.wait_until(idle, "an idle engine")
    with server.stream(n=2, **LONG, stream_options={"include_usage": True}, headers={"X-Request-Id": "mine", "X-Request-Key": KEY}) as events:
        pieces = [json.loads(next(events)) for _ in range(4)]
        told = explain(server, "mine").json
        assert told["state"] == "running" and told["sequences"][0]["state"] == "running"
        for name, key in (("mine", "a-key-of-my-own-01"), ("yours", KEY)):
            assert server.request("DELETE", f"/v1/requests/{name}", headers={"X-Request-Key": key}).status == 404
        cancelled = server.request("DELETE", "/v1/requests/cmpl-mine", headers={"X-Request-Key": KEY})
        assert cancelled.status == 200 and cancelled.json == {"id": "mine", "cancelled": True}
        rest = list(events)
    assert rest.pop() == "[DONE]"
    pieces += [json.loads(event) for event in rest]
    ends = [choice["finish_reason"] for piece in pieces for choice in piece["choices"] if choice["finish_reason"]]
    assert ends == ["abort", "abort"]
    assert pieces[-1]["usage"]["completion_tokens"] < 1000
    after = server.wait_until(idle, "the end of its sequences, and no block of theirs held")
    aborted = 'vllm:request_success_total{finished_reason="abort"}'
    assert after[aborted] - before.get(aborted, 0) == 2
    wait_until_finished(server, "mine")
    assert [one["end"] for one in explain(server, "mine").json["sequences"]] == ["abort", "abort"]


def test_a_whole_answer_that_is_cancelled_returns_what_it_had(paced):
    server, answers = paced, []
    headers = {"X-Request-Id": "whole", "X-Request-Key": KEY}
    asking = threading.Thread(target=lambda: answers.append(server.post({**LONG, "max_tokens": 480}, headers)))
    asking.start()
    server.wait_until(lambda m: explain(server, "whole").status == 200
                      and explain(server, "whole").json["sequences"][0]["generated_tokens"] > 2, "its first tokens")
    assert server.request("DELETE", "/v1/requests/whole", headers={"X-Request-Key": KEY}).status == 200
    asking.join()
    (answer,) = answers
    assert answer.status == 200
    (choice,) = answer.json["choices"]
    assert choice["finish_reason"] == "abort" and choice["text"]
    assert 2 < answer.json["usage"]["completion_tokens"] < 480


def test_only_so_many_finished_requests_are_remembered(start_server):
    for most in (0, 2):
        server = start_server("--max-explained-requests", most)
        for i in range(3):
            server.post({"prompt": "a", "max_tokens": 1}, {"X-Request-Id": f"r{i}", "X-Request-Key": KEY})
        expected = [404] * 3 if most == 0 else [404, 200, 200]
        server.wait_until(lambda _: [explain(server, f"r{i}").status for i in range(3)] == expected, f"answers of status {expected}")
