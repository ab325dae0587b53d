"""Operators list, explain and stop the requests of all clients."""

import json
import re
import threading
import time

import pytest

from conftest import PACED, PATIENCE_S, Server
from test_admin_port import ask
from test_api_keys import KEYS, bearer, lines

LONG = {"max_tokens": 500, "ignore_eos": True}
PROMPT = "Once upon a time"
FIELDS = {"object", "id", "state", "api_key", "model", "path", "stream", "age_ms", "queued_ms", "first_token_ms", "prompt_tokens",
          "cached_tokens", "generated_tokens", "sequences"}


def listed(server, headers=()):
    answer = server.request("GET", "/admin/requests", headers=dict(headers))
    assert answer.status == 200, answer.text
    return answer.json


def named(server, name, headers=()):
    found = [one for one in listed(server, headers)["data"] if one["id"] == name]
    return found[0] if found else None


def wait_until_listed(server, condition, what, headers=()):
    end = time.monotonic() + PATIENCE_S
    while not condition(listed(server, headers)["data"]):
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_an_idle_server_lists_nothing(server):
    wait_until_listed(server, lambda data: not data, "an empty list")
    assert listed(server) == {"object": "list", "data": [], "left_out": 0}


def test_a_stream_is_listed_while_it_runs_with_the_counts_of_its_answer(paced):
    with paced.stream(PROMPT, {"X-Request-Id": "seen"}, n=2, stream_options={"include_usage": True}, max_tokens=40,
                      ignore_eos=True) as events:
        next(events)
        first = named(paced, "seen")
        events = [json.loads(event) for event in events if event != "[DONE]"]
    usage = events[-1]["usage"]
    assert set(first) == FIELDS
    assert first["state"] == "running" and first["stream"] is True and first["sequences"] == 2
    assert first["path"] == "/v1/completions" and first["api_key"] is None
    assert first["model"] == events[-1]["model"]
    assert first["prompt_tokens"] == usage["prompt_tokens"]
    assert 0 < first["generated_tokens"] < usage["completion_tokens"] == 80
    assert 0 < first["queued_ms"] <= first["first_token_ms"] <= first["age_ms"]
    wait_until_listed(paced, lambda data: all(one["id"] != "seen" for one in data), "a list without it")


def test_the_list_names_no_prompt_and_no_request_key(paced):
    key = "a-key-of-my-own-00"
    with paced.stream("a zebra of the savannah", {"X-Request-Key": key}, **LONG) as events:
        next(events)
        text = json.dumps(listed(paced))
    assert key not in text and "zebra" not in text


def test_the_oldest_comes_first_and_those_that_wait_are_queued(start_server):
    server = start_server(*PACED, "--max-num-seqs", 1)
    with server.stream(PROMPT, {"X-Request-Id": "zz-first"}, **LONG) as events:
        next(events)
        with server.socket() as raw:
            body = json.dumps({"prompt": PROMPT, "max_tokens": 3})
            raw.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nX-Request-Id: aa-second\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            wait_until_listed(server, lambda data: len(data) == 2, "two requests")
            first, second = listed(server)["data"]
    assert [first["id"], second["id"]] == ["zz-first", "aa-second"]
    assert [first["state"], second["state"]] == ["running", "queued"]
    assert second["queued_ms"] == second["age_ms"] > 0 and second["first_token_ms"] is None
    assert second["stream"] is False and second["prompt_tokens"] == first["prompt_tokens"] > 0 == second["generated_tokens"]
    assert server.stop() == 0


def test_an_operator_stops_a_request_without_its_key(paced):
    answers = []
    asking = threading.Thread(target=lambda: answers.append(
        paced.post({"prompt": PROMPT, "max_tokens": 480, "ignore_eos": True}, {"X-Request-Id": "endless"})))
    asking.start()
    wait_until_listed(paced, lambda data: any(one["id"] == "endless" and one["generated_tokens"] > 2 for one in data), "its first tokens")
    explained = paced.get("/admin/requests/endless/explain").json
    assert explained["object"] == "request_timeline" and explained["state"] == "running"
    assert paced.request("DELETE", "/v1/requests/endless").status == 404, "other clients do not"
    stopped = paced.request("DELETE", "/admin/requests/cmpl-endless")
    assert stopped.status == 200 and stopped.json == {"id": "endless", "cancelled": True}
    asking.join()
    assert answers[0].json["choices"][0]["finish_reason"] == "abort"
    assert answers[0].json["usage"]["completion_tokens"] < 480
    wait_until_listed(paced, lambda data: all(one["id"] != "endless" for one in data), "a list without it")
    missing = paced.request("DELETE", "/admin/requests/endless")
    assert missing.status == 404 and "GET /admin/requests" in missing.error["message"]
    assert paced.get("/admin/requests/endless/explain").json["sequences"][0]["end"] == "abort"


def test_a_web_page_of_another_origin_sees_and_stops_nothing(paced):
    page = {"Origin": "http://evil.example"}
    with paced.stream(PROMPT, {"X-Request-Id": "safe"}, **LONG) as events:
        next(events)
        for method, path in (("GET", "/admin/requests"), ("GET", "/admin/requests/safe/explain"), ("DELETE", "/admin/requests/safe")):
            refused = paced.request(method, path, headers=page)
            assert refused.status == 403 and "safe" not in refused.text, path
        assert named(paced, "safe")["state"] == "running"


def test_only_the_admin_port_has_them_if_there_is_one(start_server):
    server = start_server("--admin-port", 0, *PACED)
    with server.stream(PROMPT, {"X-Request-Id": "seen"}, **LONG) as events:
        next(events)
        refused = server.get("/admin/requests")
        assert refused.status == 404 and "admin port" in refused.error["message"]
        assert server.request("DELETE", "/admin/requests/seen").status == 404
        admin = server.metrics_port
        assert [one["id"] for one in ask(admin, "GET", "/admin/requests").json["data"]] == ["seen"]
        assert ask(admin, "DELETE", "/admin/requests/seen").json == {"id": "seen", "cancelled": True}
        events = list(events)
    assert json.loads(events[-2])["choices"][0]["finish_reason"] == "abort"
    assert server.stop() == 0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(lines(KEYS))
    path.chmod(0o600)
    running = Server("--api-key-file", path, *PACED)
    yield running
    assert running.stop() == 0, running.log[-4000:]


@pytest.mark.parametrize("who", ["alice", "prometheus"])
def test_only_administrators_may_ask(guarded, who):
    with guarded.stream(PROMPT, {"X-Request-Id": "alices", **bearer("alice")}, **LONG) as events:
        next(events)
        for method, path in (("GET", "/admin/requests"), ("GET", "/admin/requests/alices/explain"), ("DELETE", "/admin/requests/alices")):
            assert guarded.request(method, path).status == 401, path
            refused = guarded.request(method, path, headers=bearer(who))
            assert refused.status == 403 and refused.error["code"] == "insufficient_permissions", path
        assert named(guarded, "alices", bearer("root").items())["api_key"] == "alice"


def test_an_administrator_stops_the_request_of_another_key(guarded):
    with guarded.stream(PROMPT, {"X-Request-Id": "bobs", **bearer("bob")}, **LONG) as events:
        next(events)
        assert guarded.request("GET", "/admin/requests/bobs/explain", headers=bearer("root")).json["id"] == "bobs"
        assert guarded.request("DELETE", "/admin/requests/bobs", headers=bearer("root")).status == 200
        ends = re.findall(r'"finish_reason":"(\w+)"', "".join(events))
    assert ends == ["abort"]
