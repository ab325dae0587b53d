"""A checkpoint of drawn weights in a published model's shape: what a server reads, without a download. Its words mean nothing.

The weights are one file of safetensors in bf16, drawn on the device where there is one; the tokenizer has the 256 bytes and names.
"""
import argparse
import json
import pathlib
import struct

import torch
from transformers_steps import SHAPES

SPREAD = 0.02


def shapes_of(config):
    """Names and shapes in the order of a file."""
    hidden, ffn, kv = config["hidden_size"], config["intermediate_size"], config["num_key_value_heads"] * config["head_dim"]
    heads = config["num_attention_heads"] * config["head_dim"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (hidden,)
        yield at + "self_attn.q_proj.weight", (heads, hidden)
        yield at + "self_attn.k_proj.weight", (kv, hidden)
        yield at + "self_attn.v_proj.weight", (kv, hidden)
        yield at + "self_attn.o_proj.weight", (hidden, heads)
        yield at + "post_attention_layernorm.weight", (hidden,)
        yield at + "mlp.gate_proj.weight", (ffn, hidden)
        yield at + "mlp.up_proj.weight", (ffn, hidden)
        yield at + "mlp.down_proj.weight", (hidden, ffn)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def write_weights(path, config, device):
    header, end = {}, 0
    for name, shape in shapes_of(config):
        begin, end = end, end + 2 * torch.Size(shape).numel()
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    torch.manual_seed(1)
    with open(path, "wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes_of(config):
            if len(shape) == 1:
                values = torch.ones(shape, dtype=torch.bfloat16)
            else:
                values = torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(0, SPREAD).cpu()
            view = memoryview(values.view(torch.uint8).numpy()).cast("B")
            while view:
                view = view[file.write(view):]


def byte_names():
    """The 256 bytes as byte-level BPE spells them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def tokenizer(vocab_size):
    names = byte_names()
    vocab = {names[byte]: byte for byte in range(256)}
    vocab.update({f"<w{i}>": i for i in range(256, vocab_size)})
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}}


def save(name, folder, device):
    shape = SHAPES[name]
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu", "rms_norm_eps": 1e-5,
              "rope_theta": 500000.0, "max_position_embeddings": 32768, "bos_token_id": 1, "eos_token_id": 2, "attention_bias": False,
              "mlp_bias": False, **shape}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(shape["vocab_size"])))
    write_weights(folder / "model.safetensors", shape, device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=[*SHAPES])
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    save(args.shape, args.folder, "cuda" if torch.cuda.is_available() else "cpu")
    print(json.dumps({"rows": [], "folder": str(args.folder)}))


if __name__ == "__main__":
    main()
