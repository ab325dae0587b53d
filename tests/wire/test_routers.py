"""Routers that others wrote in front of three replicas: answers are those of a lone server, and none is lost on the way."""

import concurrent.futures
import itertools
import json
import queue
import random
import re
import subprocess
import threading
import time

import pytest

import routers
from compare_peers import free_port
from conftest import PATIENCE_S, ROOT, Server, choices_of, idle
from packages import python_with

pytestmark = pytest.mark.heavy

NAMES = list(routers.POLICIES)
REPLICA = ("--threads", 1)
SLOW = (*REPLICA, "--isa", "scalar")  # the same tokens, and time to look on while they come
ROUTED = [(name, policy) for name in NAMES for policy in ("round_robin", "cache_aware", routers.BY_SESSION[name][0])]


class Router(Server):
    """A router in front of replicas, ready; it is asked as a server is, and `metrics()` are its own."""

    def __init__(self, programs, name, replicas, policy, *more):
        self.port, self.metrics_port = free_port(), free_port()
        self.url, self.lines = f"http://127.0.0.1:{self.port}", []
        self.process = subprocess.Popen(
            routers.command(name, programs, self.port, self.metrics_port, [one.url for one in replicas], policy, *more),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self._reader = threading.Thread(target=self._read, args=(queue.Queue(),), daemon=True)
        self._reader.start()
        self.wait_for(lambda: self.get("/v1/models").status == 200, "ready")
        self.wait_for(lambda: self.healthy() == {one.url for one in replicas}, "aware of all replicas")

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass  # not yet listening
            assert self.process.poll() is None and time.monotonic() < end, f"not {what}: {self.log[-3000:]}"
            time.sleep(0.05)

    def healthy(self):
        """The replicas that it sends requests to, as its metrics tell."""
        page = self.request("GET", "/metrics", port=self.metrics_port).text
        return {url for url, value in re.findall(r'^\w+worker_health\{[^}]*worker="([^"]+)"[^}]*\} (\S+)$', page, re.M) if float(value) == 1}


@pytest.fixture(scope="module")
def programs():
    return python_with(ROOT / "loadtest" / "requirements-routers.txt").parent


@pytest.fixture(scope="module")
def three():
    running = [Server(*REPLICA) for _ in range(3)]
    yield running
    for one in running:
        assert one.stop() == 0, one.log[-4000:]


@pytest.fixture
def start_router(programs):
    started = []

    def start(name, replicas, policy, *more):
        started.append(Router(programs, name, replicas, policy, *more))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def text_of(draw, num_words):
    return " ".join(draw.choices("house tree river stone bird apple cloud train paper light".split(), k=num_words))


def ask(server, body, headers=()):
    """A completion's choices and usage, whole or streamed."""
    if not body.get("stream"):
        answer = server.post({"model": "stories", **body}, headers)
        assert answer.status == 200, answer.text
        return answer.json["choices"], answer.json["usage"]
    rest = {name: value for name, value in body.items() if name not in ("prompt", "stream")}
    with server.stream(body["prompt"], headers, model="stories", stream_options={"include_usage": True}, **rest) as events:
        return choices_of(events)


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def without_cached(answer):
    choices, usage = answer
    return choices, usage["prompt_tokens"], usage["completion_tokens"]


def counted(replicas):
    """Requests that each has answered."""
    return [one.metrics()["vllm:request_success_total"] for one in replicas]


# ---- exactness


def jobs():
    """Completions of all kinds, some of which begin alike."""
    draw = random.Random(11)
    beginnings = [text_of(draw, 64) for _ in range(3)]
    for i in range(24):
        prompt = f"{draw.choice(beginnings)[:draw.choice((100, 200, 300))]} {text_of(draw, 4)}"
        fields = dict(prompt=prompt, seed=i, temperature=(0, 0.7, 1.0)[i % 3], max_tokens=8 + i, stream=i % 2 == 0)
        yield fields | [dict(), dict(prompt="Once upon a time"), dict(n=2, ignore_eos=True), dict(logprobs=3)][i % 4]


@pytest.mark.parametrize("name, policy", ROUTED)
def test_every_answer_is_that_of_a_lone_server(server, three, start_router, name, policy):
    router = start_router(name, three, policy)
    before = counted(three)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        routed = list(pool.map(lambda job: without_cached(ask(router, job)), jobs()))
    assert routed == [without_cached(ask(server, job)) for job in jobs()]
    assert sum(counted(three)) > sum(before) and counted(three) != before


@pytest.mark.parametrize("name", NAMES)
def test_a_chat_is_that_of_a_lone_server(server, three, start_router, name):
    router = start_router(name, three, "round_robin")
    body = {"model": "stories", "messages": [{"role": "user", "content": "Lily saw a big"}], "seed": 3, "max_tokens": 24, "logprobs": True}
    answers = [one.post_to("/v1/chat/completions", body).json for one in (server, router, router, router)]
    assert all(answer["choices"] == answers[0]["choices"] for answer in answers)
    refused = [one.post_to("/v1/chat/completions", body | {"temperature": -1}) for one in (server, router)]
    assert [one.status for one in refused] == [400, 400]


@pytest.mark.parametrize("name, status", [("vllm", 200), ("sglang", 422)])
def test_prompts_of_token_ids_pass_where_the_router_knows_them(three, start_router, name, status):
    """SGLang's holds prompts to be text: docs/scaling.md says so, for as long as it does."""
    assert start_router(name, three, "round_robin").post({"model": "stories", "prompt": [400, 401, 402], "max_tokens": 2}).status == status


# ---- streams


@pytest.mark.parametrize("name", NAMES)
def test_streams_pass_unbuffered(start_server, start_router, name):
    """When the first event has come through, the replica is at work on the same answer."""
    replica = start_server(*SLOW)
    router = start_router(name, [replica], "round_robin")
    with router.stream("Once upon a time", model="stories", max_tokens=100, ignore_eos=True, seed=1) as events:
        first = json.loads(next(events))
        metrics = replica.metrics()
        assert first["choices"][0]["text"] is not None and metrics["vllm:num_requests_running"] == 1
        choices, _ = choices_of([json.dumps(first), *events])
    assert choices[0][1] == "length"


@pytest.mark.parametrize("name", NAMES)
def test_who_leaves_behind_a_router_is_noticed_by_the_replica(start_server, start_router, name):
    replica = start_server(*SLOW)
    router = start_router(name, [replica], "round_robin")
    with router.stream("Once upon a time", model="stories", max_tokens=100, ignore_eos=True, seed=1) as events:
        next(events)
    replica.wait_until(idle, "an idle engine")
    assert replica.metrics()["vllm:generation_tokens_total"] < 100


# ---- where requests go


@pytest.mark.parametrize("name", NAMES)
def test_a_session_stays_at_its_replica_and_finds_its_prefix(server, three, start_router, name):
    policy, header = routers.BY_SESSION[name]
    router = start_router(name, three, policy)
    talks = {f"session-{i}": text_of(random.Random(f"{name} {i}"), 40) for i in range(12)}
    places = {session: set() for session in talks}
    for _, session in itertools.product(range(4), talks):
        body = dict(prompt=talks[session], max_tokens=12, temperature=0, ignore_eos=True, cache_salt=f"{name} {session}")
        before = counted(three)
        choices, usage = ask(router, body, {header: session})
        expected_choices, expected_usage = ask(server, body)
        assert choices == expected_choices and cached(usage) == cached(expected_usage)
        places[session].add([after - b for after, b in zip(counted(three), before)].index(1))
        talks[session] += choices[0]["text"] + " And then?"
    assert all(len(at) == 1 for at in places.values()), places
    assert len(set.union(*places.values())) > 1, "all sessions at one replica"


@pytest.mark.parametrize("name", NAMES)
def test_salts_pass_through(start_server, start_router, name):
    """A router that dropped fields it does not know would put tenants together."""
    router = start_router(name, [start_server(*REPLICA)], "round_robin")
    body = dict(prompt=text_of(random.Random(1), 60), max_tokens=1)
    ask(router, body | {"cache_salt": "one"})
    assert cached(ask(router, body | {"cache_salt": "two"})[1]) == 0 < cached(ask(router, body | {"cache_salt": "one"})[1])


def found_by(router, seed):
    """Cached tokens of questions about twelve documents, eight about each in random order."""
    draw = random.Random(seed)
    documents = [text_of(draw, 150) for _ in range(12)]
    asked = [(i, text_of(draw, 10)) for i in range(12) for _ in range(8)]
    draw.shuffle(asked)
    usages = [ask(router, dict(prompt=f"{documents[i]} {question}", max_tokens=2, temperature=0))[1] for i, question in asked]
    return sum(map(cached, usages)), sum(usage["prompt_tokens"] for usage in usages)


@pytest.mark.parametrize("name", NAMES)
def test_prefix_aware_routing_finds_more_than_random(server, three, start_router, name):
    """Of 96 questions 12 are the first about their document. At random they are first at a replica, 34.6 on average."""
    alone, prompts = found_by(server, f"{name} alone")
    aware, _ = found_by(start_router(name, three, "cache_aware"), f"{name} aware")
    scattered, _ = found_by(start_router(name, three, "random"), f"{name} random")
    assert alone > 0.75 * prompts
    assert aware > 0.97 * alone
    # 84 hits against 61.4; the deviation of the number of first ones, of 36 pairs of which 34.6 come, is near 1.
    assert scattered < 0.80 * alone


# ---- replicas that go


class Crowd:
    """Eight clients that ask a router again and again until told to stop, and keep what went wrong."""

    def __init__(self, router, lone):
        self.router = router
        self.bodies = [dict(prompt="Once upon a time", seed=i, max_tokens=24, ignore_eos=True, stream=i % 2 == 0) for i in range(8)]
        self.expected = [without_cached(ask(lone, body)) for body in self.bodies]
        self.stopped = threading.Event()
        self.num_asked, self.wrong = [0] * 8, []
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(8)]

    def _ask(self, i):
        while not self.stopped.is_set():
            try:
                if without_cached(ask(self.router, self.bodies[i])) != self.expected[i]:
                    self.wrong.append("another answer")
            except Exception as error:  # noqa: BLE001  every kind of failure is one
                self.wrong.append(repr(error))
            self.num_asked[i] += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)

    def wait_for_more(self, each=5):
        """So many answers more for each client."""
        wanted = [asked + each for asked in self.num_asked]
        end = time.monotonic() + PATIENCE_S
        while any(asked < target for asked, target in zip(self.num_asked, wanted)):
            assert time.monotonic() < end, (self.num_asked, self.wrong[:3])
            time.sleep(0.01)


@pytest.mark.parametrize("name, policy", ROUTED)
def test_a_draining_replica_loses_no_request(server, start_server, start_router, name, policy):
    replicas = [start_server(*REPLICA) for _ in range(3)]
    router = start_router(name, replicas, policy)
    with Crowd(router, server) as crowd:
        crowd.wait_for_more()
        replicas[0].terminate()
        crowd.wait_for_more(10)
    assert crowd.wrong == []
    assert replicas[0].wait() == 0, replicas[0].log[-3000:]
    router.wait_for(lambda: router.healthy() == {one.url for one in replicas[1:]}, "without the drained replica")


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_replica_is_left_out_and_taken_in_again(server, start_server, start_router, name):
    replicas = [start_server(*REPLICA) for _ in range(3)]
    router = start_router(name, replicas, "round_robin", "--cb-timeout-duration-secs", "1")
    replicas[0].process.kill()
    replicas[0].process.wait()
    with Crowd(router, server) as crowd:
        crowd.wait_for_more()
    assert crowd.wrong == [], "a refused connection is another replica's request"
    router.wait_for(lambda: router.healthy() == {one.url for one in replicas[1:]}, "without the killed replica")
    again = start_server(*REPLICA, "--port", replicas[0].port)
    router.wait_for(lambda: router.healthy() == {one.url for one in (again, *replicas[1:])}, "aware of it again")
    with Crowd(router, server) as crowd:
        again.wait_until(lambda metrics: metrics["vllm:request_success_total"] > 0, "a request for it")
    assert crowd.wrong == []


# ---- what a router reads of a replica


def test_vllm_s_router_reads_the_queue_and_the_cache_from_our_metrics(start_server, start_router):
    """Its scheduler of agents polls /metrics for three `vllm:` names, and tells what it saw."""
    replicas = [start_server(*SLOW, "--max-num-seqs", 1) for _ in range(3)]
    settings = json.dumps({"program_scheduling_enable_key": "auto", "metrics_interval_seconds": 0.05, "admission_waiting_request_threshold": 0})
    router = start_router("vllm", replicas, "consistent_hash", "--enable-program-scheduling", "--program-scheduling-config-json", settings)

    def seen():
        ranks = router.get("/scheduling/diagnostics").json["ranks"]
        return {rank["base_url"]: (rank["vllm_running_requests"], rank["vllm_waiting_requests"], rank["vllm_kv_cache_usage"]) for rank in ranks}

    ask(router, dict(prompt="Once", max_tokens=1), {"X-Session-ID": "a"})
    router.wait_for(lambda: seen() == {one.url: (0, 0, 0.0) for one in replicas}, f"told of three idle replicas: {seen()}")
    body = dict(prompt="Once upon a time", max_tokens=60, ignore_eos=True, stream=True)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        streams = [pool.submit(ask, router, body | {"seed": i}, {"X-Session-ID": "a"}) for i in range(3)]
        router.wait_for(lambda: any(told[:2] == (1, 2) and told[2] > 0 for told in seen().values()), "told of one that runs and two that wait")
        for stream in streams:
            stream.result(PATIENCE_S)
    router.wait_for(lambda: all(told == (0, 0, 0.0) for told in seen().values()), "told that all have ended")
