"""The plain checkpoints that shapes change: random weights of each family, and one tokenizer whose tokens are bytes, a few words and
a few special tokens. What is in the small files is here as it stands, so that tables can be made of it without any package."""

import json
import os
import struct

import tiny_model

from metadata_shapes.shape import Link, bytes_of, without

V = 320  # as wide as the logits are: the tokenizer has fewer, as Qwen's has
SPECIAL = {"<|endoftext|>": 0, "<|im_start|>": 257, "<|im_end|>": 258, "<pad>": 259}
MERGES = ["\u0120 t", "\u0120t h", "\u0120th e", "t h", "h e", "i n", "a n", "an d", "\u0120 and", "o u", "r e", "\u0120 o", "l l", "s s"]
NUM_VOCABULARY = 260 + len(MERGES)  # dense; what is added and not in it goes on from there
WORDS = {"<tool_call>": NUM_VOCABULARY, "</tool_call>": NUM_VOCABULARY + 1}  # added, and not special
END, START, STOP, PAD = SPECIAL.values()
FREE = NUM_VOCABULARY + len(WORDS)  # the first number that the tokenizer does not use
OTHER_END = 7  # of config.json, in tables that ask which file an end came from

LINE = "<|im_start|>In the beginning, and then:  a <tool_call> b<|im_end|>\u00e9 [PAD]\n"
TEXTS = [LINE, "", " ", "the theory and the other thing", "  two  blanks\n\nand\tlines ", "12345 67,890.5",
         "d'o\u00f9 \u65e5\u672c\u8a9e \U0001f44d\U0001f3fd e\u0301",
         "<|endoftext|>the<|endoftext|> end", "x <pad>y", "It's WE'LL don't"]

CHATML = ("{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": END, "eos_token_id": END,
    "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.125, "intermediate_size": 96,
    "max_position_embeddings": 128, "mlp_bias": False, "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "torch_dtype": "float32", "transformers_version": "4.46.3", "use_cache": True, "vocab_size": V,
}
MISTRAL = without(LLAMA, "attention_bias", "mlp_bias", "pretraining_tp", "rope_scaling") | {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": None}
QWEN2 = without(LLAMA, "attention_bias", "mlp_bias", "pretraining_tp", "head_dim") | {
    "architectures": ["Qwen2ForCausalLM"], "max_window_layers": 2, "model_type": "qwen2", "sliding_window": None,
    "tie_word_embeddings": True, "use_sliding_window": False}
QWEN3 = QWEN2 | {"architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 16, "model_type": "qwen3"}
KINDS = {
    "llama": LLAMA,
    "llama_old": without(LLAMA, "num_key_value_heads", "head_dim"),  # as many kv heads as heads
    "llama_tied": LLAMA | {"tie_word_embeddings": True},
    "llama_biased": LLAMA | {"attention_bias": True, "mlp_bias": True},
    "mistral": MISTRAL,
    "mistral_wide": MISTRAL | {"head_dim": 32},
    "qwen2": QWEN2,
    "qwen2_untied": QWEN2 | {"tie_word_embeddings": False},
    "qwen3": QWEN3,
}
GENERATION = {"_from_model_config": True, "bos_token_id": END, "eos_token_id": END, "transformers_version": "4.46.3"}
TOKENIZER_CONFIG = {"bos_token": "<|endoftext|>", "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>",
                    "model_max_length": 128, "tokenizer_class": "PreTrainedTokenizerFast"}


def added_token(content, number, special=True, **more):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": not special,
            "special": special} | more


def plain_tokenizer():
    file = {"version": "1.0", "truncation": None, "padding": None} | tiny_model.byte_tokenizer()
    vocabulary = {token: number for token, number in file["model"]["vocab"].items() if number <= 256} | SPECIAL
    for merge in MERGES:
        vocabulary[merge.replace(" ", "")] = len(vocabulary)
    file["model"] |= {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": MERGES}
    file["pre_tokenizer"] |= {"trim_offsets": True}
    file["decoder"] |= {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    file["added_tokens"] = [added_token(name, number) for name, number in SPECIAL.items()]
    file["added_tokens"] += [added_token(name, number, special=False) for name, number in WORDS.items()]
    return file


TOKENIZER = plain_tokenizer()


def small_files(kind="llama"):
    return {"config.json": KINDS[kind], "generation_config.json": GENERATION, "tokenizer_config.json": TOKENIZER_CONFIG,
            "tokenizer.json": TOKENIZER, "chat_template.jinja": CHATML}


# ---- weights: made once, then linked into each directory


def make_weights(folder):
    """One model.safetensors of each kind, as transformers writes it, below the folder."""
    import torch
    import transformers

    for kind, config in KINDS.items():
        torch.manual_seed(7)
        (folder / kind).mkdir(parents=True)
        (folder / kind / "config.json").write_bytes(bytes_of(config))
        made = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder / kind))
        with torch.no_grad():
            for name, parameter in made.named_parameters():  # biases and norms begin as 0 and 1: as if they were not there
                if parameter.dim() == 1:
                    parameter += 0.25 * torch.randn_like(parameter)
        made.float().save_pretrained(folder / kind, max_shard_size="1GB")


def place(folder, weights, files, kind="llama"):
    """A directory with these files instead of the plain ones; a file that is None is not there. `weights` is make_weights()'s folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"model.safetensors": weights / kind / "model.safetensors"} | small_files(kind) | files
    tensors = Tensors(weights / kind / "model.safetensors")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(text):
            text = text(tensors)
        if isinstance(text, Link):
            path.symlink_to(text.target)
        elif isinstance(text, os.PathLike):
            os.link(text, path)
        elif text is not None:
            path.write_bytes(bytes_of(text))
    return folder


class Tensors(dict):
    """name: (dtype, shape, bytes) of one safetensors file."""

    def __init__(self, path):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8:8 + length])
        super().__init__()
        for name, told in header.items():
            if name != "__metadata__":
                begin, end = told["data_offsets"]
                self[name] = (told["dtype"], told["shape"], raw[8 + length + begin:8 + length + end])


def safetensors(tensors, metadata=None, pad=True, keys=("dtype", "shape", "data_offsets"), metadata_last=False, data_order=None):
    """The file of these tensors, in their order; `data_order` is the order of their data where that is another one."""
    offsets, at = {}, 0
    for name in data_order or tensors:
        offsets[name] = [at, at + len(tensors[name][2])]
        at = offsets[name][1]
    header = {name: {key: {"dtype": dtype, "shape": shape, "data_offsets": offsets[name]}[key] for key in keys}
              for name, (dtype, shape, _) in tensors.items()}
    told = {} if metadata is None else {"__metadata__": metadata}
    text = json.dumps(header | told if metadata_last else told | header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8 if pad else 0)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors[name][2] for name in data_order or tensors)
