"""SmolLM2-135M-Instruct from the GGUF file that a package carries, as it is: the answers of its own numbers in f32."""

import pytest

torch = pytest.importorskip("torch", reason="the weights are read by torch")

import smollm2  # noqa: E402
from test_smollm2 import CONVERSATIONS, ask, essence, served  # noqa: E402

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def answers():
    """{name: (from the file, from the directory)}"""
    out = {}
    for place in (smollm2.gguf_file(), smollm2.checkpoint("float32")):
        server = served(place)
        for name, messages in CONVERSATIONS.items():
            out.setdefault(name, []).append(ask(server, messages, logprobs=True)[1])
        assert server.stop() == 0, server.log[-4000:]
    return out


def test_there_are_twenty_conversations():
    assert len(CONVERSATIONS) >= 20


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_answer_and_its_log_probabilities_are_those_of_the_numbers_in_f32(answers, name):
    of_file, of_numbers = answers[name]
    assert essence(of_file) == essence(of_numbers)
    assert of_file["logprobs"] == of_numbers["logprobs"]
