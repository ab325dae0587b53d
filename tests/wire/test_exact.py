"""Over the wire: an answer does not depend on who else is being answered."""

import concurrent.futures

from conftest import choices_of

PROMPTS = ["Once upon a time", "The dragon", "One day, Tom found a", "", "Lily and Ben went to the park. They saw a big",
           "word " * 100, "The", "In the morning the sun"]


def test_together_is_as_alone(server):
    jobs = [dict(prompt=PROMPTS[i % len(PROMPTS)], seed=i, temperature=[0, 0.7, 1.0][i % 3], top_k=[0, 5][i % 2],
                 top_p=[1.0, 0.9][i % 2], max_tokens=16 + i) for i in range(32)]
    alone = [server.text(**job) for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        together = list(pool.map(lambda job: server.text(**job), jobs))
    assert together == alone


def streamed_text(server, job):
    with server.stream(**job) as events:
        return choices_of(events)[0][0][0]


def test_streams_together_are_as_alone(server):
    jobs = [dict(prompt=PROMPTS[i % len(PROMPTS)], seed=100 + i, max_tokens=32) for i in range(24)]
    alone = [server.text(**job) for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        together = list(pool.map(lambda job: streamed_text(server, job), jobs))
    assert together == alone
