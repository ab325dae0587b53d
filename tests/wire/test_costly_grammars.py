"""Grammars that take long to compile hold up nobody else: neither requests without a grammar nor those with a simple one."""

import threading

import pytest

from conftest import Server

# Some 2^18 states: more than the limit of time allows on most machines, and far more than a simple grammar takes on any.
COSTLY = "([ab]*a[ab]{16}|[cd]*c[cd]{16})x%d"
BYSTANDERS = {
    "plain": {"max_tokens": 2},
    "simple": {"max_tokens": 2, "guided_regex": "(yes|no)!"},
    "schema": {"max_tokens": 4, "response_format": {"type": "json_schema", "json_schema": {
        "name": "one", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
                                  "additionalProperties": False}}}},
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    running = Server("--io-threads", 1)
    yield running
    running.stop()


def test_others_are_answered_before_costly_grammars_are(server):
    """Six costly ones are begun first; they take a second or more of one thread. Whoever comes later is answered earlier."""
    ended, lock = [], threading.Lock()

    def ask(name, fields):
        answer = server.post({"prompt": "Once", **fields})
        with lock:
            ended.append((name, answer.status))

    costly = [threading.Thread(target=ask, args=("costly", {"guided_regex": COSTLY % i, "max_tokens": 1})) for i in range(6)]
    for thread in costly:
        thread.start()
    others = [threading.Thread(target=ask, args=one) for one in BYSTANDERS.items()]
    for thread in others:
        thread.start()
    for thread in (*others, *costly):
        thread.join()
    names = [name for name, _ in ended]
    before = names[: max(names.index(name) for name in BYSTANDERS)]
    assert {status for name, status in ended if name != "costly"} == {200}
    assert {status for name, status in ended if name == "costly"} <= {200, 400, 503}
    assert before.count("costly") < 6, "everybody waited for all of the costly ones"
