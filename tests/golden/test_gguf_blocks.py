"""Matrices in every block type of GGUF give the bits of their own numbers in f32, or, times int8, nearly these."""

import json
import shutil

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="GGUF files are written by the package gguf")
pytest.importorskip("torch", reason="golden tests need torch")

import gguf_models  # noqa: E402
from golden_support import Run, random_prompt  # noqa: E402

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"]
# Where a block has its scales, as halves: small ones, so that weights are of the usual size.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}
SIZES = {"Q2_K": 2e-3, "Q3_K": 5e-4, "Q4_K": 1e-4, "Q5_K": 5e-5, "Q6_K": 2e-5, "IQ4_XS": 2e-5, "IQ4_NL": 1e-3, "Q8_0": 5e-4}


def drawn_blocks(name, shape, seed):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    draw = np.random.default_rng(seed)
    blocks = draw.integers(0, 256, (*shape[:-1], shape[-1] // elements, size), dtype=np.uint8)
    for offset in HALVES.get(name, []):
        halves = (draw.uniform(0.5, 1.0, blocks.shape[:-1]) * SIZES.get(name, 5e-3)).astype(np.float16)
        blocks[..., offset:offset + 2] = halves.view(np.uint8).reshape(*halves.shape, 2)
    if name == "MXFP4":
        blocks[..., 0] = 118 + blocks[..., 0] % 3
    return blocks.reshape(*shape[:-1], -1)


@pytest.mark.parametrize("name", TYPES)
def test_a_block_type_gives_the_bits_of_its_numbers_in_f32(name, tmp_path):
    import torch
    from safetensors.torch import save_file

    kind = gguf.GGMLQuantizationType[name]
    config = json.loads((gguf_models.STORIES / "config.json").read_text())
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    listed, plain = [], {}
    for seed, (original, values) in enumerate(gguf_models.weights().items()):
        is_drawn = values.ndim == 2 and values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] == 0  # 704 is no whole K block
        raw = drawn_blocks(name, values.shape, seed) if is_drawn else values
        numbers = gguf.dequantize(raw, kind) if is_drawn else values
        listed.append((gguf_models.gguf_name(original), raw, kind if is_drawn else gguf.GGMLQuantizationType.F32))
        for part, count in heads.items():  # the rows of the file are in pairs: here they are put back
            if part in original:
                numbers = numbers.reshape(count, numbers.shape[0] // count // 2, 2, -1).swapaxes(1, 2).reshape(numbers.shape)
        plain[original] = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float32))
    gguf_models.write(tmp_path / "model.gguf", listed=listed)
    shutil.copytree(gguf_models.STORIES, tmp_path / "model")
    save_file(plain, tmp_path / "model/model.safetensors")
    prompt = random_prompt(70, config["vocab_size"])
    of_blocks = Run(tmp_path / "model.gguf", prompt, config["vocab_size"], tmp_path, greedy=8, activations="f32")
    of_numbers = Run(tmp_path / "model", prompt, config["vocab_size"], tmp_path, greedy=8)
    assert np.isfinite(of_numbers.logits).all() and of_numbers.logits.std() > 0
    assert np.array_equal(of_blocks.logits.view(np.int32), of_numbers.logits.view(np.int32))
    assert of_blocks.greedy == of_numbers.greedy
    assert " dtype=blocks activations=f32 " in of_blocks.mode
    in_integers = Run(tmp_path / "model.gguf", prompt, config["vocab_size"], tmp_path)
    assert " dtype=blocks activations=int8 " in in_integers.mode
    distance = np.abs(in_integers.logits - of_numbers.logits).max() / of_numbers.logits.std()
    print(f"{name}: times int8 the logits are off by {distance:.3f} of their deviation at most")
    assert 0 < distance < 0.5
    for options in ({"chunk": 7}, {"threads": 1}, {"isa": "scalar"}, {"isa": "avx2"}):
        again = Run(tmp_path / "model.gguf", prompt, config["vocab_size"], tmp_path, **options)
        assert np.array_equal(again.logits.view(np.int32), in_integers.logits.view(np.int32)), options
