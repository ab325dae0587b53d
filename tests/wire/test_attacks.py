"""Requests made to take as much as they may, at every limit, from one client beside an honest one: no attack ends the
server, nothing stays held afterwards, and the honest client's stream says what it always says. Times are printed, never
asserted (docs/security.md has them): a busy machine must not fail a gate."""

import contextlib
import http.client
import json
import re
import resource
import socket
import statistics
import threading
import time

import pytest

from conftest import TALKING_TEMPLATE, Server

MEMORY_LIMIT = 2 << 30
AFTERWARDS_MB = 300
SECONDS = 4
# Attackers of this kind leave so soon: they wait for the engine, whose time is shared by its policy.
LEAVES_S = {"waiting": 0.3}
QUESTION = dict(max_tokens=60, temperature=0, ignore_eos=True, return_token_ids=True, stream=True)
PROMPT = "Once upon a time, in a garden by the sea"


def nested_schema(width):
    properties = {f"p{i}": {"type": "string"} for i in range(400)}
    ways = [{"properties": {f"w{i}": {"const": i}}} for i in range(width)]
    return {"type": "object", "properties": properties, "anyOf": ways, "allOf": [{"anyOf": ways}]}


def schema_body(schema):
    return {"prompt": "a", "max_tokens": 1, "guided_json": schema}


def chat(content, **fields):
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 1, **fields}


def called_with(arguments):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": "a", "content": "x"}], "max_tokens": 1}  # fmt: skip


def tools(number, properties):
    parameters = {"type": "object", "properties": {f"k{i}": {"enum": list(range(9))} for i in range(properties)}}
    functions = [{"name": f"f{i}", "strict": True, "parameters": parameters} for i in range(number)]
    return [{"type": "function", "function": function} for function in functions]


# By what they multiply: a path and a body each, from small to as large as a body may be.
ATTACKS = {
    "schemas": [("/v1/completions", schema_body(nested_schema(width))) for width in (10, 40)]
    + [("/v1/completions", schema_body({"enum": list(range(5000)), "allOf": [{"enum": list(range(5000, 0, -1))}]})),
       ("/v1/completions", {"prompt": "a", "max_tokens": 1, "guided_regex": "([ab]*a[ab]{16}|[cd]*c[cd]{16})x"}),
       ("/v1/completions", {"prompt": "a", "max_tokens": 1, "guided_regex": "(a{1,200}){1,200}b"}),
       ("/v1/chat/completions", chat("hi", tools=tools(100, 40), tool_choice="required"))],
    "answers": [("/v1/completions", {"prompt": [300] * 400, "n": n, "max_tokens": 1, "echo": True, "logprobs": 20,
                                     "prompt_logprobs": 20, "return_token_ids": True}) for n in (1, 8, 128)],
    "members": [("/v1/chat/completions", called_with(json.dumps({f"k{i:06d}": i for i in range(number)})))
                for number in (1000, 140_000)]
    + [("/v1/chat/completions", chat("hi", chat_template_kwargs={f"k{i:06d}": 1 for i in range(100_000)})),
       ("/v1/completions", {"prompt": "a", "max_tokens": 1, **{f"u{i:06d}": 1 for i in range(400_000)}})],
    "texts": [("/v1/completions", {"prompt": "ab cd " * number, "max_tokens": 1}) for number in (20_000, 1_300_000)]
    + [("/v1/completions", {"prompt": "ab cd " * 1_300_000, "max_tokens": 1, "truncate_prompt_tokens": 9}),
       ("/v1/completions", {"prompt": "a" * 7_000_000, "max_tokens": 1, "truncate_prompt_tokens": 9}),
       ("/tokenize", {"prompt": "ab cd " * 170_000, "return_token_strs": True}),
       ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi " * 500}] * 4000, "max_tokens": 1}),
       ("/v1/chat/completions", called_with(json.dumps([[[[[[]]]]]] * 100_000)[1:-1].join(['{"a":[', "]}"])))],
    "waiting": [("/v1/completions", {"prompt": "a", "max_tokens": 500, "n": 100, "repetition_penalty": 1.5}),
                ("/v1/completions", {"prompt": "a", "max_tokens": 400, "use_beam_search": True, "best_of": 16})],
}  # fmt: skip


class Limited(Server):
    """A server that may have so much memory and no more."""

    def __init__(self, *args):
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, before[1]))
        try:
            super().__init__(*args)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def memory_mb(self, name="VmRSS"):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(name + r":\s+(\d+)", status)[1]) / 1024

    def processor_s(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def held(self):
        text = self.get("/metrics").text
        names = "budget_held_bytes|work_jobs|work_held_bytes|key_running_sequences"
        return sum(float(value) for value in re.findall(rf"^quire:(?:{names}){{[^}}]*}} (\S+)$", text, re.M))


class Honest:
    """One client's stream again and again: its tokens, and how long it waited for each."""

    def __init__(self, server):
        self.server, self.first_s, self.gaps_s, self.faults = server, [], [], []
        self.expected = self._stream()
        self.first_s, self.gaps_s = [], []

    def _stream(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        with contextlib.closing(connection):
            begun = last = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": PROMPT, **QUESTION}),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            tokens = []
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now = time.monotonic()
                (self.gaps_s if tokens else self.first_s).append(now - (last if tokens else begun))
                last = now
                tokens += json.loads(line[6:])["choices"][0]["token_ids"]
            return tokens

    def ask_until(self, end):
        while time.monotonic() < end:
            try:
                if (said := self._stream()) != self.expected:
                    self.faults.append(f"other tokens: {said}")
            except Exception as error:
                self.faults.append(repr(error))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    template = tmp_path_factory.mktemp("attacks") / "template.jinja"
    template.write_text(TALKING_TEMPLATE.replace("c.function | tojson", "c.function | tojson(indent=4)"))
    running = Limited("--chat-template", template, "--max-num-seqs", 16)
    yield running
    running.stop()


def p(values, share):
    return 1000 * sorted(values)[int(len(values) * share)] if values else 0.0


def told(kind, honest, server, cores, statuses):
    print(f"| {kind} | {statistics.median(honest.first_s or [0]) * 1000:.0f} | {p(honest.first_s, 0.99):.0f} "
          f"| {p(honest.gaps_s, 0.99):.0f} | {cores:.2f} | {server.memory_mb('VmHWM'):.0f} | {statuses} |")


def settled(server):
    end = time.monotonic() + 120
    while server.held() > 0 and time.monotonic() < end:
        time.sleep(0.1)
    return server.held()


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["none", *ATTACKS])
def test_no_attack_ends_the_server_or_keeps_anything_of_it(server, kind):
    honest = Honest(server)
    idle_mb = server.memory_mb()
    end = time.monotonic() + SECONDS
    bodies = [(path, json.dumps(body)) for path, body in ATTACKS.get(kind, [])]
    statuses, lock = {}, threading.Lock()

    def attack(first):
        turn = first
        while time.monotonic() < end:
            path, body = bodies[turn % len(bodies)]
            turn += 1
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LEAVES_S.get(kind, SECONDS + 20))
            with contextlib.closing(connection):
                try:
                    connection.request("POST", path, body, {"Content-Type": "application/json"})
                    status = connection.getresponse()
                    while status.read(1 << 20):
                        pass
                    status = status.status
                except (OSError, http.client.HTTPException) as error:
                    status = type(error).__name__
            with lock:
                statuses[status] = statuses.get(status, 0) + 1

    before_s, begun = server.processor_s(), time.monotonic()
    attackers = [threading.Thread(target=attack, args=(i,)) for i in range(8 if bodies else 0)]
    for thread in attackers:
        thread.start()
    honest.ask_until(end)
    for thread in attackers:
        thread.join()
    told(kind, honest, server, (server.processor_s() - before_s) / (time.monotonic() - begun), statuses)
    assert server.process.poll() is None, "the server is gone"
    assert not honest.faults, honest.faults[0]
    assert set(statuses) <= {200, 400, 413, 429, 503} | ({"TimeoutError"} if kind in LEAVES_S else set()), statuses
    assert settled(server) == 0
    assert server.memory_mb() <= idle_mb + AFTERWARDS_MB


@pytest.mark.heavy
def test_connections_that_send_nothing_whole_hold_nothing_afterwards(server):
    """Heads without bodies, bodies without ends, and what is no HTTP: each answered or dropped, and given back."""
    honest = Honest(server)
    begun = [b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n" + b" " * size
             for size in (0, 1000, 200_000)] + [b"\x16\x03\x01", b"EHLO x\r\n", b"POST /nowhere HTTP/1.1\r\n"]
    open_ones = []
    for i in range(300):
        one = socket.create_connection(("127.0.0.1", server.port))
        one.settimeout(5)
        with contextlib.suppress(OSError):
            one.sendall(begun[i % len(begun)])
        open_ones.append(one)
    honest.ask_until(time.monotonic() + SECONDS)
    for one in open_ones:
        one.close()
    assert not honest.faults, honest.faults[0]
    assert settled(server) == 0
