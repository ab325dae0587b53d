"""Checkpoints with random weights in known shapes, the same numbers for every server: a Hugging Face directory, and GGUF files.

    python loadtest/checkpoints.py 135m /tmp/135m [--gguf bf16,q8_0,q4_0]

What they say makes no sense; how long they take to say it is what the models of these shapes take. GGUF wants `gguf`.
"""

import argparse
import json
import math
import pathlib
import struct

try:
    import numpy as np
except ImportError:  # names and shapes are there without it
    np = None

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rms_norm_eps": 1e-5, "mlp_bias": False}
QWEN = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "rms_norm_eps": 1e-6}


def shape(kind, hidden, ffn, layers, heads, kv_heads, head_dim, vocab, theta):
    return kind | {
        "torch_dtype": "bfloat16", "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim, "vocab_size": vocab,
        "max_position_embeddings": 8192, "rope_theta": float(theta), "hidden_act": "silu", "attention_bias": False,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0,
    }


SHAPES = {
    "toy": shape(LLAMA, 64, 64, 1, 1, 1, 64, 512, 10000),  # costs next to nothing: for load tests of the server alone
    "tiny": shape(LLAMA, 256, 704, 2, 4, 2, 64, 4096, 10000),  # for what is around a model
    "135m": shape(LLAMA, 576, 1536, 30, 9, 3, 64, 49152, 100000),  # SmolLM2-135M
    "0.6b": shape(QWEN, 1024, 3072, 28, 16, 8, 128, 151936, 1000000),  # Qwen3-0.6B
    "1b": shape(LLAMA, 2048, 8192, 16, 32, 8, 64, 128256, 500000),  # Llama-3.2-1B
    "8b": shape(LLAMA, 4096, 14336, 32, 32, 8, 128, 128256, 500000) | {"tie_word_embeddings": False},  # Llama-3.1-8B
}
NUM_BYTE_TOKENS = 257  # the end of a text, and every byte
GGUF_TYPES = ["bf16", "q8_0", "q4_0"]


def tensors(config):
    """(name, shape) in a fixed order."""
    hidden, ffn, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "self_attn.q_proj.weight", (q, hidden)
        yield layer + "self_attn.k_proj.weight", (kv, hidden)
        yield layer + "self_attn.v_proj.weight", (kv, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, q)
        if config["model_type"] == "qwen3":
            yield layer + "self_attn.q_norm.weight", (size,)
            yield layer + "self_attn.k_norm.weight", (size,)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "mlp.gate_proj.weight", (ffn, hidden)
        yield layer + "mlp.up_proj.weight", (ffn, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, ffn)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def values(index, sides):
    """Tensor `index` in f32, each value exactly a bf16: norms are ones, matrices even in [-0.04, 0.04).

    In the embedding, which is the output matrix too, the end and the bytes are small: greedy answers never take them, so
    that no server ends early or waits for the rest of a letter.
    """
    if len(sides) == 1:
        return np.ones(sides, np.float32)
    drawn = np.random.default_rng(index).random(sides, np.float32) * np.float32(0.08) - np.float32(0.04)
    bits = drawn.view(np.uint32)
    bits += 0x7FFF + ((bits >> 16) & 1)
    bits &= 0xFFFF0000
    if index == 0:
        drawn[:NUM_BYTE_TOKENS] /= 64  # exact
    return drawn


def bf16(array):
    return (array.view(np.uint32) >> 16).astype(np.uint16)


def vocabulary(size):
    """Every byte a token, in the letters of byte-level vocabularies (GPT-2's bytes_to_unicode), then names."""
    stands = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, others = {byte: byte for byte in stands}, iter(range(256, 512))
    for byte in range(256):
        letters.setdefault(byte, None)
    words = [chr(next(others) if letters[byte] is None else byte) for byte in range(256)]
    return ["<|endoftext|>", *words, *(f"t{i}" for i in range(NUM_BYTE_TOKENS, size))]


def write_directory(config, directory, drawn=lambda index, sides: bf16(values(index, sides)).tobytes()):
    """`drawn`: the bytes of a tensor in bf16."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=1))
    words = vocabulary(config["vocab_size"])
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": 0, "content": words[0], "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {word: i for i, word in enumerate(words)}, "merges": []},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": words[0], "bos_token": words[0]})
    )
    header, offset = {}, 0
    for name, sides in tensors(config):
        end = offset + 2 * math.prod(sides)
        header[name] = {"dtype": "BF16", "shape": list(sides), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for index, (_, sides) in enumerate(tensors(config)):
            file.write(drawn(index, sides))


GGUF_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    if name == "lm_head.weight":
        return "output.weight"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def pairs_side_by_side(array, heads):
    """llama.cpp turns neighbours in a head of a Llama, not halves: its q and k rows are stored in that order."""
    rows, inputs = array.shape
    return array.reshape(heads, 2, rows // heads // 2, inputs).swapaxes(1, 2).reshape(rows, inputs)


def write_gguf(config, path, kind):
    """`kind` of GGUF_TYPES. Q4_0 keeps the embedding, which is the output matrix too, in Q8_0."""
    import gguf

    types = {"bf16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}
    files = {"bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0, "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0}
    writer = gguf.GGUFWriter(path, "qwen3" if config["model_type"] == "qwen3" else "llama")
    writer.add_name("random")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(files[kind])
    words = vocabulary(config["vocab_size"])
    words[NUM_BYTE_TOKENS] = words[1] + words[2]  # llama.cpp wants a merge, and a merge makes a token
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([gguf.TokenType.CONTROL, *[gguf.TokenType.NORMAL] * (len(words) - 1)])
    writer.add_token_merges([f"{words[1]} {words[2]}"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for index, (name, sides) in enumerate(tensors(config)):
        array = values(index, sides)
        part = name.split(".")[-2]
        if config["model_type"] == "llama" and part in heads:
            array = pairs_side_by_side(array, heads[part])
        if array.ndim == 1:
            writer.add_tensor(gguf_name(name), array)
            continue
        chosen = types["q8_0" if kind == "q4_0" and "embed" in name else kind]
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(array, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--gguf", default="", help="comma separated: " + ", ".join(GGUF_TYPES))
    args = parser.parse_args()
    write_directory(SHAPES[args.shape], args.directory)
    for kind in filter(None, args.gguf.split(",")):
        write_gguf(SHAPES[args.shape], args.directory / f"{kind}.gguf", kind)


if __name__ == "__main__":
    main()
