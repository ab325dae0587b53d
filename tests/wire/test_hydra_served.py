"""Hydra heads beside the built-in model: random ones, which guess badly and must change nothing."""

import array
import json
import random
import struct
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, Server

HIDDEN, FFN, VOCAB, HEADS = 256, 704, 4096, 2  # the built-in model's, and two heads
PROMPTS = ["Once upon a time there was a little girl", "A list: one, two, three, one, two, three, one, two,", "Tom"]


def write_safetensors(path, shapes):
    """Tensors of these shapes, F32, of small random numbers."""
    chance, header, data = random.Random(7), {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        begin = len(data)
        data += array.array("f", (0.2 * (chance.random() - 0.5) for _ in range(count))).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_heads(directory, prefix):
    shapes = {}

    def put(name, n, k):
        shapes[name + ".weight"], shapes[name + ".bias"] = [n, k], [n]

    for head in range(HEADS):
        first, output = (1, ".1") if prefix else (0, "")
        put(f"hydra_mlp.{head}.{first}.res_connection", HIDDEN, (head + 2) * HIDDEN)
        put(f"hydra_mlp.{head}.{first}.linear", HIDDEN, (head + 2) * HIDDEN)
        put(f"hydra_lm_head.{head}{output}", VOCAB, HIDDEN)
    if prefix:
        at = "prefix_embeding_layer."
        shapes |= {at + name + ".weight": shape for name, shape in {
            "norm": [HIDDEN], "layers.0.input_layernorm": [HIDDEN], "layers.0.post_attention_layernorm": [HIDDEN],
            "layers.0.self_attn.q_proj": [256, HIDDEN], "layers.0.self_attn.k_proj": [128, HIDDEN],
            "layers.0.self_attn.v_proj": [128, HIDDEN], "layers.0.self_attn.o_proj": [HIDDEN, 256],
            "layers.0.mlp.gate_proj": [FFN, HIDDEN], "layers.0.mlp.up_proj": [FFN, HIDDEN],
            "layers.0.mlp.down_proj": [HIDDEN, FFN]}.items()}  # fmt: skip
    write_safetensors(directory / "model.safetensors", shapes)
    (directory / "config.json").write_text(json.dumps({
        "hydra_num_heads": HEADS, "hydra_num_layers": 1, "hydra_head_arch": "prefix-mlp" if prefix else "mlp",
        "grounded_heads": True, "hidden_state_offset": 0}))  # fmt: skip


def expect_same_answers(config):
    """With as many guesses as this drafter has, and without any."""
    server = Server("--speculative-config", json.dumps({"adaptive": False, **config}))
    try:
        for prompt in PROMPTS:
            for sampling in ({"temperature": 0}, {"temperature": 1, "top_p": 0.9, "n": 3}):
                told = []
                for way in (True, False, True):  # the last finds the first one's prefix
                    answer = server.complete(prompt, max_tokens=60, ignore_eos=True, seed=11, return_token_ids=True,
                                             speculative=way, **sampling)
                    told.append([choice["token_ids"] for choice in answer["choices"]])
                assert told[0] == told[1] == told[2], (prompt, sampling)
        assert server.metrics()["vllm:spec_decode_num_draft_tokens_total"] > 0
    finally:
        assert server.stop() == 0, server.log[-4000:]


@pytest.mark.parametrize("topk", [1, 3], ids=["chains", "trees"])
@pytest.mark.parametrize("prefix", [False, True], ids=["mlp", "prefix"])
def test_no_answer_depends_on_what_they_guess(tmp_path, prefix, topk):
    write_heads(tmp_path, prefix)
    expect_same_answers({"method": "hydra", "model": str(tmp_path), "topk": topk, "num_speculative_tokens": 6})


def test_heads_without_a_directory_are_refused():
    done = subprocess.run([BINARY, "serve", "--port", "0", "--speculative-config", '{"method": "hydra"}'], capture_output=True,
                          text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "the directory of Hydra heads" in done.stderr, done.stderr
