#!/usr/bin/env python3
"""Turns a vocabulary-only GGUF file into the tokenizer.json its model was published with.

Usage: gguf_to_tokenizer_json.py VOCABULARY.gguf > tokenizer.json
GGUF keeps tokens, merges and the name of the split rule; the rule and, for SentencePiece, the merges are ours to add.
"""

import json
import sys

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


DIGITS = {"type": "Digits", "individual_digits": True}
CJK = "[一-龥ࠀ-一가-퟿]+"
# As deepseek-ai/deepseek-llm-7b-base publishes them: letters with case. By number, because editors normalize some.
DEEPSEEK_LLM_LETTERS = "".join("-".join(chr(int(code, 16)) for code in codes.split("-")) for codes in """
    0041-005A 0061-007A 00B5 00C0-00D6 00D8-00F6 00F8-01BA 01BC-01BF 01C4-0293 0295-02AF 0370-0373 0376 0377
    037B-037D 037F 0386 0388-038A 038C 038E-03A1 03A3-03F5 03F7-0481 048A-052F 0531-0556 10A0-10C5 13A0-13F5
    13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57
    1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4
    1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139 213C-213F 2145-2149 214E
    2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF
    FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2
    118A0-118DF 1E900-1E943
    """.split())
PRE_TOKENIZERS = {
    "gpt-2": [byte_level(True)],
    "starcoder": [DIGITS, byte_level(True)],
    "deepseek-coder": [
        split("[\r\n]"),
        split("\\s?\\p{L}+"),
        split("\\s?\\p{P}+"),
        split(CJK),
        DIGITS,
        byte_level(False),
    ],
    "deepseek-llm": [
        split("[\r\n]"),
        split("\\s?[" + DEEPSEEK_LLM_LETTERS + "]+"),
        split("\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
        split("\\s+$"),
        split(CJK),
        DIGITS,
        byte_level(False),
    ],
}


def sentencepiece_merges(tokens, scores):
    """Every pair of tokens that spells a token, the best scored first (as the converters of `transformers` do it)."""
    ids = {token: index for index, token in enumerate(tokens)}
    merges = []
    for token, score in zip(tokens, scores):
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        pairs.sort(key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        merges.extend((score, pair) for pair in pairs)
    merges.sort(key=lambda merge: (merge[0], len(merge[1][0]), len(merge[1][1])), reverse=True)
    return [list(pair) for _, pair in merges]


def convert(path):
    from gguf import GGUFReader

    fields = GGUFReader(path).fields

    def field(name):
        return fields["tokenizer.ggml." + name].contents()

    model, tokens, types = field("model"), field("tokens"), field("token_type")
    if model not in ("gpt2", "llama"):
        raise ValueError(f"{path}: the model {model} is not byte-pair encoding")
    added = [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != USER_DEFINED,
        }
        for index, (token, kind) in enumerate(zip(tokens, types))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]
    bpe = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: index for index, token in enumerate(tokens)},
    }
    result = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": bpe,
    }
    if model == "gpt2":
        bpe["merges"] = field("merges")
        result["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[field("pre")]}
        result["decoder"] = byte_level(True)
    else:
        bpe["merges"] = sentencepiece_merges(tokens, field("scores"))
        bpe.update(unk_token=tokens[field("unknown_token_id")], fuse_unk=True, byte_fallback=True)
        result["normalizer"] = {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        }
        result["decoder"] = {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        }
    return result


if __name__ == "__main__":
    json.dump(convert(sys.argv[1]), sys.stdout, ensure_ascii=False)
