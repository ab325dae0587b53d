"""Quantised safetensors checkpoints served: whatever the company, the pieces of a prompt, threads, instruction set, the prefix cache and the file of
packed weights, a request has the same answer to the last bit, times int8 and times f32.

quantised_models.py and quantised_mixtures.py make the checkpoints; requests are asked as those of tests/digest/answers_digest.py.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

import conftest
import pytest

pytest.importorskip("torch", reason="the weights are drawn by torch")
safetensors = pytest.importorskip("safetensors.torch", reason="the checkpoints are safetensors")
pytest.importorskip("transformers", reason="the checkpoints are written by transformers")

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("digest", "golden", "support")]
import answers_digest as digest  # noqa: E402
import quantised_mixtures  # noqa: E402
import quantised_models  # noqa: E402
from tiny_model import byte_tokenizer  # noqa: E402

# Kind -> formats of its matrices as inspect names them, the form of activations.
KINDS = {
    "gptq": ("int4/g128", "int8"),
    "gptq-act-order": ("int4/g64", "int8"),
    "gptq-3bit": ("int4/g32", "int8"),
    "awq": ("uint4/g128", "int8"),
    "ct-w8a8": ("I8", "int8, a scale for a row"),
    "ct-fp8-cache": ("F8_E4M3", "f32"),
    "fp8-edges": ("fp8/g128, fp8/g64, F8_E4M3", "f32"),
    "modelopt-nvfp4": ("NVFP4", "int8"),
    "bnb-nf4": ("nf4/g64", "f32"),
    "qwen3_moe-awq": ("uint4/g64", "int8"),
    "deepseek_v3-fp8": ("fp8/g64, F8_E4M3, fp8/g32", "f32"),
    "ct-w4a16": ("int4/g128", "int8"),
    "ct-w4a16-g32-asym": ("uint4/g32", "int8"),
    "ct-mxfp4": ("MXFP4", "int8"),
    "auto-round-gptq": ("int4/g128", "int8"),
    "bnb-int8": ("I8", "int8"),
    "bnb-fp4": ("fp4/g64", "f32"),
}
# Packed as others are.
ALIKE = {"ct-w4a16", "ct-w4a16-g32-asym", "ct-mxfp4", "auto-round-gptq", "bnb-int8", "bnb-fp4"}
PROMPT = digest.drawn_ids(210, 320)
JOBS = digest.numbered([
    (PROMPT, {"temperature": 0, "logprobs": 5, "ignore_eos": True}),
    (PROMPT[:200] + [7], {"temperature": 0.9, "top_p": 0.95, "logprobs": 3}),
    (PROMPT[:48], {"temperature": 0, "echo": True, "prompt_logprobs": 2, "logprobs": 2, "max_tokens": 8}),
    (PROMPT[:5], {"temperature": 1.2, "n": 2, "logprobs": 1}),
    ("Once upon a time", {"temperature": 0, "logprobs": 1, "ignore_eos": True}),
])  # fmt: skip
PIECES_IN_ONE_THREAD = ("--threads", "1", "--max-num-batched-tokens", "33", "--max-num-seqs", "8", "--prefix-caching", "off")


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=pytest.mark.full) if kind in ALIKE else kind for kind in KINDS])
def checkpoint(request, tmp_path_factory):
    """(kind, its folder)"""
    return request.param, make(request.param, tmp_path_factory.mktemp(request.param))


def make(kind, folder):
    """Makes the checkpoint in a folder of this one."""
    mixture = quantised_mixtures.KINDS.get(kind)
    for package in (mixture or quantised_models.KINDS[kind]).needs:
        pytest.importorskip(package, reason=f"{package} writes this format")
    if mixture:
        quantised_mixtures.make(mixture, folder)
        (folder / "model" / "tokenizer.json").write_text(json.dumps(byte_tokenizer(320)))
    else:
        quantised_models.make(kind, folder / "model")
    return folder / "model"


def answers(server, jobs, streams):
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        return list(pool.map(lambda job: digest.ask(server, conftest, job), jobs))


@pytest.mark.parametrize("activations", ["auto", "f32"])
def test_answers_are_the_same_however_they_are_computed(checkpoint, activations, start_server, tmp_path):
    kind, folder = checkpoint
    flags = ("--model", folder, "--activations", activations)
    packed = ("--packed-cache", tmp_path)

    first = start_server(*flags, *packed)
    cache = "fp8" if kind in ("ct-fp8-cache", "modelopt-nvfp4") else "bf16"  # declared, or of a checkpoint of blocks
    assert f"arithmetic: activations in {'f32' if activations == 'f32' else KINDS[kind][1]}, KV cache in {cache};" in first.log
    alone = answers(first, JOBS, streams=1)
    found = first.metrics()[digest.FOUND]
    assert answers(first, JOBS, streams=1) == alone, "the second time"
    assert first.metrics()[digest.FOUND] > found, "nothing was found in the prefix cache"
    assert answers(first, JOBS * 3, streams=3 * len(JOBS)) == alone * 3, "in a crowd"
    assert first.stop() == 0

    isa = "scalar" if activations == "auto" else digest.isas_here()[:2][-1]  # scalar f32 takes seconds
    second = start_server(*flags, *packed, *PIECES_IN_ONE_THREAD, "--isa", isa)
    assert "weights mapped from" in second.log
    assert answers(second, JOBS * 2, streams=2 * len(JOBS)) == alone * 2, "prompts in pieces, with mapped weights"
    assert second.stop() == 0

    # The other form of activations finds that file of packed weights, too.
    other = start_server("--model", folder, "--activations", "int8" if activations == "f32" or kind == "ct-w8a8" else "f32", *packed)
    assert (answers(other, JOBS, streams=4) == alone) == (KINDS[kind][1] == "f32")
    assert other.stop() == 0


# On a GPU: codes stay codes, whatever their format and the order of their inputs. All in f32 are those whose rows are not rounded to bf16.
ALL_F32 = ("--activations", "f32", "--kv-cache-dtype", "f32")
IN_F32_ON_GPUS = {"gptq", "gptq-act-order", "gptq-3bit", "awq", "modelopt-nvfp4", "bnb-nf4", "qwen3_moe-awq", "qwen3_moe-gptq-act-order"}
ON_GPUS = {*KINDS, "qwen3_moe-gptq-act-order", "qwen3_moe-fp8"} - {"deepseek_v3-fp8"}  # GPUs have no kernels for latent attention


def with_plain_tensors_in_f32(folder, out):
    """The same numbers, those of the embedding, the head and routers in f32: the rows of bf16 are rounded on GPUs."""
    for path in folder.iterdir():
        (out / path.name).symlink_to(path)
    path = out / "model.safetensors"
    tensors = safetensors.load_file(path)
    path.unlink()
    plain = ("model.embed_tokens.weight", "lm_head.weight", ".mlp.gate.weight")
    safetensors.save_file({name: tensor.float() if name.endswith(plain) else tensor for name, tensor in tensors.items()}, path)
    return out


@pytest.mark.parametrize("kind", [kind if kind in {"gptq-act-order", "awq", "fp8-edges", "bnb-nf4", "qwen3_moe-gptq-act-order"}
                                  else pytest.param(kind, marks=pytest.mark.full) for kind in sorted(ON_GPUS)])
def test_a_gpu_gives_the_same_answers_in_pieces_and_on_ranks_and_those_of_the_cpu_in_f32(kind, start_server, monkeypatch, tmp_path):
    (tmp_path / "of_f32").mkdir()
    folder = with_plain_tensors_in_f32(make(kind, tmp_path), tmp_path / "of_f32")

    def of(device, *flags):
        monkeypatch.setattr(conftest, "BINARY", conftest.BINARY.with_name("quire-simulated" if device == "simulated" else "quire"))
        server = start_server("--model", folder, "--device", device, *(digest.SIMULATED if device == "simulated" else ()), *flags)
        found = answers(server, JOBS[3:], streams=4)
        assert server.stop() == 0
        return found

    alone = of("simulated")
    assert of("simulated", "--tensor-parallel-size", "2", "--block-size", "32", "--prefix-caching", "off") == alone
    if kind in IN_F32_ON_GPUS:
        assert of("simulated", *ALL_F32) == of("cpu", *ALL_F32)


def test_inspect_names_the_formats(checkpoint):
    kind, folder = checkpoint
    done = subprocess.run([conftest.BINARY, "inspect", "--json", folder], capture_output=True, text=True, timeout=conftest.PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["weights"] == KINDS[kind][0]
    text = subprocess.run([conftest.BINARY, "inspect", folder], capture_output=True, text=True, timeout=conftest.PATIENCE_S).stdout
    assert f"weights         {KINDS[kind][0]}, " in text


def test_a_checkpoint_that_does_not_say_how_it_is_quantised_is_refused(checkpoint, tmp_path):
    _, folder = checkpoint
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = subprocess.run([conftest.BINARY, "serve", "--port", "0", "--model", tmp_path], capture_output=True, text=True, timeout=conftest.PATIENCE_S)
    assert done.returncode == 2
    assert "is part of a quantised matrix, but config.json has no quantization_config that says how: take it from the model's page" in done.stderr
