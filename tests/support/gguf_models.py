"""GGUF files of the small model that comes with the project, written by the package gguf."""

import json
import pathlib

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORIES = ROOT / "models" / "stories"
OF_A_LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
              "mlp.down_proj": "ffn_down"}
KINDS = gguf.GGMLQuantizationType

# That quire runs from their own bits.
BLOCK_TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"]
# Where a block has its scales, as halves: small ones, so that weights are of the usual size.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}
SIZES = {"Q2_K": 2e-3, "Q3_K": 5e-4, "Q4_K": 1e-4, "Q5_K": 5e-5, "Q6_K": 2e-5, "IQ4_XS": 2e-5, "IQ4_NL": 1e-3, "Q8_0": 5e-4}


def weights():
    """{name: f32} of the safetensors."""
    import torch
    from safetensors import safe_open

    with safe_open(STORIES / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name).to(torch.float32).numpy() for name in file.keys()}


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{OF_A_LAYER[rest.removesuffix('.weight')]}.weight"


def in_pairs(rows, heads):
    """The rows of q or k as llama.cpp's converter orders them."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def stored(name, values, kind):
    """(raw bytes as an array, kind) of a tensor; vectors stay f32."""
    if values.ndim == 1 or kind == KINDS.F32:
        return values.astype(np.float32), KINDS.F32
    if kind == KINDS.F16:
        return values.astype(np.float16), KINDS.F16
    return gguf.quants.quantize(values.astype(np.float32), kind), kind


def metadata(writer, **changes):
    config = json.loads((STORIES / "config.json").read_text())
    tokenizer = json.loads((STORIES / "tokenizer.json").read_text())
    writer.add_context_length(config["max_position_embeddings"]), writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"]), writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"]), writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"]), writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"]), writer.add_file_type(0)
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre(changes.get("pre", "gpt-2")), writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token == "<|endoftext|>" else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0), writer.add_eos_token_id(0), writer.add_add_bos_token(False)
    for name, value in changes.get("sampling", {}).items():
        (writer.add_uint32 if isinstance(value, int) else writer.add_float32)(f"general.sampling.{name}", value)
    writer.add_chat_template(json.loads((STORIES / "tokenizer_config.json").read_text())["chat_template"])


def tensors(kind=KINDS.BF16):
    """[(name in GGUF, raw array, kind)] of the whole model."""
    config = json.loads((STORIES / "config.json").read_text())
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    out = []
    for name, values in weights().items():
        for part, count in heads.items():
            if part in name:
                values = in_pairs(values, count)
        out.append((gguf_name(name), *stored(name, values, kind)))
    return out


def write(path, kind=KINDS.BF16, architecture="llama", parts=0, listed=None, **changes):
    """The whole model; in files of `parts` tensors each, if that is not 0."""
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=parts)
    metadata(writer, **changes)
    for name, raw, stored_as in listed or tensors(kind):
        writer.add_tensor(name, raw, raw_dtype=None if stored_as in (KINDS.F32, KINDS.F16) else stored_as)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    return path


def drawn_blocks(name, shape, seed):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    draw = np.random.default_rng(seed)
    blocks = draw.integers(0, 256, (*shape[:-1], shape[-1] // elements, size), dtype=np.uint8)
    for offset in HALVES.get(name, []):
        halves = (draw.uniform(0.5, 1.0, blocks.shape[:-1]) * SIZES.get(name, 5e-3)).astype(np.float16)
        blocks[..., offset:offset + 2] = halves.view(np.uint8).reshape(*halves.shape, 2)
    if name == "MXFP4":
        blocks[..., 0] = 118 + blocks[..., 0] % 3
    if name == "NVFP4":
        blocks[..., :4] = 6 + blocks[..., :4] % 8
    return blocks.reshape(*shape[:-1], -1)


def drawn_tensors(name):
    """[(original name, raw array, kind, factor)]: matrices of random blocks of that type where rows are whole blocks, and the model's own numbers
    in f32. The factor of an NVFP4 matrix is a tensor of its own: a power of two, so that it
    may come before or after a product."""
    kind = KINDS[name]
    out = []
    for seed, (original, values) in enumerate(weights().items()):
        is_drawn = values.ndim == 2 and values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] == 0  # 704 is no whole K block
        factor = np.float32(2.0 ** (seed % 3 - 1)) if is_drawn and name == "NVFP4" else np.float32(1)
        out.append((original, drawn_blocks(name, values.shape, seed) if is_drawn else values, kind if is_drawn else KINDS.F32, factor))
    return out


def write_drawn(path, name):
    """A model whose matrices are random blocks."""
    listed = []
    for original, raw, kind, factor in drawn_tensors(name):
        listed.append((gguf_name(original), raw, kind))
        if factor != 1:
            stem = gguf_name(original).removesuffix("weight")
            listed += [(stem + "scale", np.array([factor]), KINDS.F32), (stem + "input_scale", np.array([3], np.float32), KINDS.F32)]
    return write(path, listed=listed)


MIXTURE = dict(vocab=320, hidden=256, width=256, layers=2, heads=4, kv_heads=2, head_dim=32, experts=5, used=2)


def drawn_experts(name):
    """{tensor of all experts: (raw blocks, factors of its matrices, the numbers that they are)}, of a random mixture."""
    shape, kind = MIXTURE, KINDS[name]
    out = {}
    for layer in range(shape["layers"]):
        for seed, (part, rows, inputs) in enumerate((("gate", shape["width"], shape["hidden"]), ("up", shape["width"], shape["hidden"]),
                                                     ("down", shape["hidden"], shape["width"]))):
            raw = drawn_blocks(name, (shape["experts"], rows, inputs), 10 * layer + seed)
            factors = 2.0 ** (np.arange(shape["experts"]) % 3 - 1) if name == "NVFP4" else np.ones(shape["experts"])
            numbers = gguf.dequantize(raw, kind).astype(np.float32) * factors.astype(np.float32)[:, None, None]
            out[f"blk.{layer}.ffn_{part}_exps"] = raw, factors.astype(np.float32), numbers
    return out


def write_mixture(path, name, in_blocks):
    """A random mixture of experts (qwen3moe) whose experts are blocks of that type, or the numbers that these are."""
    shape, draw = MIXTURE, np.random.default_rng(5)
    writer = gguf.GGUFWriter(path, "qwen3moe")
    writer.add_context_length(1024), writer.add_embedding_length(shape["hidden"]), writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["width"]), writer.add_head_count(shape["heads"]), writer.add_head_count_kv(shape["kv_heads"])
    writer.add_key_length(shape["head_dim"]), writer.add_value_length(shape["head_dim"]), writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e4), writer.add_expert_count(shape["experts"]), writer.add_expert_used_count(shape["used"])
    writer.add_expert_feed_forward_length(shape["width"])
    tokens = [chr(256 + place) for place in range(shape["vocab"])]
    writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre("gpt-2"), writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens)), writer.add_token_merges([])

    def matrix(tensor, rows, inputs):
        writer.add_tensor(tensor, (draw.standard_normal((rows, inputs)) * inputs ** -0.5).astype(np.float32))

    def norm(tensor, size):
        writer.add_tensor(tensor, draw.uniform(0.5, 1.5, size).astype(np.float32))

    matrix("token_embd.weight", shape["vocab"], shape["hidden"]), matrix("output.weight", shape["vocab"], shape["hidden"])
    norm("output_norm.weight", shape["hidden"])
    for layer in range(shape["layers"]):
        q, kv = (shape[heads] * shape["head_dim"] for heads in ("heads", "kv_heads"))
        for part, rows, inputs in (("attn_q", q, shape["hidden"]), ("attn_k", kv, shape["hidden"]), ("attn_v", kv, shape["hidden"]),
                                   ("attn_output", shape["hidden"], q), ("ffn_gate_inp", shape["experts"], shape["hidden"])):
            matrix(f"blk.{layer}.{part}.weight", rows, inputs)
        for part, size in (("attn_norm", shape["hidden"]), ("ffn_norm", shape["hidden"]), ("attn_q_norm", shape["head_dim"]),
                           ("attn_k_norm", shape["head_dim"])):
            norm(f"blk.{layer}.{part}.weight", size)
    for tensor, (raw, factors, numbers) in drawn_experts(name).items():
        if not in_blocks:
            writer.add_tensor(tensor + ".weight", numbers)
            continue
        writer.add_tensor(tensor + ".weight", raw, raw_dtype=KINDS[name])
        if name == "NVFP4":
            writer.add_tensor(tensor + ".scale", factors)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    return path
