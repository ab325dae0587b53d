"""`quire inspect DIR` on directories that are wrong in one way: exit code 2, a message naming file and tensor or key, and all
of it in under a second of the processor, however large the checkpoint.
"""
import json
import shutil
import struct
import subprocess

import numpy as np
import pytest

from golden_support import ROOT, program
from processor_time import processor_time

SECONDS = 1.0
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 12,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 4096,
          "max_position_embeddings": 64, "tie_word_embeddings": False}


def shapes(config):
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = hidden // config["num_attention_heads"]
    kv = head * config["num_key_value_heads"]
    named = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,), "lm_head.weight": (vocab, hidden)}
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        named |= {at + "input_layernorm.weight": (hidden,), at + "post_attention_layernorm.weight": (hidden,),
                  at + "self_attn.q_proj.weight": (hidden, hidden), at + "self_attn.k_proj.weight": (kv, hidden),
                  at + "self_attn.v_proj.weight": (kv, hidden), at + "self_attn.o_proj.weight": (hidden, hidden),
                  at + "mlp.gate_proj.weight": (ffn, hidden), at + "mlp.up_proj.weight": (ffn, hidden),
                  at + "mlp.down_proj.weight": (hidden, ffn)}
    return named


class Checkpoint:
    """A directory that fits together; a test changes `config` or `tensors` (name: [dtype, shape, bytes]) before write()."""

    def __init__(self):
        rng = np.random.default_rng(5)
        self.config = dict(CONFIG)
        self.tensors = {name: ["F32", list(shape), rng.normal(size=shape).astype("<f4").tobytes()]
                        for name, shape in shapes(CONFIG).items()}

    def file(self, names=None):
        header, data = {}, b""
        for name in names or self.tensors:
            dtype, shape, raw = self.tensors[name]
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def write(self, directory):
        directory.mkdir(exist_ok=True)
        (directory / "config.json").write_text(json.dumps(self.config))
        (directory / "model.safetensors").write_bytes(self.file())
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(ROOT / "models" / "stories" / name, directory / name)
        return directory


def inspect(directory, command="inspect"):
    with processor_time() as used:
        done = subprocess.run([str(program("quire")), command, str(directory)], capture_output=True, text=True, timeout=120)
    return done, used()


def expect_refusal(directory, *parts, command="inspect"):
    done, seconds = inspect(directory, command)
    assert done.returncode == 2, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    for part in parts:
        assert part in done.stderr, f"no {part!r} in:\n{done.stderr}"
    assert seconds < SECONDS


def test_the_checkpoint_that_the_others_break_is_good(tmp_path):
    done, _ = inspect(Checkpoint().write(tmp_path / "model"))
    assert done.returncode == 0, done.stderr


def test_missing_tensor(tmp_path):
    checkpoint = Checkpoint()
    del checkpoint.tensors["model.layers.1.mlp.up_proj.weight"]
    expect_refusal(checkpoint.write(tmp_path / "model"), "model.safetensors", "'model.layers.1.mlp.up_proj.weight' is missing")


def test_unexpected_tensor(tmp_path):
    checkpoint = Checkpoint()
    checkpoint.tensors["model.layers.0.self_attn.q_proj.bias"] = ["F32", [8], bytes(32)]
    expect_refusal(checkpoint.write(tmp_path / "model"), "model.safetensors", "'model.layers.0.self_attn.q_proj.bias' is not part")


def test_wrong_shape(tmp_path):
    checkpoint = Checkpoint()
    checkpoint.tensors["model.layers.0.mlp.down_proj.weight"][1] = [12, 8]
    expect_refusal(checkpoint.write(tmp_path / "model"), "model.safetensors",
                   "'model.layers.0.mlp.down_proj.weight' has shape [12, 8]", "[8, 12]")


def test_wrong_dtype(tmp_path):
    checkpoint = Checkpoint()
    checkpoint.tensors["model.layers.0.self_attn.o_proj.weight"] = ["I8", [8, 8], bytes(64)]
    expect_refusal(checkpoint.write(tmp_path / "model"), "model.safetensors", "'model.layers.0.self_attn.o_proj.weight'", "I8")


def test_all_problems_at_once(tmp_path):
    checkpoint = Checkpoint()
    del checkpoint.tensors["model.norm.weight"]
    checkpoint.tensors["surplus"] = ["F32", [1], bytes(4)]
    expect_refusal(checkpoint.write(tmp_path / "model"), "2 problems", "'model.norm.weight'", "'surplus'")


@pytest.mark.parametrize("cut", [1, 1000])
def test_truncated_file(cut, tmp_path):
    checkpoint = Checkpoint()
    directory = checkpoint.write(tmp_path / "model")
    whole = checkpoint.file()
    (directory / "model.safetensors").write_bytes(whole[:-cut])
    last = list(checkpoint.tensors)[-1]
    expect_refusal(directory, "model.safetensors", last if cut == 1 else "tensor '", "truncated")


def test_truncated_header(tmp_path):
    checkpoint = Checkpoint()
    directory = checkpoint.write(tmp_path / "model")
    (directory / "model.safetensors").write_bytes(checkpoint.file()[:100])
    expect_refusal(directory, "model.safetensors", "exceeds the file")


def test_not_safetensors(tmp_path):
    directory = Checkpoint().write(tmp_path / "model")
    (directory / "model.safetensors").write_bytes(b"not a safetensors file, but some text of that name")
    expect_refusal(directory, "model.safetensors", "header length", "is this a safetensors file?")
    (directory / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    expect_refusal(directory, "model.safetensors", "is a Git LFS pointer")


def test_config_that_contradicts_the_weights(tmp_path):
    tied = Checkpoint()
    tied.config["tie_word_embeddings"] = True
    expect_refusal(tied.write(tmp_path / "tied"), "'lm_head.weight' differs", "tie_word_embeddings")
    untied = Checkpoint()
    del untied.tensors["lm_head.weight"]
    expect_refusal(untied.write(tmp_path / "untied"), "'lm_head.weight' is missing", "tie_word_embeddings")
    narrow = Checkpoint()
    narrow.config["intermediate_size"] = 16
    expect_refusal(narrow.write(tmp_path / "narrow"), "6 problems", "'model.layers.0.mlp.gate_proj.weight' has shape [12, 8]", "[16, 8]")


@pytest.mark.parametrize("key, value", [("model_type", "mamba"), ("hidden_size", "8"), ("hidden_act", "quick_gelu"), ("num_key_value_heads", 3),
                                        ("quantization_config", {"bits": 4}), ("rope_scaling", {"type": "su"})])
def test_config_key(key, value, tmp_path):
    checkpoint = Checkpoint()
    checkpoint.config[key] = value
    expect_refusal(checkpoint.write(tmp_path / "model"), "config.json", f"'{key}")


def test_broken_config(tmp_path):
    directory = Checkpoint().write(tmp_path / "model")
    (directory / "config.json").write_text('{"model_type": ')
    expect_refusal(directory, "config.json", "not valid JSON")


def test_missing_files(tmp_path):
    expect_refusal(tmp_path / "absent", "absent", "directory")
    empty = tmp_path / "empty"
    empty.mkdir()
    expect_refusal(empty, "config.json", "missing")
    directory = Checkpoint().write(tmp_path / "model")
    (directory / "model.safetensors").unlink()
    expect_refusal(directory, "model.safetensors", "missing", command="serve")
    done, _ = inspect(directory)
    assert done.returncode == 0 and "there are no weights here" in done.stdout, done.stderr


def test_missing_shard_and_missing_tensor_in_a_shard(tmp_path):
    checkpoint = Checkpoint()
    directory = checkpoint.write(tmp_path / "model")
    (directory / "model.safetensors").unlink()
    names = list(checkpoint.tensors)
    weight_map = {name: "one.safetensors" if i < 5 else "two.safetensors" for i, name in enumerate(names)}
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (directory / "one.safetensors").write_bytes(checkpoint.file(names[:5]))
    expect_refusal(directory, "two.safetensors", "missing", "model.safetensors.index.json")
    (directory / "two.safetensors").write_bytes(checkpoint.file(names[5:-1]))
    expect_refusal(directory, "two.safetensors", f"'{names[-1]}' is missing")


def test_a_large_checkpoint_is_refused_as_fast(tmp_path):
    """Four sparse GiB: only headers may be read before the refusal."""
    checkpoint = Checkpoint()
    directory = checkpoint.write(tmp_path / "model")
    size = 4 << 30
    header = {"model.embed_tokens.weight": {"dtype": "BF16", "shape": [size // 16, 8], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + size)
    expect_refusal(directory, "model.safetensors", "'model.embed_tokens.weight' has shape", "'model.norm.weight' is missing")
