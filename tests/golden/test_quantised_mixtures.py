"""Mixtures and models with latent attention in quantised safetensors checkpoints: the numbers of their matrices bit for bit, experts, logits and
greedy tokens.

quantised_mixtures.py makes them, with modules for each expert, and has the formula of each. The rest is as in test_quantised_checkpoints.py: what
is computed is what transformers computes in f32 with the numbers of the formula, within the tolerance of golden_support.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from golden_support import Reference, Run, check_greedy, check_logits, random_prompt, supported_isas  # noqa: E402
from quantised_mixtures import KINDS, make  # noqa: E402
from test_quantised_checkpoints import check_numbers  # noqa: E402

torch.set_num_threads(1)  # as in test_families.py
STEPS = 32
VOCAB = 320


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, tmp_path_factory):
    """(folder with the checkpoint in "model" and its numbers in f32 in "plain", {matrix: numbers})"""
    for package in KINDS[request.param].needs:
        pytest.importorskip(package, reason=f"{package} writes this format")
    folder = tmp_path_factory.mktemp(request.param)
    return folder, make(KINDS[request.param], folder)


def test_numbers_of_all_experts_are_those_of_the_formula_bit_for_bit(checkpoint):
    folder, matrices = checkpoint
    assert sum(".experts." in name for name in matrices) > len(matrices) / 2
    check_numbers(folder / "model", matrices)


def test_experts_logits_and_greedy_tokens_are_those_of_the_numbers_in_f32(checkpoint, tmp_path):
    folder, _ = checkpoint
    reference = Reference(folder / "plain")
    for length in (5, 70):
        prompt = random_prompt(length, VOCAB)
        run = Run(folder / "model", prompt, VOCAB, tmp_path, greedy=STEPS, activations="f32")
        reference.check_rope(run)
        experts = reference.experts(prompt)
        assert np.array_equal(run.experts.reshape(experts.shape), experts)
        assert len(np.unique(experts)) > 2
        check_logits(run, *reference(prompt))
        check_greedy(reference, prompt, run.greedy)
    assert len(set(run.greedy)) > 4, "the checkpoint repeats itself: equal tokens prove little"


@pytest.mark.parametrize("activations", ["int8", "f32"])
def test_bits_do_not_depend_on_chunks_threads_or_instruction_set(checkpoint, tmp_path, activations):
    folder, _ = checkpoint
    prompt = random_prompt(70, VOCAB)
    isas = supported_isas()
    ways = [(isas[-1], 64, 2), (isas[0], 7, 1), *((isa, 512, 2) for isa in isas[1:]), (isas[-1], 1, 1)]
    runs = [Run(folder / "model", prompt, VOCAB, tmp_path, greedy=8, isa=isa, chunk=chunk, threads=threads, activations=activations)
            for isa, chunk, threads in ways]
    for way, run in zip(ways, runs, strict=True):
        assert np.array_equal(run.logits.view(np.int32), runs[0].logits.view(np.int32)), way
        assert (run.greedy, run.mode) == (runs[0].greedy, runs[0].mode), way
