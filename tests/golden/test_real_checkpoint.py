"""A trained model: stories260K must tell the story that karpathy's run.c tells, token by token.

The checkpoint is read from $QUIRE_SHARED/data/checkpoints, whose README documents its format, and written as a Hugging Face
directory: run.c rotates pairs (x0, x1), Hugging Face rotates halves, so the rows of wq and wk are permuted within each head.
"""
import json
import os
import pathlib
import struct

import numpy as np
import pytest

from golden_support import ROOT, Run

EXPECTED = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red "
    "ball. She wanted to play with it, but it was too high.\nLily's mom said, \"Lily, let's go to the park.\" Lily was sad and "
    "didn't know what to do. She said, \"I want to play with your ball, but I can't find it.\"\nLily was sad and didn't know "
    "what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\nLily didn't want to help her mom, so she")
STEPS = 200
BOS = 1


def checkpoint_file(name):
    shared = os.environ.get("QUIRE_SHARED")
    if not shared:
        pytest.skip("QUIRE_SHARED is not set: no trained checkpoint to test with")
    path = pathlib.Path(shared) / "data" / "checkpoints" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


def read_checkpoint(path):
    """The header's seven numbers and the tensors of a llama2.c "version 0" file, layers along the first axis."""
    raw = path.read_bytes()
    dim, hidden, layers, heads, kv_heads, vocab, positions = struct.unpack("<7i", raw[:28])
    kv_dim = dim // heads * kv_heads
    shapes = {"embed": (vocab, dim), "attention_norm": (layers, dim), "wq": (layers, dim, dim), "wk": (layers, kv_dim, dim),
              "wv": (layers, kv_dim, dim), "wo": (layers, dim, dim), "ffn_norm": (layers, dim), "gate": (layers, hidden, dim),
              "down": (layers, dim, hidden), "up": (layers, hidden, dim), "norm": (dim,)}
    tensors, at = {}, 28
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        tensors[name] = np.frombuffer(raw, dtype="<f4", count=count, offset=at).reshape(shape)
        at += 4 * count
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": dim, "intermediate_size": hidden,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": vocab,
              "max_position_embeddings": positions, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
              "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu"}
    return config, tensors


def pairs_to_halves(matrix, heads):
    out, dim = matrix.shape
    return matrix.reshape(heads, out // heads // 2, 2, dim).transpose(0, 2, 1, 3).reshape(out, dim)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def convert(source, directory):
    config, t = read_checkpoint(source)
    named = {"model.embed_tokens.weight": t["embed"], "model.norm.weight": t["norm"]}
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        named[at + "input_layernorm.weight"] = t["attention_norm"][i]
        named[at + "self_attn.q_proj.weight"] = pairs_to_halves(t["wq"][i], config["num_attention_heads"])
        named[at + "self_attn.k_proj.weight"] = pairs_to_halves(t["wk"][i], config["num_key_value_heads"])
        named[at + "self_attn.v_proj.weight"] = t["wv"][i]
        named[at + "self_attn.o_proj.weight"] = t["wo"][i]
        named[at + "post_attention_layernorm.weight"] = t["ffn_norm"][i]
        named[at + "mlp.gate_proj.weight"] = t["gate"][i]
        named[at + "mlp.up_proj.weight"] = t["up"][i]
        named[at + "mlp.down_proj.weight"] = t["down"][i]
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    write_safetensors(directory / "model.safetensors", named)
    return config


def read_vocabulary(path, size):
    raw, pieces, at = path.read_bytes(), [], 4
    for _ in range(size):
        _, length = struct.unpack_from("<fi", raw, at)
        pieces.append(raw[at + 8:at + 8 + length])
        at += 8 + length
    return pieces


def text_of(tokens, pieces):
    """As run.c prints: no space after BOS, <0x..> as the byte, and BOS ends the story."""
    text = b""
    for before, token in zip([BOS] + tokens, tokens):
        if token == BOS:
            break
        piece = pieces[token]
        if before == BOS and piece.startswith(b" "):
            piece = piece[1:]
        if len(piece) == 6 and piece.startswith(b"<0x"):
            piece = bytes([int(piece[3:5], 16)])
        text += piece
    return text.decode()


@pytest.mark.parametrize("kv", ["f32", "bf16"])
def test_stories260k_tells_its_story(kv, tmp_path):
    config = convert(checkpoint_file("stories260K.bin"), tmp_path / "model")
    pieces = read_vocabulary(checkpoint_file("tok512.bin"), config["vocab_size"])
    run = Run(tmp_path / "model", [BOS], config["vocab_size"], tmp_path, greedy=STEPS, kv=kv)
    text = text_of(run.greedy, pieces)
    if kv == "bf16":  # a rounded cache may tell another story; it must begin as one
        assert text.startswith("Once upon a time, there was a little girl named Lily.")
        return
    assert text == EXPECTED


def check_against_transformers(directory, prompt, vocab, tmp_path):
    """The greedy story is transformers' own, token by token, and so are the logits along it."""
    golden = pytest.importorskip("test_against_transformers", reason="needs torch and transformers")
    reference = golden.Reference(directory)
    run = Run(directory, prompt, vocab, tmp_path, greedy=STEPS)
    reference.check_rope(run)
    golden.check_greedy(reference, prompt, run.greedy)
    again = Run(directory, prompt + run.greedy, vocab, tmp_path)
    expected, tolerance = reference(prompt + run.greedy)
    difference = np.abs(again.logits - expected).max(axis=-1)
    print(f"largest difference {difference.max():.3g}, {(difference / tolerance).max():.3g} of the tolerance")
    assert (difference <= tolerance).all()


def test_stories260k_matches_transformers(tmp_path):
    config = convert(checkpoint_file("stories260K.bin"), tmp_path / "model")
    check_against_transformers(tmp_path / "model", [BOS], config["vocab_size"], tmp_path)


def test_the_embedded_model_matches_transformers(tmp_path):
    directory = ROOT / "models" / "stories"
    if not (directory / "model.safetensors").is_file():
        pytest.skip(f"{directory} has no model.safetensors yet")
    config = json.loads((directory / "config.json").read_text())
    check_against_transformers(directory, [config["bos_token_id"]], config["vocab_size"], tmp_path)
