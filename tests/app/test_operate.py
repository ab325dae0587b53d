"""`quire ps` and `quire stop`: the requests of a running server, as its operator sees them."""

import contextlib
import hashlib
import json
import re
import time
import urllib.request

import pytest
from test_cli import PACED, PATIENCE_S, Server, quire

ADMIN, USER = "the-admins-secret-key", "the-users-secret-key-0"
LONG = {"prompt": "Once upon a time", "max_tokens": 450, "ignore_eos": True, "stream": True}


@contextlib.contextmanager
def asked(server, name, key=None, **fields):
    """A stream of that name has begun; the lines of its events."""
    headers = {"Content-Type": "application/json", "X-Request-Id": name} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps(LONG | fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        answer.readline()
        yield answer


def rows_of(text):
    """The table as a dictionary for each row, by its columns."""
    head, *rows = text.splitlines()
    return [dict(zip(re.split(r"  +", head), re.split(r"  +", row))) for row in rows]


def wait_until_idle(url):
    end = time.monotonic() + PATIENCE_S
    while "no requests" not in quire("ps", "--url", url).stdout:
        assert time.monotonic() < end


@pytest.fixture(scope="module")
def server():
    with Server(*PACED) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("".join(f"name={name} hash=sha256:{hashlib.sha256(secret.encode()).hexdigest()} role={role}\n"
                            for name, secret, role in (("root", ADMIN, "admin"), ("alice", USER, "user"))))
    keys.chmod(0o600)
    with Server("--api-key-file", str(keys), *PACED) as running:
        yield running


def test_ps_reports_that_nothing_runs(server):
    wait_until_idle(server.url)
    done = quire("ps", "--url", server.url)
    assert (done.returncode, done.stdout) == (0, "no requests are running or waiting\n")
    assert json.loads(quire("ps", "--json", "--url", server.url).stdout) == {"object": "list", "data": [], "left_out": 0}


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_ps_shows_what_runs_with_the_servers_own_numbers(server, suffix):
    with asked(server, "seen"):
        text = quire("ps", "--url", server.url + suffix)
        told = json.loads(quire("ps", "--json", "--url", server.url + suffix).stdout)
    assert text.returncode == 0, text.stderr
    (row,) = [row for row in rows_of(text.stdout) if row["ID"] == "seen"]
    (entry,) = [one for one in told["data"] if one["id"] == "seen"]
    assert row["STATE"] == entry["state"] == "running" and row["KEY"] == "-" and row["MODEL"] == entry["model"] == "stories"
    assert int(row["PROMPT"]) == entry["prompt_tokens"] > 0 and int(row["CACHED"]) == entry["cached_tokens"]
    assert 0 < int(row["OUT"]) <= entry["generated_tokens"]
    assert row["TOK/S"] == "-" or 0 < float(row["TOK/S"]) <= 50.5, "a step takes 20 ms"


def test_ps_of_an_id_tells_its_timeline_in_words(server):
    with asked(server, "told", n=2):
        text = quire("ps", "told", "--url", server.url)
        told = json.loads(quire("ps", "told", "--json", "--url", server.url).stdout)
    assert text.returncode == 0, text.stderr
    assert told["object"] == "request_timeline" and told["id"] == "told"
    lines = text.stdout.splitlines()
    assert lines[0] == "request told: running" and "sequence 2 of 2:" in lines
    assert f"  queued: {told['sequences'][0]['queued_ms']:.1f} ms" in text.stdout
    assert f"prompt: {told['sequences'][0]['prompt_tokens']} tokens" in text.stdout
    wait_until_idle(server.url)
    after = quire("ps", "cmpl-told", "--url", server.url)
    assert after.stdout.startswith("request told: finished") and "ended after" in after.stdout


def test_stop_ends_a_request(server):
    with asked(server, "endless") as answer:
        done = quire("stop", "endless", "--url", server.url)
        assert (done.returncode, done.stdout) == (0, "stopped endless\n")
        rest = answer.read().decode()
    assert '"finish_reason":"abort"' in rest
    wait_until_idle(server.url)
    again = quire("stop", "endless", "--url", server.url)
    assert again.returncode == 1 and "no request endless is running" in again.stderr and "quire ps" in again.stderr


def test_ids_of_any_characters_reach_the_server(server):
    name = "a/b?c#d e\u00e9%"
    with asked(server, "plain", request_id=name) as answer:
        assert quire("stop", name, "--url", server.url).returncode == 0
        assert '"finish_reason":"abort"' in answer.read().decode()


def test_an_unknown_id_is_reported_as_such(server):
    done = quire("ps", "nobodys", "--url", server.url)
    assert done.returncode == 1 and "no request nobodys" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", [("ps",), ("ps", "r1"), ("stop", "r1")])
def test_errors_name_the_next_step(server, guarded, command):
    absent = quire(*command, "--url", "http://127.0.0.1:9")
    assert absent.returncode == 2 and "is `quire serve` running?" in absent.stderr and "--url" in absent.stderr
    wrong = quire(*command, "--url", "127.0.0.1:8000")
    assert wrong.returncode == 2 and "expected a URL such as http://127.0.0.1:8000" in wrong.stderr
    keyless = quire(*command, "--url", guarded.url)
    assert keyless.returncode == 2 and "401" in keyless.stderr and "role admin in QUIRE_API_KEY" in keyless.stderr
    users = quire(*command, "--url", guarded.url, env={"QUIRE_API_KEY": USER})
    assert users.returncode == 2 and "403" in users.stderr and "admin port" in users.stderr
    assert USER not in users.stderr


def test_an_admins_key_is_enough(guarded):
    with asked(guarded, "alices", USER) as answer:
        (row,) = rows_of(quire("ps", "--url", guarded.url, env={"QUIRE_API_KEY": ADMIN}).stdout)
        assert row["ID"] == "alices" and row["KEY"] == "alice"
        assert quire("stop", "alices", "--api-key", ADMIN, "--url", guarded.url).returncode == 0
        assert '"finish_reason":"abort"' in answer.read().decode()


@pytest.mark.parametrize("command", [("ps",), ("ps", "r1"), ("stop", "r1")])
def test_a_port_without_admin_paths_leads_to_the_admin_port(command):
    with Server("--admin-port", "0") as running:
        done = quire(*command, "--url", running.url)
        assert done.returncode == 2 and "admin port" in done.stderr and "--url http://HOST:ADMIN_PORT" in done.stderr
