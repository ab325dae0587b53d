"""Models in block-quantised GGUF files served, times int8 and times f32: whatever the company, the pieces of a prompt, the
cache, drafts, preemption, threads and instruction sets, a request has the same answer to the last bit; times f32 over an
f32 cache it has that on the CPU and on the simulated GPU. A type is drawn for each run; all of them are heavy.

The requests and comparisons are those of tests/digest/answers_digest.py.
"""
import os
import pathlib
import random
import sys

import conftest
import pytest

pytest.importorskip("gguf", reason="GGUF files are written by the package gguf")
pytest.importorskip("torch", reason="the weights are read by torch")

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("digest", "support")]
import answers_digest as digest  # noqa: E402
import gguf_models  # noqa: E402

# The same in all workers of a run; QUIRE_BLOCKS_SEED repeats one.
SEED = os.environ.get("QUIRE_BLOCKS_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(random.randrange(1 << 32))
DRAWN = random.Random(SEED).choice(gguf_models.BLOCK_TYPES)
CASES = ["drawn", *(pytest.param(name, marks=pytest.mark.heavy) for name in gguf_models.BLOCK_TYPES)]

DRAFTERS = [
    {"method": "ngram", "prompt_lookup_min": 1},
    {"method": "suffix", "num_speculative_tokens": 12, "topk": 3},
    {"method": "layer_skip", "exit_layer": 2, "topk": 2},
    {"method": "draft_model", "model": "{model}"},
]
F32 = ("--activations", "f32")
TIGHT = ("--kv-cache-memory", "1280KiB", "--max-model-len", "384", "--max-num-seqs", "20", "--kv-debug", "check,poison")
ALL_F32 = (*F32, "--kv-cache-dtype", "f32")


def configurations():
    def one(title, *flags, mode="int8", happens=(), streams=8, device="cpu", jobs=digest.RANDOM_JOBS):
        limits = digest.SIMULATED if device == "simulated" else ()
        return digest.Configuration(title, ("--model", "{model}", *limits, *flags), jobs, mode, happens, streams, device == "simulated")

    yield one("as it comes", happens=(digest.FOUND,), jobs=digest.RANDOM_JOBS + digest.EMBEDDING_JOBS)
    yield one("one at a time, without a prefix cache", "--prefix-caching", "off", "--threads", "1", streams=1,
              jobs=digest.RANDOM_JOBS + digest.EMBEDDING_JOBS)
    yield one("prompts in pieces", "--max-num-batched-tokens", "33", "--max-num-seqs", "8", "--block-size", "64")
    for isa in digest.isas_here():
        yield one(isa, "--isa", isa)
    for drafter in DRAFTERS:
        yield one(digest.name_of(drafter), *digest.guessing(drafter), happens=(digest.DRAFTED,))
    yield one("preempted", *TIGHT, "--speculative-config", '{"method": "none"}', streams=20, happens=(digest.PREEMPTED,))
    yield one("packed", "--packed-cache", "{cache}")
    yield one("mapped", "--packed-cache", "{cache}")
    for cache in ("fp8", "int4"):
        yield one(f"cache {cache}", "--kv-cache-dtype", cache, mode=cache)
        yield one(f"cache {cache}, in pieces", "--kv-cache-dtype", cache, "--max-num-batched-tokens", "33", "--threads", "1", mode=cache)
    simulated = {"mode": "simulated", "jobs": digest.SIMULATED_JOBS, "streams": 4, "device": "simulated"}
    yield one("simulated", **simulated)
    yield one("simulated, in pieces", "--block-size", "32", "--prefix-caching", "off", **{**simulated, "streams": 1})
    yield one("simulated, two ranks", "--tensor-parallel-size", "2", **simulated)

    yield one("times f32", *F32, mode="f32", happens=(digest.FOUND,))
    yield one("times f32, in pieces", *F32, "--max-num-batched-tokens", "33", "--threads", "1", "--isa", "avx2", mode="f32")
    yield one("all in f32", *ALL_F32, mode="all in f32", jobs=digest.SIMULATED_JOBS)
    yield one("all in f32, simulated", *ALL_F32, **{**simulated, "mode": "all in f32"})


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_same_however_they_are_computed(name, tmp_path, monkeypatch):
    name = DRAWN if name == "drawn" else name
    print(f"{name}, QUIRE_BLOCKS_SEED={SEED}")
    places = {"{model}": gguf_models.write_drawn(tmp_path / "model.gguf", name), "{cache}": tmp_path}
    wrong, reports = digest.unlike_answers(configurations(), conftest, places, monkeypatch)
    assert not wrong
    answers = {one["mode"]: one["answers"] for one in reports.values()}
    assert answers["int8"] != answers["f32"]
