"""loadtest/load.py as it is called: against quire itself and a server with faults; what it prints, writes and ends with."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import queue
import re
import resource
import subprocess
import sys
import threading
import time

import pytest
from fake_server import FakeServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
SMALL = ["--set", "arrivals={kind: constant, rate_per_s: 20, duration_s: 1}", "--set", "answer.tokens={uniform: [2, 6]}", "--set", "warmup_s=0"]
QUICK = ["--set", "arrivals={kind: constant, rate_per_s: 200, duration_s: 0.1}", *SMALL[2:]]  # for servers that take no time to answer
SHORT = ["--set", "prompt={tokens: {uniform: [4, 24]}, shared_prefix: {groups: 2, tokens: 32}}", *SMALL]
PATIENCE_S = 120  # for what takes seconds on a machine that has nothing else to do
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("QUIRE_", "OPENAI_"))}


def load(*words, **more):
    command = [sys.executable, str(ROOT / "loadtest" / "load.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=ENVIRONMENT | more, cwd=ROOT / "docs")


@contextlib.contextmanager
def quire(*flags):
    """A server; yields its URL."""
    process = subprocess.Popen([QUIRE, "serve", "--port", "0", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    found = queue.Queue()

    def read():
        for line in process.stdout:
            if match := re.search(r"http://127\.0\.0\.1:\d+", line):
                found.put(match[0])

    threading.Thread(target=read, daemon=True).start()
    try:
        yield found.get(timeout=PATIENCE_S)
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.fixture(scope="module")
def url():
    with quire() as at:
        yield at


@pytest.mark.parametrize("name", ["chat", "rag-shared-prefix", "burst", "long-context"])
def test_a_scenario_in_small_is_answered_rightly_by_quire(url, name, tmp_path):
    done = load(name, "--url", url, *SHORT, "--json", tmp_path / "out.json", "--probe", "/live", "--probe", "/metrics")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["requests"]["right"] == found["requests"]["planned"] == 20 and found["model"] == "stories"
    assert found["latency_ms"]["ttft"]["count"] == found["latency_ms"]["e2e"]["count"] == 20
    assert 2 <= found["tokens"]["answer_mean"] <= 6
    planned, prompts = found["tokens"]["prompt_planned_mean"], found["tokens"]["prompt_mean"]
    assert planned <= prompts <= 1.3 * planned + 20  # words are about tokens; a chat template adds its own
    assert found["tokens"]["prompt_cached_share"] > 0.2  # the prefixes are shared
    assert {probe.rsplit("/", 1)[1]: figures["failed"] for probe, figures in found["probes"].items()} == {"live": 0, "metrics": 0}
    assert "20 requests, 20 right, 0 wrong" in done.stdout and "\033" not in done.stdout + done.stderr


def test_token_ids_become_prompts_of_exactly_their_length(url, tmp_path):
    ids = ["--set", "prompt={as: token_ids, ids: [500, 4000], tokens: 33}"]
    done = load("burst", "--url", url, *SMALL, *ids, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["tokens"]["prompt_mean"] == 33


def test_a_trace_is_replayed_with_its_shared_prefixes(url, tmp_path):
    lines = [{"timestamp": 20 * i, "input_length": 100 + i, "output_length": 3 + i % 3, "hash_ids": [i % 2, 10 + i]} for i in range(12)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "t.yaml").write_text("arrivals: {kind: trace, file: t.jsonl, block_tokens: 64}\nbody: {temperature: 0}\n")
    (tmp_path / "first.jsonl").write_text("\n".join(map(json.dumps, lines[:2])))
    (tmp_path / "first.yaml").write_text((tmp_path / "t.yaml").read_text().replace("t.jsonl", "first.jsonl"))
    # Both first blocks are in the cache before the trace begins: on a slow machine requests 20 ms apart may run at once and find nothing.
    for name in ("first", "t"):
        done = load(tmp_path / f"{name}.yaml", "--url", url, "--json", "-")
        assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["requests"]["right"] == 12 and found["tokens"]["answer_mean"] == 4
    # All twelve find the 64 tokens of their first block, whole blocks of the cache at least.
    assert found["tokens"]["prompt_cached_share"] >= 12 * 48 / sum(line["input_length"] for line in lines)


def test_two_servers_are_compared_by_rounds_and_drawn(url, tmp_path):
    out = ["--json", tmp_path / "out.json", "--html", tmp_path / "out.html"]
    done = load("chat", "--compare", url, url, "--rounds", 3, *SHORT, *out)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert len(found["rounds"]) == 3 and all(one["requests"]["right"] == 20 for pair in found["rounds"] for one in pair)
    assert all(len(row["rounds"]) == 3 and row["ratio"] > 0 for row in found["ratios"])
    assert "ratios over 1 where A is ahead" in done.stdout
    assert done.stderr.splitlines() == [f"round {i + 1} of 3: {side}" for i, sides in enumerate(("AB", "BA", "AB")) for side in sides]
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("<svg") == 2


def test_both_servers_are_asked_the_same_and_each_round_something_new():
    with FakeServer() as one, FakeServer() as other:
        done = load("chat", "--compare", one.url, other.url + "/v1", "--rounds", 2, *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    texts = lambda server: [json.dumps(body["messages"]) for body in server.bodies]
    assert sorted(texts(one)) == sorted(texts(other)) and len(texts(one)) == 40
    assert not set(texts(one)[:20]) & set(texts(one)[20:])
    lengths = [[len(text.split()) for text in sorted(part, key=len)] for part in (texts(one)[:20], texts(one)[20:])]
    assert sorted(lengths[0]) == sorted(lengths[1])


@pytest.mark.parametrize("fault, status", [(None, 0), ("429", 0), ("one less", 1), ("500", 1), ("cut", 1)])
def test_the_exit_status_says_if_anything_was_wrong(fault, status):
    with FakeServer(lambda index, body: fault if index == 3 else None) as server:
        done = load("burst", "--url", server.url, *QUICK)
    assert done.returncode == status, done.stdout + done.stderr
    assert f"{20 - bool(fault)} right" in done.stdout


def test_the_key_of_the_environment_is_sent_and_not_printed():
    with FakeServer() as server:
        done = load("burst", "--url", server.url, *QUICK, "--json", "-", OPENAI_API_KEY="Secret")
    assert server.keys == {"bearer secret"}
    assert done.returncode == 0 and "Secret" not in done.stdout + done.stderr


def test_a_report_is_written_for_one_server(tmp_path):
    with FakeServer() as server:
        done = load("burst", "--url", server.url, *QUICK, "--html", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.html").read_text().count("<svg") == 2


def test_several_clients_begin_together():
    begun_s = time.monotonic()
    assert load("--list").returncode == 0
    start_up_s = time.monotonic() - begun_s  # of one
    for factor in (4, 16, 64):
        at_s = time.time() + 1 + factor * start_up_s
        with FakeServer() as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda seed: load("burst", "--url", server.url, *SMALL, "--seed", seed, "--start-at", at_s, "--json", "-"), (1, 2)))
            ended_s = time.time()
        if not any("expected a time to come" in one.stderr for one in done):
            break  # else one of them was not up in time
    assert [json.loads(one.stdout)["requests"]["right"] for one in done] == [20, 20]
    assert ended_s >= at_s + 0.95, "the last of twenty is due 0.95 s after the start"


def test_a_schedule_is_printed_without_a_server_and_is_the_seeds():
    one, again, other = (load("chat", "--schedule", "--seed", seed) for seed in (5, 5, 6))
    assert one.returncode == 0 and one.stdout == again.stdout != other.stdout
    assert 150 < len([json.loads(line) for line in one.stdout.splitlines()]) < 330


def test_the_scenarios_are_listed():
    done = load("--list")
    assert done.returncode == 0 and "idle-streams" in done.stdout


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "expected a scenario"),
        (["chat"], "expected either --url or --compare"),
        (["chat", "--url", "http://a", "--compare", "http://a", "http://b"], "expected either --url or --compare"),
        (["chat", "--url", "http://a", "--rounds", "0"], "--rounds: 0 was given, expected 1 to 100"),
        (["chat", "--url", "http://a", "--rounds", "101"], "--rounds: 101 was given"),
        (["chat", "--url", "http://a", "--start-at", "1"], "--start-at: 1 was given, expected a time to come"),
        (["chat", "--url", "http://a", "--start-at", "nan"], "--start-at: nan was given"),
        (["chat", "--compare", "http://a", "http://b", "--start-at", "1e11"], "--start-at: 100000000000 was given"),
        (["chat", "--url", "http://a", "--set", "x"], "--set: expected FIELD=VALUE"),
        (["chat", "--url", "http://a", "--probe-interval-s", "0"], "--probe-interval-s: 0 was given"),
        (["chat", "--url", "a"], "a: expected http://HOST:PORT"),
        (["nothing", "--url", "http://127.0.0.1:9"], "nothing: No such file"),
        (["chat", "--url", "http://127.0.0.1:9"], "http://127.0.0.1:9/v1/models names no model"),
        (["chat", "--url", "http://127.0.0.1:9", "--set", "arrivals.rate_per_s=0"], "arrivals.rate_per_s: 0 was given, expected more than 0"),
    ],
    ids=range(14),
)
def test_what_cannot_begin_ends_with_2_and_says_why(words, told):
    done = load(*words)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_ten_thousand_streams_want_descriptors_before_anything_is_asked():
    command = [sys.executable, str(ROOT / "loadtest" / "load.py"), "idle-streams", "--url", "http://127.0.0.1:9", "--model", "m"]
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, preexec_fn=few)
    assert done.returncode == 2
    assert "10,000 streams need 10,064 descriptors, and this process may have 1,024" in done.stderr


@pytest.mark.full
def test_ten_thousand_streams_are_held_at_once(tmp_path):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10_064:
        pytest.skip("this machine gives a process fewer than 10,064 descriptors")
    command = [sys.executable, str(ROOT / "tests" / "loadtest" / "fake_server.py"), "2.5", "10000"]  # no answer before all have come
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            done = load("idle-streams", "--url", url, "--set", "answer.tokens=4", "--json", tmp_path / "out.json")
        finally:
            server.terminate()
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["requests"]["right"] == found["client"]["most_in_flight"] == 10_000
