"""API keys on the wire: who is let in, what they may have, and keys that change while the server runs."""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import openai
import pytest

from conftest import BINARY, PACED, PATIENCE_S, Server

KEYS = {
    "alice": ("secret-of-alice", ""),
    "bob": ("secret-of-bob", ""),
    "team-1": ("secret-of-team-1", "tenant=team"),
    "team-2": ("secret-of-team-2", "tenant=team"),
    "narrow": ("secret-of-narrow", "max_running=3"),
    "short-line": ("secret-of-short-line", "max_queued=2"),
    "metered": ("secret-of-metered", "tokens_per_minute=600"),
    "root": ("secret-of-root", "role=admin"),
    "prometheus": ("secret-of-prometheus", "role=monitor"),
}
PLAIN = "given-in-the-environment"
LONG = {"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True}
SHORT = {"prompt": [300, 301, 302], "max_tokens": 1}


def lines(keys):
    return "".join(f"name={name} hash=sha256:{hashlib.sha256(secret.encode()).hexdigest()} {rest}\n"
                   for name, (secret, rest) in keys.items())


def secret(name):
    return KEYS[name][0]


def bearer(name):
    return {"Authorization": f"Bearer {secret(name)}"}


def reload(server, event):
    """The line that tells of it."""
    before = [line for line in server.lines if f" {event} " in line]
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + PATIENCE_S
    while (lines := [line for line in server.lines if f" {event} " in line]) == before:
        assert time.monotonic() < end, server.log[-2000:]
        time.sleep(0.01)
    return lines[-1]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(lines(KEYS))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def guarded(key_file):
    running = Server("--api-key-file", key_file, "--api-key", PLAIN, "--cache-dir", key_file.parent, *PACED)
    yield running
    assert running.stop() == 0, running.log[-4000:]
    for one in (*(value for value, _ in KEYS.values()), PLAIN):
        assert one not in running.log, "a key is in the log"
        assert hashlib.sha256(one.encode()).hexdigest() not in running.log


def series(server, name="root"):
    text = server.request("GET", "/metrics", headers=bearer(name)).text
    return dict(re.findall(r"^(quire:key_\S+) (\S+)$", text, re.MULTILINE))


@contextlib.contextmanager
def held(server, name, n, fields=LONG):
    """`n` sequences of that key are under way."""
    with server.stream(fields["prompt"], bearer(name), n=n,
                       **{key: value for key, value in fields.items() if key != "prompt"}) as events:
        json.loads(next(events))
        yield


def wait_until_running(server, name, count):
    """What a key has running is counted down a little after the answer, or after its client went away."""
    end = time.monotonic() + PATIENCE_S
    while series(server)[f'quire:key_running_sequences{{key="{name}"}}'] != str(count):
        assert time.monotonic() < end
        time.sleep(0.01)


def raw_status(server, head):
    with server.socket() as raw:
        raw.sendall(head.encode() + b"\r\n\r\n")
        return int(raw.recv(65536).split()[1])


# ---- who is let in


@pytest.mark.parametrize("path", ["/live", "/ready", "/health"])
def test_probes_need_no_key(guarded, path):
    assert guarded.get(path).status == 200
    assert guarded.request("GET", path, headers={"Authorization": "Bearer wrong"}).status == 200


@pytest.mark.parametrize("method, path", [
    ("GET", "/metrics"), ("GET", "/version"), ("GET", "/openapi.json"), ("GET", "/v1/models"), ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"), ("POST", "/v1/responses"), ("POST", "/v1/embeddings"), ("POST", "/v1/messages"),
    ("POST", "/tokenize"), ("POST", "/detokenize"), ("POST", "/admin/cache/save"), ("GET", "/nowhere")])
def test_everything_else_needs_one(guarded, method, path):
    answer = guarded.request(method, path, "{}" if method == "POST" else None)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.error["type"] == "authentication_error" and answer.error["code"] == "invalid_api_key"


def test_a_key_that_is_none_is_refused_and_never_repeated(guarded):
    good = secret("alice")
    for wrong in ("x", good[:-1], good + "x", good.upper(), "y" * 8000, hashlib.sha256(good.encode()).hexdigest(), "ä"):
        answer = guarded.request("GET", "/v1/models", headers={"Authorization": f"Bearer {wrong}".encode()})
        assert answer.status == 401, wrong[:80]
        assert len(wrong) < 3 or wrong not in answer.text
    for wrong in ("", "Bearer", "Bearer ", good, f"Basic {good}", f"Bearer{good}", f"Bearer {good} {good}"):
        assert guarded.request("GET", "/v1/models", headers={"Authorization": wrong}).status == 401, wrong


def test_a_key_is_sent_once(guarded):
    head, good, other = "GET /v1/models HTTP/1.1\r\nHost: a", f"Authorization: Bearer {secret('alice')}", "bob"
    assert raw_status(guarded, f"{head}\r\n{good}") == 200
    assert raw_status(guarded, f"{head}\r\n{good}\r\n{good}") == 401
    assert raw_status(guarded, f"{head}\r\n{good}\r\nauthorization: Bearer x") == 401
    assert raw_status(guarded, f"{head}\r\n{good}\r\nx-api-key: {secret('alice')}") == 200
    assert raw_status(guarded, f"{head}\r\n{good}\r\nx-api-key: {secret(other)}") == 401
    assert raw_status(guarded, f"{head}\r\nX-API-Key: {secret('alice')}\r\nx-api-key: {secret('alice')}") == 401


def test_keys_of_the_file_and_of_the_flag_stand_beside_each_other(guarded):
    for one in (secret("alice"), secret("root"), PLAIN):
        assert guarded.request("GET", "/v1/models", headers={"Authorization": f"Bearer {one}"}).status == 200


def test_clients_send_it_as_they_do(guarded):
    import anthropic  # takes seconds

    client = openai.OpenAI(base_url=guarded.url + "/v1", api_key=secret("alice"), max_retries=0)
    assert client.completions.create(model="stories", prompt="a", max_tokens=1).usage.completion_tokens == 1
    with pytest.raises(openai.AuthenticationError) as refused:
        client.with_options(api_key="wrong").completions.create(model="stories", prompt="a", max_tokens=1)
    assert refused.value.code == "invalid_api_key"
    assert ask_anthropic(guarded, secret("alice")).usage.output_tokens == 1
    with pytest.raises(anthropic.AuthenticationError) as denied:
        ask_anthropic(guarded, "wrong")
    assert denied.value.body["type"] == "error"


def ask_anthropic(server, key):
    import anthropic

    client = anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0)
    return client.messages.create(model="stories", max_tokens=1, messages=[{"role": "user", "content": "a"}])


def test_roles_open_what_is_theirs(guarded):
    def status(name, method, path, body=None):
        return guarded.request(method, path, body, bearer(name) | {"Content-Type": "application/json"}).status

    save = ("POST", "/admin/cache/save", '{"path": "x.kv"}')
    assert status("alice", *save) == 403 and status("prometheus", *save) == 403 and status("root", *save) == 200
    assert status("alice", "GET", "/metrics") == 403
    assert status("prometheus", "GET", "/metrics") == 200 and status("root", "GET", "/metrics") == 200
    assert status("prometheus", "GET", "/v1/models") == 403 and status("root", "GET", "/v1/models") == 200
    refused = guarded.request(*save, headers=bearer("alice"))
    assert refused.error["type"] == "permission_error" and refused.error["code"] == "insufficient_permissions"


# ---- limits


def test_max_running_holds_at_its_limit(guarded):
    with held(guarded, "narrow", 2):
        assert guarded.post(SHORT, bearer("narrow")).status == 200, "the third"
        wait_until_running(guarded, "narrow", 2)
        with held(guarded, "narrow", 1):
            refused = guarded.post(SHORT, bearer("narrow"))
            assert refused.status == 429
            assert refused.error["code"] == "rate_limit_exceeded" and refused.error["param"] == "max_running"
            assert "max_running is 3" in refused.error["message"]
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert guarded.post(SHORT, bearer("alice")).status == 200, "nobody else is touched"
            assert series(guarded)['quire:key_running_sequences{key="narrow"}'] == "3"
    wait_until_running(guarded, "narrow", 0)
    assert guarded.post(SHORT | {"n": 3}, bearer("narrow")).status == 200
    never = guarded.post(SHORT | {"n": 4}, bearer("narrow"))
    assert never.status == 400 and never.error["param"] == "max_running"
    assert float(series(guarded)['quire:key_refused_requests_total{key="narrow",limit="max_running"}']) >= 1


def test_requests_one_after_the_other_never_meet_max_running(guarded):
    for _ in range(20):
        assert guarded.post(SHORT | {"n": 2}, bearer("narrow")).status == 200


def test_max_queued_holds_at_its_limit(guarded):
    assert guarded.post(SHORT | {"n": 2}, bearer("short-line")).status == 200
    never = guarded.post(SHORT | {"n": 3}, bearer("short-line"))
    assert never.status == 400 and never.error["param"] == "max_queued"


def test_tokens_a_minute_are_reserved_and_settled(guarded):
    first = guarded.post(SHORT | {"max_tokens": 500, "allowed_token_ids": [300], "stop_token_ids": [300]}, bearer("metered"))
    assert first.status == 200
    assert first.json["usage"]["total_tokens"] == 4, "it ended at its first token"
    with held(guarded, "metered", 1, {"prompt": [300], "max_tokens": 400, "ignore_eos": True}):
        refused = guarded.post(SHORT | {"max_tokens": 300}, bearer("metered"))
        assert refused.status == 429 and refused.error["param"] == "tokens_per_minute"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert guarded.post(SHORT | {"max_tokens": 100}, bearer("metered")).status == 200
    wait_until_running(guarded, "metered", 0)
    told = series(guarded)
    assert float(told['quire:key_prompt_tokens_total{key="metered"}']) >= 6
    assert float(told['quire:key_refused_requests_total{key="metered",limit="tokens_per_minute"}']) == 1


def test_inspect_shows_its_key(guarded):
    def inspect(name):
        return subprocess.run([BINARY, "inspect", "--url", guarded.url], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=os.environ | {"QUIRE_API_KEY": secret(name)})

    assert inspect("prometheus").returncode == 0
    refused = inspect("alice")
    assert refused.returncode == 2 and "GET /metrics was answered with status 403" in refused.stderr
    assert secret("alice") not in refused.stderr


def test_series_are_of_names_in_the_file_alone(guarded):
    for wrong in ("x", "y", "z"):
        guarded.request("GET", "/v1/models", headers={"Authorization": f"Bearer {wrong}"})
    names = {re.search('key="([^"]*)"', one).group(1) for one in series(guarded)}
    assert names == {*KEYS, "api-key-1"}


# ---- what belongs to a key


def test_a_request_belongs_to_its_key(guarded):
    def ask(method, path, name, **headers):
        return guarded.request(method, path, headers=bearer(name) | headers).status

    with guarded.stream(LONG["prompt"], bearer("alice") | {"X-Request-Id": "mine", "X-Request-Key": "0123456789abcdef"},
                        max_tokens=500, ignore_eos=True, n=8) as events:
        next(events)
        assert ask("GET", "/v1/requests/mine/explain", "bob") == 404
        assert ask("GET", "/v1/requests/mine/explain", "bob", **{"X-Request-Key": "0123456789abcdef"}) == 404
        assert ask("DELETE", "/v1/requests/mine", "bob", **{"X-Request-Key": "0123456789abcdef"}) == 404
        assert ask("GET", "/v1/requests/mine/explain", "alice") == 200
        assert ask("GET", "/v1/requests/mine/explain", "root") == 200
        assert ask("DELETE", "/v1/requests/mine", "alice") == 200
    assert guarded.get("/v1/requests/mine/explain").status == 401


def test_a_cached_prefix_is_its_tenants(guarded):
    prompt = [500 + i % 7 for i in range(64)]

    def cached(name):
        answer = guarded.post({"prompt": prompt, "max_tokens": 1}, bearer(name))
        return answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached("alice") == 0 and cached("alice") > 0
    assert cached("bob") == 0
    assert cached("team-1") == 0 and cached("team-2") > 0


# ---- keys that change


def test_a_reload_changes_keys_and_lets_answers_go_on(start_server, key_file, tmp_path):
    path = tmp_path / "keys"
    path.write_text(lines({"alice": KEYS["alice"], "root": KEYS["root"]}))
    server = start_server("--api-key-file", path, *PACED)
    server.wait_for_log("key_file_open")  # others may read it

    def status(name):
        return server.request("GET", "/v1/models", headers=bearer(name)).status

    with server.stream(LONG["prompt"], bearer("alice"), max_tokens=200, ignore_eos=True) as events:
        next(events)
        path.write_text(lines({"bob": KEYS["bob"], "root": KEYS["root"]}))
        path.chmod(0o600)
        assert "keys=2" in reload(server, "keys_reloaded")
        assert (status("alice"), status("bob")) == (401, 200)
        *pieces, end = events
        assert end == "[DONE]" and not any("error" in json.loads(one) for one in pieces), "the answer goes on to its end"
        path.write_text(lines({"alice": KEYS["alice"]}) + "name=x hash=secret-in-the-wrong-place role=boss\n")
        told = reload(server, "keys_not_reloaded")
        assert "line 2: hash" in told and "line 2: role" in told and "secret-in-the-wrong-place" not in told
        assert (status("alice"), status("bob")) == (401, 200)
    names = {re.search('key="([^"]*)"', one).group(1) for one in series(server)}
    assert names == {"bob", "root"}


def test_keys_may_be_reloaded_under_load(start_server, tmp_path):
    path = tmp_path / "keys"
    path.write_text(lines(KEYS))
    path.chmod(0o600)
    server = start_server("--api-key-file", path, "--io-threads", "2")
    statuses = []

    def ask():
        for _ in range(20):
            statuses.append(server.post(SHORT, bearer("alice")).status)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for _ in range(20):
        server.process.send_signal(signal.SIGHUP)
    for one in threads:
        one.join()
    assert statuses == [200] * 80
    wait_until_running(server, "alice", 0)
    assert float(series(server)['quire:key_requests_total{key="alice"}']) == 80


def test_a_bad_file_is_no_start(tmp_path):
    path = tmp_path / "keys"
    path.write_text("name=alice\n")
    ended = subprocess.run([BINARY, "serve", "--port", "0", "--api-key-file", path], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 2 and "line 1: hash: missing" in ended.stderr


def test_without_keys_nobody_needs_one(server):
    assert server.request("GET", "/v1/models", headers={"Authorization": "Bearer whatever"}).status == 200
    assert "quire:key_" not in server.get("/metrics").text
