"""gpt-oss with experts in MXFP4, as it is published: with --activations f32 its bits are those of a checkpoint with the same numbers in
f32, which test_families.py compares with transformers; with the activations that are usual, its bits depend on nothing but the row.
"""
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
pytest.importorskip("transformers", reason="golden tests need transformers")

from family_checkpoints import CONFIGURATIONS, draw_model  # noqa: E402
from golden_support import Run, random_prompt, supported_isas  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
EXPERTS = ("gate_up_proj", "down_proj")


def quantised(matrices):
    """Codes and exponents of [..., 32 n] by blocks of 32 inputs, and the numbers that they stand for."""
    blocks = matrices.reshape(*matrices.shape[:-1], -1, 32)
    most = np.maximum(np.abs(blocks).max(axis=-1, keepdims=True), 2.0**-100)
    exponents = np.floor(np.log2(most)).astype(np.int32) - 2
    scaled = blocks / np.exp2(exponents).astype(np.float32)
    codes = np.abs(scaled[..., None] - VALUES).argmin(axis=-1).astype(np.uint8)
    numbers = (VALUES[codes] * np.exp2(exponents).astype(np.float32)).reshape(matrices.shape)
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponents[..., 0] + 127).astype(np.uint8), numbers


@pytest.fixture
def models(tmp_path):
    return write_in_mxfp4(tmp_path)


def write_in_mxfp4(tmp_path):
    """Folders of the same model with experts in MXFP4, and in f32."""
    model = draw_model(CONFIGURATIONS["gpt_oss-in-blocks"])
    for name in ("f32", "mxfp4"):
        model.save_pretrained(tmp_path / name)
    tensors = load_file(tmp_path / "f32" / "model.safetensors")
    packed = dict(tensors)
    for name in [name for name in tensors if name.endswith(EXPERTS)]:
        by_output = np.ascontiguousarray(tensors[name].float().numpy().swapaxes(1, 2))  # [X, outputs, inputs]
        codes, scales, numbers = quantised(by_output)
        tensors[name] = torch.from_numpy(np.ascontiguousarray(numbers.swapaxes(1, 2)))
        del packed[name]
        packed[f"{name}_blocks"], packed[f"{name}_scales"] = torch.from_numpy(codes), torch.from_numpy(scales)
    save_file(tensors, tmp_path / "f32" / "model.safetensors", {"format": "pt"})
    save_file(packed, tmp_path / "mxfp4" / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "mxfp4" / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    (tmp_path / "mxfp4" / "config.json").write_text(json.dumps(config))
    return tmp_path / "mxfp4", tmp_path / "f32"


def test_with_f32_activations_the_bits_are_those_of_the_numbers_in_f32(models, tmp_path):
    blocks, plain = models
    prompt = random_prompt(70, 320)
    ours = Run(blocks, prompt, 320, tmp_path, greedy=16, activations="f32")
    theirs = Run(plain, prompt, 320, tmp_path, greedy=16)
    assert np.array_equal(ours.logits.view(np.int32), theirs.logits.view(np.int32))
    assert np.array_equal(ours.experts, theirs.experts) and ours.greedy == theirs.greedy
    assert len(set(ours.greedy)) > 4


def test_bits_do_not_depend_on_chunks_threads_or_instruction_set(models, tmp_path):
    prompt = random_prompt(70, 320)
    isas = supported_isas()
    ways = [(isas[-1], 64, 2), (isas[0], 64, 2), (isas[-1], 1, 1), (isas[-1], 7, 2)]
    runs = [Run(models[0], prompt, 320, tmp_path, greedy=16, isa=isa, chunk=chunk, threads=threads) for isa, chunk, threads in ways]
    for way, run in zip(ways, runs, strict=True):
        assert np.isfinite(run.logits).all()
        assert np.array_equal(run.logits.view(np.int32), runs[0].logits.view(np.int32)), way
        assert run.greedy == runs[0].greedy, way
    exact = Run(models[0], prompt, 320, tmp_path, activations="f32")
    assert "int8" in runs[0].mode and not np.array_equal(exact.logits, runs[0].logits)
