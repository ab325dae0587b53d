"""Ends under load: what was accepted is answered, what was not is told so, and a killed server's successor goes on."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import re
import threading

import pytest

from conftest import PACED, PATIENCE_S, choices_of, events_of
from test_cache import FIELDS, PROMPT, cached, order

NUM_ROUNDS = 20
NUM_CLIENTS = 16
# Four short ones and four long ones, every other one streamed.
BODIES = [dict(model="stories", prompt="Once upon a time", seed=i, max_tokens=(24, 240)[i // 4], ignore_eos=True, stream=i % 2 == 0) for i in range(8)]
# Nobody took the connection out of the listener's backlog, or the server closed it before it had read a request.
NEVER_ACCEPTED = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)


class Crowd:
    """Clients that ask on new connections until nobody listens. `became`: id → (what became of it, its body's number, its text)."""

    def __init__(self, server, seed):
        self.server, self.seed, self.became = server, seed, {}
        self.answered = threading.Semaphore(0)  # one more for each

    def run(self, number):
        draw = random.Random(f"{self.seed} {number}")
        what = ""
        for count in range(10_000):
            if what == "refused connection":
                return
            which = draw.randrange(len(BODIES))
            what, text = self.ask(f"client-{number}.{count}", BODIES[which])
            self.became[f"client-{number}.{count}"] = what, which, text
            self.answered.release()

    def ask(self, name, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json", "X-Request-Id": name})
            response = connection.getresponse()
        except NEVER_ACCEPTED as error:
            return ("refused connection" if isinstance(error, ConnectionRefusedError) else "never accepted"), ""
        else:
            return self.read(response, body["stream"])  # what has a head has an end, or this raises
        finally:
            connection.close()

    def read(self, response, streamed):
        if response.status == 503:
            answer = json.loads(response.read())
            if response.headers["retry-after"] is None:
                return "cut", answer["error"]["message"]
            assert int(response.headers["retry-after"]) >= 1
            return "refused", ""
        assert response.status == 200
        if not streamed:
            return "whole", json.loads(response.read())["choices"][0]["text"]
        events = list(events_of(response))
        assert events[-1] == "[DONE]"
        if "error" in json.loads(events[-2]):
            assert json.loads(events[-2])["error"]["code"] == 503
            return "cut", ""
        return "whole", choices_of(events)[0][0][0]


def end_under_load(server, seed):
    """What became of each request of a crowd, among which the server is told to go."""
    crowd = Crowd(server, seed)
    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        clients = [pool.submit(crowd.run, number) for number in range(NUM_CLIENTS)]
        for _ in range(random.Random(seed).randrange(8, 80)):
            assert crowd.answered.acquire(timeout=PATIENCE_S)
        server.terminate()
        for client in clients:
            client.result(PATIENCE_S)
    assert server.wait() == 0, server.log[-4000:]
    return crowd.became


def logged(server):
    """id → status, as the server's log tells of completions."""
    return {name: int(status) for name, status in re.findall(r"\brequest id=(\S+) method=POST path=/v1/completions status=(\d+)", server.log)}


@pytest.mark.heavy
def test_sigterm_under_load_loses_no_accepted_request(start_server, server):
    expected = [server.text(**{**body, "stream": False}) for body in BODIES]
    kinds = set()
    for seed in range(NUM_ROUNDS):
        ending = start_server("--max-num-seqs", 4, "--drain-timeout", "60s")
        became = end_under_load(ending, seed)
        for name, (what, which, text) in became.items():
            assert what != "cut", f"round {seed}: {name}"
            assert what != "whole" or text == expected[which], f"round {seed}: {name}"
        # The server's own account: what it answered arrived, and what did not arrive was not begun.
        answered = {name: {"whole": 200, "refused": 503}[what] for name, (what, _, _) in became.items() if what in ("whole", "refused")}
        assert logged(ending) == answered, f"round {seed}"
        assert "every answer was finished" in ending.log
        kinds |= {what for what, _, _ in became.values()}
    assert {"whole", "refused", "refused connection"} <= kinds, f"the rounds tried too little: {kinds}"


@pytest.mark.heavy
def test_what_outlasts_the_drain_under_load_is_reported(start_server):
    """A step takes 2 ms at least, four answers at a time: what sixteen clients wait for cannot end in 10 ms, however slow they are to ask."""
    for seed in range(5):
        ending = start_server("--min-step-time", "2ms", *PACED[2:], "--max-num-seqs", 4, "--drain-timeout", "10ms")
        kinds = {what for what, _, _ in end_under_load(ending, seed).values()}
        assert "cut" in kinds and "whole" in kinds, kinds
        assert "some answers were cut short" in ending.log


def test_a_killed_server_s_cache_is_taken_up_by_its_successor(start_server, tmp_path):
    killed = start_server("--cache-dir", tmp_path, *PACED)
    answer = killed.complete(PROMPT, **FIELDS)
    assert order(killed, "save", {"path": "all.kv"}).status == 200
    with killed.stream("Once upon a time", max_tokens=400, ignore_eos=True) as events:
        received = [next(events)]
        killed.process.kill()
        with contextlib.suppress(http.client.HTTPException, OSError):
            received += events
    assert received[-1] != "[DONE]", "the answer was over before the server was"
    after = start_server("--cache-dir", tmp_path)
    assert order(after, "load", {"path": "all.kv"}).status == 200
    found = after.complete(PROMPT, **FIELDS)
    assert cached(found) == 99 and found["choices"] == answer["choices"]


@pytest.mark.heavy
def test_a_server_killed_while_it_saves_leaves_the_cache_of_before_or_the_new_one(start_server, tmp_path):
    """Never half of one: each server takes up what the one before it left, and answers the same."""
    prompts = [[500 + i] * 400 for i in range(40)]
    choices = {}
    for number in range(7):
        server = start_server("--cache-dir", tmp_path)
        if number > 0:
            loaded = order(server, "load", {"path": "all.kv"})
            assert loaded.status == 200 and loaded.json["blocks"] > 0 and loaded.json["skipped"] == 0, loaded.text
        for i in range(5 * number, 5 * number + 10):
            found = server.complete(prompts[i], **FIELDS)
            assert found["choices"] == choices.setdefault(i, found["choices"])
        if number == 0:
            assert order(server, "save", {"path": "all.kv"}).status == 200
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            saving = pool.submit(order, server, "save", {"path": "all.kv"})
            while not (tmp_path / ".all.kv.part").exists() and not saving.done():
                pass
            server.process.kill()
            server.process.wait()
