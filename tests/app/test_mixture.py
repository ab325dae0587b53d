"""Mixtures of experts on the command line: `quire inspect` and `quire serve --plan` tell all weights from those of a token."""

import json
import struct

from test_cli import quire
from test_inspect import facts
from tiny_model import byte_tokenizer

HIDDEN, WIDTH, EXPERTS, OF_A_TOKEN, LAYERS, VOCAB = 64, 32, 8, 2, 3, 320
CONFIG = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": HIDDEN, "intermediate_size": 96,
          "moe_intermediate_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4,
          "head_dim": 16, "vocab_size": VOCAB, "max_position_embeddings": 256, "num_experts": EXPERTS,
          "num_experts_per_tok": OF_A_TOKEN, "mlp_only_layers": [0]}
EMBEDDING = 4 * VOCAB * HIDDEN
EXPERT = 4 * 3 * HIDDEN * WIDTH


def shapes():
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    yield "lm_head.weight", [VOCAB, HIDDEN]
    yield "model.norm.weight", [HIDDEN]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}{norm}.weight", [HIDDEN]
        for name in "qkvo":
            yield f"{at}self_attn.{name}_proj.weight", [HIDDEN, HIDDEN]
        for name in "qk":
            yield f"{at}self_attn.{name}_norm.weight", [16]
        blocks = [f"{at}mlp.experts.{expert}." for expert in range(EXPERTS)] if layer else [f"{at}mlp."]
        width = WIDTH if layer else 96
        for block in blocks:
            yield f"{block}gate_proj.weight", [width, HIDDEN]
            yield f"{block}up_proj.weight", [width, HIDDEN]
            yield f"{block}down_proj.weight", [HIDDEN, width]
        if layer:
            yield f"{at}mlp.gate.weight", [EXPERTS, HIDDEN]


def write_model(folder):
    header, end = {}, 0
    for name, shape in shapes():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(VOCAB)))
    return folder


def test_inspect_shows_the_experts_of_a_token_and_the_bytes_that_it_reads(tmp_path):
    model = write_model(tmp_path / "model")
    done = quire("inspect", str(model), "--json")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["experts"] == "2 of 8 in each of 2 layers"
    idle = (LAYERS - 1) * (EXPERTS - OF_A_TOKEN) * EXPERT
    active = seen["packed_bytes"] - EMBEDDING - idle
    assert seen["estimated_speed"]["step_bytes"] == active
    rows = facts(quire("inspect", str(model)).stdout)
    assert rows["experts"] == f"2 of 8 in each of 2 layers for a token; {active / 2**10:.1f} KiB of the packed weights are active"


def test_a_dense_model_has_no_experts():
    assert json.loads(quire("inspect", "--json").stdout)["experts"] is None
    assert "experts" not in quire("inspect").stdout


def test_a_plan_tells_active_weights_from_all(tmp_path):
    text = quire("serve", "--plan", "--model", str(write_model(tmp_path / "model")), "--kv-cache-memory", "8MiB").stdout
    assert "experts of a token: 2 of 8 in each of 2 layers; " in text
    assert " of the packed weights are active" in text
