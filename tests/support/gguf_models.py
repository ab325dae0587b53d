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
