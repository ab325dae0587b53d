"""SmolLM2-135M-Instruct from the GGUF file that a package carries, as it is: times f32, the answers of its own numbers in f32; times
int8, sensible ones at a distance that is stated."""

import pytest

torch = pytest.importorskip("torch", reason="the weights are read by torch")

import smollm2  # noqa: E402
from test_smollm2 import CONVERSATIONS, ask, essence, served  # noqa: E402

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def answers():
    """{name: (from the file times f32, from the directory, from the file times int8)}"""
    out = {}
    for place, flags in ((smollm2.gguf_file(), ("--activations", "f32")), (smollm2.checkpoint("float32"), ()), (smollm2.gguf_file(), ())):
        server = served(place, *flags)
        for name, messages in CONVERSATIONS.items():
            out.setdefault(name, []).append(ask(server, messages, logprobs=True)[1])
        assert server.stop() == 0, server.log[-4000:]
    return out


def test_there_are_twenty_conversations():
    assert len(CONVERSATIONS) >= 20


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_answer_and_its_log_probabilities_are_those_of_the_numbers_in_f32(answers, name):
    of_file, of_numbers, _ = answers[name]
    assert essence(of_file) == essence(of_numbers)
    assert of_file["logprobs"] == of_numbers["logprobs"]


def test_times_int8_most_answers_begin_alike_and_log_probabilities_are_near(answers):
    """Up to the first token that differs, both have seen the same text: there the log probabilities can be compared."""
    distances, alike = [], 0
    for _, of_numbers, in_integers in answers.values():
        both = list(zip(of_numbers["logprobs"]["content"], in_integers["logprobs"]["content"]))
        same = [a["token"] == b["token"] for a, b in both]
        shared = same.index(False) if False in same else len(both)
        alike += shared == len(both)
        distances += [abs(a["logprob"] - b["logprob"]) for a, b in both[:shared]]
    mean = sum(distances) / len(distances)
    print(f"times int8: {alike} of {len(answers)} answers alike; log probabilities off by {mean:.4f} on average, {max(distances):.3f} at most")
    assert len(distances) > 100 and mean < 0.05 and max(distances) < 1.0
