"""Each method that guesses, with every rule, number and temperature: the answers are those of a server that guesses nothing, alone
and together, with a prefix cache and without, preempted or not."""

import concurrent.futures
import json
import re
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, ROOT, Server
from guessers import write_guessers

MODELS = ROOT / "models"
SMALL = {"model": str(MODELS / "stories_draft_model")}
MEDUSA = {"model": str(MODELS / "stories_medusa")}
TREE = {"num_speculative_tokens": 12, "topk": 3}
EAGLE, HYDRA, DATASTORE = "<eagle>", "<hydra>", "<datastore>"  # made for this module
METHODS = {
    "eagle3": {"method": "eagle3"},
    "eagle3, trees": {"method": "eagle3", **TREE},
    "eagle3, guessing without the noise": {"method": "eagle3", "shared_noise": False},
    "eagle": {"method": "eagle", "model": EAGLE},
    "eagle, trees": {"method": "eagle", "model": EAGLE, **TREE},
    "medusa": {"method": "medusa", **MEDUSA},
    "medusa, trees": {"method": "medusa", **MEDUSA, **TREE},
    "hydra": {"method": "hydra", "model": HYDRA},
    "draft_model": {"method": "draft_model", **SMALL},
    "draft_model, trees": {"method": "draft_model", **SMALL, **TREE},
    "specinfer": {"method": "specinfer", "model": [SMALL["model"], str(MODELS / "stories")], "num_speculative_tokens": 8},
    "layer_skip": {"method": "layer_skip", "exit_layer": 3},
    "layer_skip, trees": {"method": "layer_skip", "exit_layer": 3, **TREE},
    "draft_verify": {"method": "draft_verify"},
    "draft_verify, trees": {"method": "draft_verify", **TREE},
    "magicdec": {"method": "magicdec", "sinks": 16, "window": 16},
    "magicdec, trees": {"method": "magicdec", "sinks": 16, "window": 16, **TREE},
    "triforce": {"method": "triforce", "sinks": 16, "window": 16, **SMALL},
    "ngram": {"method": "ngram", "prompt_lookup_min": 1},
    "suffix": {"method": "suffix"},
    "suffix, trees": {"method": "suffix", **TREE},
    "rest": {"method": "rest", "datastore": DATASTORE},
    "rest, trees": {"method": "rest", "datastore": DATASTORE, **TREE},
    "lookahead": {"method": "lookahead"},
    "lookahead, with a window": {"method": "lookahead", "window": 5, "ngram_size": 4},
    "hybrid": {"method": "hybrid"},
}
STORY = "Once upon a time there was a little girl. She had a red ball. She had a red"
LIST = "A list: one, two, three, one, two, three, one, two,"
SCHEMA = {"type": "object", "properties": {"name": {"enum": ["Tom", "Lily"]}, "age": {"type": "integer", "maximum": 9}},
          "required": ["name", "age"]}
JOBS = [job | {"prompt": prompt, "seed": 5 + number, "max_tokens": 40} for number, (prompt, job) in enumerate([
    (STORY, {"temperature": 0}),
    (STORY, {"temperature": 0.7, "top_p": 0.9}),
    (STORY, {"temperature": 1.3, "top_k": 30}),
    (LIST, {"temperature": 0, "ignore_eos": True}),
    (LIST, {"temperature": 0.7, "min_p": 0.05, "logprobs": 3}),
    (LIST, {"temperature": 1.3, "top_p": 0.95, "n": 4}),
    (STORY, {"temperature": 0, "presence_penalty": 0.6, "frequency_penalty": 0.4}),
    (LIST, {"temperature": 1.0, "repetition_penalty": 1.2, "logit_bias": {"300": 4, "17": -100}}),
    (STORY, {"temperature": 0.7, "stop": [" and", "ball."], "include_stop_str_in_output": True}),
    (LIST, {"temperature": 0, "stop": ["three, one"], "logprobs": 0}),
    ("A child:", {"temperature": 0.7, "structured_outputs": {"json": SCHEMA}}),
    ("Numbers:", {"temperature": 1.3, "structured_outputs": {"regex": "( [a-z]{1,6},){6}"}, "n": 2}),
    (STORY, {"temperature": 1.0, "typical_p": 0.9, "min_tokens": 20, "bad_words": ["the", "ball"]}),
    (LIST, {"temperature": 0.7, "n": 2, "best_of": 3, "top_p": 0.9}),
    ("word " * 60, {"temperature": 0, "echo": True, "logprobs": 2}),
    (STORY, {"temperature": 1.3, "allowed_token_ids": list(range(200, 1200))}),
])]  # fmt: skip
# Blocks for a few of the requests that are there at once, and prompts in pieces.
TIGHT = ["--max-model-len", "128", "--max-num-batched-tokens", "48", "--max-num-seqs", "16", "--kv-debug", "check,poison"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What some guess from: name → path."""
    folder = tmp_path_factory.mktemp("guesses")
    write_guessers(folder, f"{STORY} ball. One day she lost it.\n{LIST} three, one, two, three.\n" * 20)
    return {EAGLE: folder / "eagle", HYDRA: folder / "hydra", DATASTORE: folder / "store"}


def heard(server, job):
    """All that a client reads of an answer but what is counted and timed."""
    return server.complete(**job, return_token_ids=True)["choices"]


@pytest.fixture(scope="module")
def expected():
    """Without guesses, one at a time."""
    server = Server("--speculative-config", '{"method": "none"}')
    answers = [heard(server, job) for job in JOBS]
    assert server.stop() == 0, server.log[-4000:]
    return answers


def enough_for_few(config):
    """A cache for the longest request, and some blocks besides: what a server that has too little asks for, and a MiB."""
    done = subprocess.run([BINARY, "serve", "--port", "0", "--speculative-config", json.dumps(config), *TIGHT, "--kv-cache-memory", "1KiB"],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    asked = re.search(r"one sequence of 128 tokens takes ([\d.]+) (KiB|MiB)", done.stderr)
    return f"{int(float(asked[1]) * (1 if asked[2] == 'KiB' else 1024)) + 1024}KiB"


def expect_answers(expected, config, rounds, *flags):
    """Of a server that makes as many guesses as it may."""
    server = Server("--speculative-config", json.dumps({"adaptive": False, **config}), *flags)
    try:
        for streams in rounds:
            with concurrent.futures.ThreadPoolExecutor(streams) as pool:
                answers = list(pool.map(lambda job: heard(server, job), JOBS))
            for job, answer, right in zip(JOBS, answers, expected, strict=True):
                assert answer == right, (streams, job)
        metrics = server.metrics()
        assert metrics["vllm:spec_decode_num_draft_tokens_total"] > 0
        return metrics
    finally:
        assert server.stop() == 0, server.log[-4000:]


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_depends_on_its_drafts(method, made, expected):
    config = {key: str(made.get(value, value)) if isinstance(value, str) else value for key, value in METHODS[method].items()}
    metrics = expect_answers(expected, config, (1, len(JOBS)))
    assert metrics["vllm:prefix_cache_hits_total"] > 0  # the second round's
    metrics = expect_answers(expected, config, (len(JOBS), len(JOBS)), *TIGHT, "--prefix-caching", "off", "--kv-cache-memory",
                             enough_for_few(config))
    assert metrics["vllm:num_preemptions_total"] > 0
