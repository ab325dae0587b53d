"""Web pages of other origins may read the answers where the operator names them, and nowhere else."""

import json
import subprocess

import pytest

from conftest import BINARY, Server

PAGE, OTHER = "https://app.example.org", "https://elsewhere.example.org"
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
FIELDS = json.dumps({"prompt": "Once", "max_tokens": 2})
SHARING = ("access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers")


def shared(answer):
    return {name: answer.headers[name] for name in SHARING if name in answer.headers}


def preflight(server, origin=PAGE, path="/v1/completions", **asked):
    return server.request("OPTIONS", path, headers={"Origin": origin, **ASKED, **asked})


def complete(server, origin, **more):
    return server.request("POST", "/v1/completions", json.dumps({"prompt": "Once", "max_tokens": 2, **more}),
                          {"Origin": origin, "Content-Type": "application/json"})


@pytest.fixture(scope="module")
def open_to_one():
    running = Server("--allowed-origins", PAGE)
    yield running
    assert running.stop() == 0, running.log[-4000:]


def test_it_is_off_unless_origins_are_named(server):
    assert shared(complete(server, PAGE)) == {}
    assert preflight(server).status == 405


def test_a_named_origin_reads_answers_streams_and_refusals(open_to_one):
    for more in ({}, {"stream": True}, {"temperature": 9}):
        answer = complete(open_to_one, PAGE, **more)
        told = shared(answer)
        assert told["access-control-allow-origin"] == PAGE and answer.headers["vary"] == "Origin"
        assert {"X-Request-Id", "Retry-After"} <= set(told["access-control-expose-headers"].split(", "))
        assert "access-control-allow-credentials" not in told
    assert shared(open_to_one.request("GET", "/v1/models", headers={"Origin": PAGE}))["access-control-allow-origin"] == PAGE


def test_another_origin_reads_nothing(open_to_one):
    for origin in (OTHER, PAGE + ".evil.org", "http://app.example.org", PAGE + ":8443", "null", ""):
        assert shared(complete(open_to_one, origin)) == {}, origin
        assert preflight(open_to_one, origin).status in (403, 405) and shared(preflight(open_to_one, origin)) == {}, origin


def test_a_preflight_says_what_may_be_sent(open_to_one):
    answer = preflight(open_to_one)
    assert answer.status == 200 and answer.text == ""
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "*"
    assert answer.headers["access-control-allow-headers"] == ASKED["Access-Control-Request-Headers"], "* does not stand for Authorization"
    assert answer.headers["access-control-max-age"] == "600"


def test_orders_to_the_server_are_never_for_other_pages(open_to_one):
    refused = preflight(open_to_one, path="/admin/cache/clear")
    assert refused.status == 403 and shared(refused) == {}
    order = open_to_one.request("POST", "/admin/cache/clear", headers={"Origin": PAGE})
    assert order.status == 403 and shared(order) == {}


def test_any_origin_with_credentials_gets_its_own_name(start_server):
    server = start_server("--allowed-origins", '["*"]', "--allow-credentials", "--allowed-methods", "POST,GET",
                          "--allowed-headers", "content-type,authorization")
    answer = preflight(server, OTHER)
    assert answer.headers["access-control-allow-origin"] == OTHER and answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-allow-methods"] == "POST, GET"
    assert preflight(server, OTHER, **{"Access-Control-Request-Method": "DELETE"}).status == 403
    assert preflight(server, OTHER, **{"Access-Control-Request-Headers": "x-other"}).status == 403
    assert shared(complete(server, OTHER))["access-control-allow-origin"] == OTHER


def test_any_origin_without_credentials_is_a_star(start_server):
    server = start_server("--allowed-origins", "*")
    answer = complete(server, OTHER)
    assert answer.headers["access-control-allow-origin"] == "*" and "vary" not in answer.headers


def test_a_preflight_needs_no_key_and_what_follows_does(start_server):
    server = start_server("--allowed-origins", PAGE, "--api-key", "sk-of-a-page")
    assert preflight(server).status == 200
    refused = complete(server, PAGE)
    assert refused.status == 401 and shared(refused)["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", ["app.example.org", "https://app.example.org/path", "https://"])
def test_what_is_no_origin_is_refused_at_start(origin):
    done = subprocess.run([BINARY, "serve", "--port", "0", "--allowed-origins", origin], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--allowed-origins" in done.stderr and "is not an origin" in done.stderr
