"""Families of models served: whatever the company, the pieces of a prompt, the cache, drafts, preemption, threads and
instruction sets, a request has the same answer to the last bit. Two families are drawn for each run; all of them are heavy.

The checkpoints are those of the golden tests; requests and comparisons are those of tests/digest/answers_digest.py.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

import conftest
import pytest

pytest.importorskip("torch", reason="the checkpoints are drawn by torch")
transformers = pytest.importorskip("transformers", reason="the checkpoints are written by transformers")

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("digest", "golden", "support")]
import answers_digest as digest  # noqa: E402
from family_checkpoints import CONFIGURATIONS, has_experts, write_checkpoint  # noqa: E402
from tiny_model import byte_tokenizer  # noqa: E402

# The same in all workers of a run; QUIRE_FAMILIES_SEED repeats one.
SEED = os.environ.get("QUIRE_FAMILIES_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(random.randrange(1 << 32))
DRAWN = random.Random(SEED).sample(sorted(CONFIGURATIONS), 2)
CASES = ["first drawn", "second drawn", *(pytest.param(name, marks=pytest.mark.heavy) for name in CONFIGURATIONS)]

DRAFTERS = [
    {"method": "ngram", "prompt_lookup_min": 1},
    {"method": "suffix", "num_speculative_tokens": 12, "topk": 3},
    {"method": "layer_skip", "exit_layer": 1, "topk": 2},
    {"method": "draft_verify"},
    {"method": "lookahead", "window": 3, "ngram_size": 3},
    {"method": "draft_model", "model": "{model}"},
]
PAIRS = (("int8", "int8"), ("int4", "bf16"), ("w8a8", "fp8"), ("w16a16", "int4"))
TIGHT = ("--max-model-len", "384", "--max-num-seqs", "20", "--kv-debug", "check,poison")


@pytest.fixture(params=CASES)
def family(request, tmp_path):
    """A family's name, and its checkpoint with a tokenizer in tmp_path / "model"."""
    name = {"first drawn": DRAWN[0], "second drawn": DRAWN[1]}.get(request.param, request.param)
    print(f"{name}, QUIRE_FAMILIES_SEED={SEED}")
    tiny = CONFIGURATIONS[name]
    if tiny.family not in transformers.CONFIG_MAPPING or not hasattr(transformers, tiny.wrapper or "CONFIG_MAPPING"):
        pytest.skip(f"transformers {transformers.__version__} has no {tiny.wrapper or tiny.family}")
    write_checkpoint(tmp_path / "model", tiny)
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(byte_tokenizer(320)))
    return name


def configurations(name, config):
    """Configurations of a checkpoint on the CPU, and on the simulated GPU."""

    def one(title, *flags, mode="plain", happens=(), streams=8, simulated=False, jobs=digest.RANDOM_JOBS):
        device = digest.SIMULATED if simulated else ()
        return digest.Configuration(f"{name}, {title}", ("--model", "{model}", *device, *flags), jobs, mode, happens, streams, simulated)

    yield one("as it comes", happens=(digest.FOUND,), jobs=digest.RANDOM_JOBS + digest.EMBEDDING_JOBS)
    yield one("one at a time, without a prefix cache", "--prefix-caching", "off", "--threads", "1", streams=1,
              jobs=digest.RANDOM_JOBS + digest.EMBEDDING_JOBS)
    yield one("prompts in pieces", "--max-num-batched-tokens", "33", "--max-num-seqs", "8", "--block-size", "64")
    for isa in digest.isas_here():
        yield one(isa, "--isa", isa)
    for drafter in DRAFTERS:
        yield one(digest.name_of(drafter), *digest.guessing(drafter), happens=(digest.DRAFTED,))
    yield one("preempted", "--kv-cache-memory", "{memory}", *TIGHT, "--speculative-config", '{"method": "none"}',
              streams=20)
    for quantize, cache in PAIRS:
        if cache == "int4" and (config.get("num_kv_shared_layers") or config.get("kv_lora_rank")):
            continue  # refused: test_int4_is_refused_where_k_and_v_are_not_a_layers_own_two
        types, mode = digest.typed(quantize, cache), f"weights {quantize}, cache {cache}"
        yield one(mode, *types, mode=mode)
        yield one(f"{mode}, in pieces", *types, "--max-num-batched-tokens", "33", "--max-num-seqs", "8", "--threads", "1", mode=mode)
    if config.get("kv_lora_rank"):
        return  # refused: test_what_gpus_have_no_kernels_for_is_refused
    simulated = {"mode": "simulated", "jobs": digest.SIMULATED_JOBS, "streams": 4, "simulated": True}
    yield one("simulated", **simulated)
    yield one("simulated, in pieces", "--block-size", "32", "--prefix-caching", "off", **{**simulated, "streams": 1})
    yield one("simulated, two ranks", "--tensor-parallel-size", "2", **simulated)
    if has_experts(CONFIGURATIONS[name]) and config.get("dtype") == "float32":  # the bits of the CPU
        in_f32 = ("--kv-cache-dtype", "f32")
        yield one("all in f32", *in_f32, mode="all in f32", jobs=digest.SIMULATED_JOBS)
        yield one("all in f32, simulated", *in_f32, **{**simulated, "mode": "all in f32"})


def test_answers_are_the_same_however_they_are_computed(family, tmp_path, monkeypatch):
    places = {"{model}": tmp_path / "model", "{memory}": memory_for(tmp_path / "model", tokens=448)}
    wrong, _ = digest.unlike_answers(configurations(family, text_config(tmp_path / "model")), conftest, places, monkeypatch)
    assert not wrong


@pytest.mark.parametrize(("name", "why"), [
    ("deepseek_v3", "layers have latent attention (kv_lora_rank), which runs on the CPU alone"),
])  # fmt: skip
def test_what_gpus_have_no_kernels_for_is_refused(name, why, tmp_path):
    write_checkpoint(tmp_path / "model", CONFIGURATIONS[name])
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(byte_tokenizer(320)))
    done = subprocess.run([conftest.BINARY.with_name("quire-simulated"), "serve", "--device", "simulated", "--model", tmp_path / "model",
                           "--port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert why in done.stderr


def text_config(model):
    config = json.loads((model / "config.json").read_text())
    return config.get("text_config", config)


def memory_for(model, tokens):
    """The KV cache of so many tokens: the longest request and little more."""
    seen = json.loads(subprocess.run([conftest.BINARY, "inspect", model, "--json"], check=True, capture_output=True, text=True).stdout)
    config = text_config(model)
    dtype = "bf16" if config.get("dtype", config.get("torch_dtype")) == "bfloat16" else "f32"
    a_token = next(row["bytes_per_token"] for row in seen["kv"] if row["dtype"] == dtype)
    return f"{a_token * tokens // 1024}KiB"


@pytest.mark.parametrize(("name", "why"), [
    ("gemma4-embeddings-per-layer", "layers of this model read K and V of other layers"),
    ("deepseek_v3", "it has steps by channel of K and by token of V, and this model's latents are both"),
])  # fmt: skip
def test_int4_is_refused_where_k_and_v_are_not_a_layers_own_two(name, why, tmp_path):
    write_checkpoint(tmp_path / "model", CONFIGURATIONS[name])
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(byte_tokenizer(320)))
    done = subprocess.run([conftest.BINARY, "serve", "--model", tmp_path / "model", "--kv-cache-dtype", "int4", "--port", "0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"--kv-cache-dtype int4: {why}" in done.stderr
