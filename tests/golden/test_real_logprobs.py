"""Log probabilities over the wire against transformers' log-softmax, for the model inside the binary with K and V in f32.

Tolerance, derived: where every logit of a row is off by at most t (test_against_transformers.py), each log probability is
off by at most 2·t: subtracting the log of the sum of exponentials moves by no more than t itself. Our own sum of V
exponentials in f32 adds at most LAMBDA·sqrt(V)·u to the logarithm, and the last subtraction an ulp of the result.
"""
import importlib.util
import pathlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
pytest.importorskip("transformers", reason="golden tests need transformers")

from golden_support import LAMBDA, U, Reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = ["Once upon a time there was a little girl named Lily.", "The dragon 漢字 said: \"Hello\"", "One day, Tom and his mom" * 6]


@pytest.fixture(scope="module")
def server():
    spec = importlib.util.spec_from_file_location("wire_conftest", ROOT / "tests" / "wire" / "conftest.py")
    wire = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wire)
    running = wire.Server("--kv-cache-dtype", "f32")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def reference():
    made = Reference(ROOT / "models" / "stories")
    made.frequency_error = 4 * U
    return made


def expected_of(reference, ids):
    logits, tolerance = reference(ids)
    scores = torch.log_softmax(torch.tensor(logits, dtype=torch.float64), dim=-1).numpy()
    return scores, 2 * tolerance + LAMBDA * np.sqrt(reference.vocab) * U + np.abs(scores).max(axis=-1) * U


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompt_and_answer_are_scored_as_transformers_scores_them(server, reference, prompt):
    answer = server.complete(prompt, max_tokens=24, seed=5, temperature=1.0, ignore_eos=True, echo=True, logprobs=5,
                             prompt_logprobs=3, return_token_ids=True)["choices"][0]
    ids = answer["prompt_token_ids"] + answer["token_ids"]
    scores, tolerance = expected_of(reference, ids)
    told = answer["logprobs"]["token_logprobs"]
    assert len(told) == len(ids) and told[0] is None
    for i in range(1, len(ids)):
        assert abs(told[i] - scores[i - 1, ids[i]]) <= tolerance[i - 1], i
        likeliest = sorted(answer["logprobs"]["top_logprobs"][i].values(), reverse=True)[:5]
        assert np.abs(np.array(likeliest) - np.sort(scores[i - 1])[::-1][:len(likeliest)]).max() <= tolerance[i - 1], i
    assert answer["prompt_logprobs"][0] is None
    for i, entry in enumerate(answer["prompt_logprobs"][1:], start=1):
        assert 3 <= len(entry) <= 4 and str(ids[i]) in entry
        for token, score in entry.items():
            row = scores[i - 1]
            assert abs(score["logprob"] - row[int(token)]) <= tolerance[i - 1]
            above = int((row > row[int(token)] + 2 * tolerance[i - 1]).sum())
            below = int((row >= row[int(token)] - 2 * tolerance[i - 1]).sum())
            assert above + 1 <= score["rank"] <= max(below, 1)


def test_scores_are_the_same_bits_without_decoding_and_by_themselves(server, reference):
    fields = dict(echo=True, logprobs=2, seed=1)
    prompt = PROMPTS[2]
    longer = server.complete(prompt, max_tokens=5, **fields)["choices"][0]["logprobs"]
    alone = server.complete(prompt, max_tokens=0, **fields)["choices"][0]["logprobs"]
    length = len(alone["tokens"])
    assert {name: values[:length] for name, values in longer.items()} == alone
