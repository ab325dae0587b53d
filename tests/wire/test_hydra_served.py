"""Hydra heads beside the built-in model: random ones, which guess badly and must change nothing."""

import json
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, Server
from random_heads import write_hydra

PROMPTS = ["Once upon a time there was a little girl", "A list: one, two, three, one, two, three, one, two,", "Tom"]


def expect_same_answers(config):
    """With as many guesses as this drafter has, and without any."""
    server = Server("--speculative-config", json.dumps({"adaptive": False, **config}))
    try:
        for prompt in PROMPTS:
            for sampling in ({"temperature": 0}, {"temperature": 1, "top_p": 0.9, "n": 3}):
                told = []
                for way in (True, False, True):  # the last finds the first one's prefix
                    answer = server.complete(prompt, max_tokens=60, ignore_eos=True, seed=11, return_token_ids=True,
                                             speculative=way, **sampling)
                    told.append([choice["token_ids"] for choice in answer["choices"]])
                assert told[0] == told[1] == told[2], (prompt, sampling)
        assert server.metrics()["vllm:spec_decode_num_draft_tokens_total"] > 0
    finally:
        assert server.stop() == 0, server.log[-4000:]


@pytest.mark.parametrize("topk", [1, 3], ids=["chains", "trees"])
@pytest.mark.parametrize("prefix", [False, True], ids=["mlp", "prefix"])
def test_no_answer_depends_on_their_drafts(tmp_path, prefix, topk):
    write_hydra(tmp_path, prefix)
    expect_same_answers({"method": "hydra", "model": str(tmp_path), "topk": topk, "num_speculative_tokens": 6})


def test_heads_without_a_directory_are_refused():
    done = subprocess.run([BINARY, "serve", "--port", "0", "--speculative-config", '{"method": "hydra"}'], capture_output=True,
                          text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "the directory of Hydra heads" in done.stderr, done.stderr
