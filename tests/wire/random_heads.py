"""Heads of small random numbers beside the built-in model, in layouts that nothing was trained in: they guess badly."""

import array
import json
import random
import struct

HIDDEN, FFN, VOCAB, HYDRA_HEADS = 256, 704, 4096, 2  # the built-in model's, and two heads
Q, KV = 256, 128


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


def layer(at):
    return {at + name + ".weight": shape for name, shape in {
        "post_attention_layernorm": [HIDDEN], "self_attn.q_proj": [Q, HIDDEN], "self_attn.k_proj": [KV, HIDDEN],
        "self_attn.v_proj": [KV, HIDDEN], "self_attn.o_proj": [HIDDEN, Q], "mlp.gate_proj": [FFN, HIDDEN],
        "mlp.up_proj": [FFN, HIDDEN], "mlp.down_proj": [HIDDEN, FFN]}.items()}  # fmt: skip


def write_hydra(directory, prefix):
    shapes = {}

    def put(name, n, k):
        shapes[name + ".weight"], shapes[name + ".bias"] = [n, k], [n]

    for head in range(HYDRA_HEADS):
        first, output = (1, ".1") if prefix else (0, "")
        put(f"hydra_mlp.{head}.{first}.res_connection", HIDDEN, (head + 2) * HIDDEN)
        put(f"hydra_mlp.{head}.{first}.linear", HIDDEN, (head + 2) * HIDDEN)
        put(f"hydra_lm_head.{head}{output}", VOCAB, HIDDEN)
    if prefix:
        at = "prefix_embeding_layer."
        shapes |= {at + "norm.weight": [HIDDEN], at + "layers.0.input_layernorm.weight": [HIDDEN]} | layer(at + "layers.0.")
    write_safetensors(directory / "model.safetensors", shapes)
    (directory / "config.json").write_text(json.dumps({
        "hydra_num_heads": HYDRA_HEADS, "hydra_num_layers": 1, "hydra_head_arch": "prefix-mlp" if prefix else "mlp",
        "grounded_heads": True, "hidden_state_offset": 0}))  # fmt: skip


def write_eagle(directory):
    """EAGLE-1's and EAGLE-2's: no norm before the layer, the target's own output matrix."""
    shapes = {"fc.weight": [HIDDEN, 2 * HIDDEN], "fc.bias": [HIDDEN]} | layer("layers.0.")
    write_safetensors(directory / "model.safetensors", shapes)
    (directory / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCAB,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu", "bias": False}))  # fmt: skip
