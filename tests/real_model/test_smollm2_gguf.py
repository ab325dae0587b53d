"""SmolLM2-135M-Instruct from GGUF files, as they are: times f32, the answers of a file's own numbers in f32; times int8, sensible ones
at a distance that is stated. Q4_1 is the file that a package carries; the others are llama.cpp's, made of it."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="the weights are read by torch")

import llama_cpp  # noqa: E402
import smollm2  # noqa: E402
from test_inspect import agree_within_three  # noqa: E402
from test_smollm2 import CONVERSATIONS, ask, essence, served  # noqa: E402

# The others want llama.cpp to be built first.
KINDS = [pytest.param("Q4_1", marks=pytest.mark.full), *(pytest.param(kind, marks=pytest.mark.heavy) for kind in ("Q8_0", "Q6_K", "Q4_K_M", "IQ4_XS"))]


@functools.cache
def answers(kind):
    """{name: (from the file times f32, from its numbers in f32, from the file times int8)}"""
    file = smollm2.gguf_file() if kind == "Q4_1" else llama_cpp.quantised(kind)
    numbers = smollm2.checkpoint("float32") if kind == "Q4_1" else llama_cpp.converted(file, "F32")
    out = {}
    for place, flags in ((file, ("--activations", "f32")), (numbers, ()), (file, ())):
        server = served(place, *flags)
        for name, messages in CONVERSATIONS.items():
            out.setdefault(name, []).append(ask(server, messages, logprobs=True, top_logprobs=5)[1])
        assert server.stop() == 0, server.log[-4000:]
    return out


def test_there_are_twenty_conversations():
    assert len(CONVERSATIONS) >= 20


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_log_probabilities_are_those_of_the_numbers_in_f32(kind):
    for name, (of_file, of_numbers, _) in answers(kind).items():
        assert essence(of_file) == essence(of_numbers), name
        assert of_file["logprobs"] == of_numbers["logprobs"], name


@pytest.mark.parametrize("kind", KINDS)
def test_times_int8_log_probabilities_are_near_and_other_tokens_near_ties(kind):
    """Up to the first token that differs, both have seen the same text: there the log probabilities can be compared."""
    distances, ties, alike = [], [], 0
    for _, of_numbers, in_integers in answers(kind).values():
        both = list(zip(of_numbers["logprobs"]["content"], in_integers["logprobs"]["content"]))
        same = [a["token"] == b["token"] for a, b in both]
        shared = same.index(False) if False in same else len(both)
        alike += shared == len(both)
        distances += [abs(a["logprob"] - b["logprob"]) for a, b in both[:shared]]
        if shared < len(both):
            best, other = both[shared]
            of_other = [top["logprob"] for top in best["top_logprobs"] if top["token"] == other["token"]]
            ties.append(best["logprob"] - (of_other or [-float("inf")])[0])
    mean = sum(distances) / len(distances)
    print(f"{kind} times int8: {alike} of {len(answers(kind))} answers alike; log probabilities off by {mean:.4f} on average, {max(distances):.3f} at most;"
          f" tokens that differ are {max(ties):.3f} less likely in f32 at most")  # fmt: skip
    assert len(distances) > 100 and mean < 0.05 and max(distances) < 1.0 and max(ties) < 1.2


@pytest.mark.parametrize("kind", KINDS)
def test_times_int8_the_model_adds_two_and_three(kind):
    assert "5" in answers(kind)["english-sum"][2]["message"]["content"]


@pytest.mark.full
def test_the_speed_that_inspect_expects_is_within_a_factor_of_three_of_a_measured_run():
    agree_within_three(smollm2.gguf_file())
