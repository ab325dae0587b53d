"""Matrices in every block type of GGUF give the bits of their own numbers in f32, or, times int8, nearly these."""

import json
import shutil

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="GGUF files are written by the package gguf")
pytest.importorskip("torch", reason="golden tests need torch")

import gguf_models  # noqa: E402
from golden_support import Run, random_prompt  # noqa: E402

@pytest.mark.parametrize("name", gguf_models.BLOCK_TYPES)
def test_a_block_type_gives_the_bits_of_its_numbers_in_f32(name, tmp_path):
    import torch
    from safetensors.torch import save_file

    kind = gguf.GGMLQuantizationType[name]
    config = json.loads((gguf_models.STORIES / "config.json").read_text())
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    plain = {}
    for original, raw, stored, factor in gguf_models.drawn_tensors(name):
        numbers = gguf.dequantize(raw, kind) if stored == kind else raw
        for part, count in heads.items():  # the rows of the file are in pairs: here they are put back
            if part in original:
                numbers = numbers.reshape(count, numbers.shape[0] // count // 2, 2, -1).swapaxes(1, 2).reshape(numbers.shape)
        plain[original] = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float32) * factor)
    gguf_models.write_drawn(tmp_path / "model.gguf", name)
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


@pytest.mark.parametrize("name", gguf_models.BLOCK_TYPES)
def test_experts_in_blocks_give_the_bits_of_their_numbers_in_f32(name, tmp_path):
    vocab = gguf_models.MIXTURE["vocab"]
    prompt = random_prompt(40, vocab)
    blocks = gguf_models.write_mixture(tmp_path / "blocks.gguf", name, in_blocks=True)
    numbers = gguf_models.write_mixture(tmp_path / "numbers.gguf", name, in_blocks=False)
    of_blocks = Run(blocks, prompt, vocab, tmp_path, greedy=8, activations="f32")
    of_numbers = Run(numbers, prompt, vocab, tmp_path, greedy=8)
    assert np.isfinite(of_numbers.logits).all() and of_numbers.logits.std() > 0
    assert np.array_equal(of_blocks.logits.view(np.int32), of_numbers.logits.view(np.int32))
    assert np.array_equal(of_blocks.experts, of_numbers.experts) and of_blocks.greedy == of_numbers.greedy
    in_integers = Run(blocks, prompt, vocab, tmp_path)
    assert not np.array_equal(in_integers.logits, of_numbers.logits)
    for options in ({"chunk": 7}, {"threads": 1}, {"isa": "scalar"}, {"isa": "avx2"}):
        again = Run(blocks, prompt, vocab, tmp_path, **options)
        assert np.array_equal(again.logits.view(np.int32), in_integers.logits.view(np.int32)), options
