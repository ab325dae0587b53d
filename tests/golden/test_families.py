"""Logits and greedy tokens of each model family's tiny random checkpoints against transformers in f32 on the same bits.

family_checkpoints.py makes the checkpoints; golden_support.py derives the tolerance. Compared are the logits of every position
of prompts that end within a window, past blocks of 16 tokens and past a span of 256, with those of one full pass of
transformers, and 64 greedy tokens after each. longrope: transformers changes its frequencies with the length of a context;
quire has one table, so these configurations stay on one side of the change. Of mixtures the experts of every row and layer
must be transformers' own.

A third of the configurations is drawn for each run, with the controls; all of them are in the full set.
"""
import os
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from family_checkpoints import CONFIGURATIONS, edit_config, has_experts, write_checkpoint  # noqa: E402
from golden_support import U, Reference, Run, check_greedy, program, random_prompt, supported_isas  # noqa: E402

torch.set_num_threads(1)  # the matrices are tiny: threads that wait for each other take twenty times as long on a busy machine

STEPS = 64
# The same in all workers of a run; QUIRE_FAMILIES_SEED repeats one.
SEED = os.environ.get("QUIRE_FAMILIES_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(random.randrange(1 << 32))
CONTROLS = {"llama-control", "llama-control-tied-bf16"}
DRAWN = CONTROLS | set(random.Random(SEED).sample(sorted(CONFIGURATIONS), len(CONFIGURATIONS) // 3))
CASES = [name if name in DRAWN else pytest.param(name, marks=pytest.mark.full) for name in CONFIGURATIONS]


@pytest.fixture(params=CASES)
def tiny(request, tmp_path):
    """A configuration, and its checkpoint in tmp_path / "model"."""
    print(f"QUIRE_FAMILIES_SEED={SEED}")
    made = CONFIGURATIONS[request.param]
    if made.family not in transformers.CONFIG_MAPPING or not hasattr(transformers, made.wrapper or "CONFIG_MAPPING"):
        pytest.skip(f"transformers {transformers.__version__} has no {made.wrapper or made.family}")
    write_checkpoint(tmp_path / "model", made)
    return made


def test_logits_and_greedy_tokens_are_those_of_transformers(tiny, tmp_path):
    reference = Reference(tmp_path / "model")
    for length in tiny.lengths:
        prompt = random_prompt(length, reference.vocab)
        run = Run(tmp_path / "model", prompt, reference.vocab, tmp_path, greedy=STEPS)
        expected, _ = reference(prompt)  # longrope's table is that of the last pass
        reference.check_rope(run)
        expected, tolerance = reference(prompt)
        difference = np.abs(run.logits - expected).max(axis=-1)
        if has_experts(tiny):
            experts = reference.experts(prompt)
            assert np.array_equal(run.experts.reshape(experts.shape), experts)
            assert len(np.unique(experts)) > 2
        else:
            assert run.experts.size == 0
        print(f"{length} tokens: largest difference {difference.max():.3g}, {(difference / tolerance).max():.3g} of the tolerance "
              f"{tolerance.max():.3g}; logits within {np.abs(expected).max():.3g}; "
              f"frequencies off by {reference.frequency_error / U:.3g} u")
        assert np.isfinite(run.logits).all()
        assert (difference <= tolerance).all()
        assert len(run.greedy) == STEPS
        check_greedy(reference, prompt, run.greedy)
    assert len(set(run.greedy)) > 4, "the checkpoint repeats itself: equal tokens prove little"


def test_bits_do_not_depend_on_chunks_threads_or_instruction_set(tiny, tmp_path):
    prompt = random_prompt(tiny.lengths[-1], 320)
    isas = supported_isas()
    ways = [(isas[-1], 64, 2), (isas[0], 64, 2), (isas[-1], 1, 1), (isas[-1], 7, 2), (isas[-1], 512, 1)]
    runs = [Run(tmp_path / "model", prompt, 320, tmp_path, greedy=16, isa=isa, chunk=chunk, threads=threads)
            for isa, chunk, threads in ways]
    for way, run in zip(ways, runs, strict=True):
        assert np.array_equal(run.logits.view(np.int32), runs[0].logits.view(np.int32)), way
        assert run.greedy == runs[0].greedy, way


def test_what_sets_a_configuration_apart_shows_above_the_tolerance(tiny, tmp_path):
    """transformers with the same weights and one trait changed: were that what quire computes, the first test would fail."""
    directory = tmp_path / "model"
    reference = Reference(directory)
    prompt = random_prompt(tiny.lengths[-1], reference.vocab)
    expected, tolerance = reference(prompt)
    config = (directory / "config.json").read_text()
    ratios = {}
    for trait, keys in tiny.traits.items():
        edit_config(directory, keys)
        ratios[trait] = (np.abs(Reference(directory)(prompt)[0] - expected).max(axis=-1) / tolerance).max()
        (directory / "config.json").write_text(config)
    print(", ".join(f"{trait} {ratio:.3g} times the tolerance" for trait, ratio in ratios.items()))
    assert all(ratio > 2 for ratio in ratios.values())
