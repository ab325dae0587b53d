"""How many guesses of the drafters that were trained for the built-in model are right: a loader that reads one wrongly, or a row in
the wrong place, shows here and nowhere else, since no answer depends on it."""

import json
import re

import pytest

from conftest import ROOT, Server, idle
from test_hydra_served import expect_same_answers

PROMPTS = [
    "Once upon a time there was a little girl", "One day a dog and a cat", "The old man lived near the sea and",
    "Tom had a red ball. He", "It was raining, so Lily", "The bird wanted to fly, but",
    "Mia and Ben went to the park. They", "Once there was a big bear who", "The sun was warm and the", "Grandma made a cake for",
]  # fmt: skip
TOKENS = 120
# (config, temperature): the part of drafts whose guess at each depth was right, and tokens a step.
PINNED = {
    ("chain of 4", 0.0): ([0.836, 0.696, 0.596, 0.483], 3.611),
    ("chain of 4", 1.0): ([0.614, 0.388, 0.236, 0.158], 2.396),
    ("tree of 8", 0.0): ([0.968, 0.884, 0.686, 0.433], 4.292),
    ("tree of 8", 1.0): ([0.780, 0.591, 0.341, 0.167], 2.995),
    ("tree of 16", 0.0): ([0.987, 0.940, 0.815, 0.578], 5.129),
    ("tree of 16", 1.0): ([0.805, 0.632, 0.448, 0.293], 3.417),
    ("medusa, chain of 3", 0.0): ([0.583, 0.308, 0.156], 2.047),
    ("medusa, chain of 3", 1.0): ([0.327, 0.081, 0.019], 1.427),
    ("draft model, chain of 4", 0.0): ([0.813, 0.652, 0.526, 0.422], 3.414),
    ("draft model, chain of 4", 1.0): ([0.645, 0.384, 0.250, 0.169], 2.448),
}
CONFIGS = {
    "chain of 4": {"method": "eagle3", "num_speculative_tokens": 4},
    "tree of 8": {"method": "eagle3", "num_speculative_tokens": 8, "topk": 4},
    "tree of 16": {"method": "eagle3", "num_speculative_tokens": 16, "topk": 4},
    "medusa, chain of 3": {"method": "medusa", "model": f"{ROOT}/models/stories_medusa", "num_speculative_tokens": 3},
    "draft model, chain of 4": {"method": "draft_model", "model": f"{ROOT}/models/stories_draft_model", "num_speculative_tokens": 4},
}  # fmt: skip


def counters(server):
    text = server.get("/metrics").text
    by_depth = {int(depth): float(value) for depth, value in re.findall(
        r'^vllm:spec_decode_num_accepted_tokens_per_pos_total\{[^}]*position="(\d+)"[^}]*\} (\S+)', text, re.M)}
    return server.metrics()["vllm:spec_decode_num_drafts_total"], by_depth


@pytest.mark.parametrize("shape", CONFIGS)
def test_as_many_draft_tokens_are_accepted_at_each_depth_as_ever(shape):
    server = Server("--speculative-config", json.dumps({"adaptive": False, **CONFIGS[shape]}))
    try:
        for temperature in (0.0, 1.0):
            drafts, taken = counters(server)
            for seed, prompt in enumerate(PROMPTS):
                server.complete(prompt, max_tokens=TOKENS, temperature=temperature, seed=seed)
            server.wait_until(idle, "all have ended")
            more_drafts, more_taken = counters(server)
            num = more_drafts - drafts
            rates = [(more_taken[depth] - taken[depth]) / num for depth in sorted(taken)]
            expected, expected_tau = PINNED[shape, temperature]
            assert rates[:4] == pytest.approx(expected, abs=0.01)
            assert 1 + sum(rates) == pytest.approx(expected_tau, abs=0.02)
    finally:
        server.terminate()
        assert server.wait() == 0


@pytest.mark.parametrize("drafter", ["medusa, chain of 3", "draft model, chain of 4"])
@pytest.mark.parametrize("topk", [1, 3], ids=["chains", "trees"])
def test_no_answer_depends_on_their_drafts(drafter, topk):
    expect_same_answers({**CONFIGS[drafter], "topk": topk, "num_speculative_tokens": 6})


@pytest.mark.parametrize("drafter", ["chain of 4", "medusa, chain of 3", "draft model, chain of 4"])
def test_they_pass_the_test_before_serving(start_server, drafter):
    server = start_server("--speculative-config", json.dumps(CONFIGS[drafter]))
    server.wait_for_log("draft_self_test")
    (told,) = (line for line in server.log.splitlines() if "draft_self_test" in line)
    found = re.search(rf"info draft_self_test drafter={CONFIGS[drafter]['method']} right=(\d+) of=48", told)
    assert found and int(found[1]) >= 24, told
