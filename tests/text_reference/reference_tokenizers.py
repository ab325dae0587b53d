"""tokenizer.json files of every kind quire reads, trained on generated text with the `tokenizers` package."""

import copy
import json

import tokenizers
from tokenizers import AddedToken, models, pre_tokenizers, trainers

import generated_text
from gguf_to_tokenizer_json import DIGITS, PRE_TOKENIZERS, byte_level, split

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
DEEPSEEK_V3 = "|".join(
    [
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+""",
        r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
        r" ?[\p{P}\p{S}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
BLANK_TO_LOW_LINE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


def sequence(key, parts):
    return {"type": "Sequence", key: parts}


SENTENCEPIECE_DECODER = sequence(
    "decoders",
    [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
)


def metaspace(scheme, split_words):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split_words}


def bos_eos(with_eos):
    """A template as Llama's (BOS) or a BERT-like one (BOS and EOS)."""
    pieces = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    if with_eos:
        pieces.append({"SpecialToken": {"id": "</s>", "type_id": 0}})
    return lambda ids: {
        "type": "TemplateProcessing",
        "single": pieces,
        "pair": pieces + [{"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("<s>", "</s>")},
    }


def trained(lines, pre_tokenizer, size, added):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if not isinstance(pre_tokenizer, pre_tokenizers.Metaspace) else []
    tokenizer.train_from_iterator(
        lines,
        trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer.add_tokens(added)
    return json.loads(tokenizer.to_str())


ADDED = [
    AddedToken("<tool>", normalized=False),
    AddedToken("word", single_word=True, normalized=False),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=False, special=True),
    AddedToken("Straße", normalized=True),
    AddedToken("n\u0303u", normalized=True, single_word=True),
    AddedToken("<|im_start|>user", normalized=False),
    AddedToken("  ", normalized=False),
]
MENTIONED = SPECIAL + [str(token.content) for token in ADDED] + ["<left><right>", "words", "straße", "ñu"]


def leave_characters_unknown(base):
    """Takes half of the characters that no merge needs out, so that byte fallback and <unk> have work to do."""
    old = base["model"]["vocab"]
    merged = {part for merge in base["model"]["merges"] for part in merge}
    dispensable = [token for token in old if len(token) == 1 and token not in merged and token != "▁"][::2]
    tokens = [token for token in sorted(old, key=old.get) if token not in dispensable]
    tokens += ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = {
        token: index for index, token in enumerate(tokens)
    }  # dense, as the package numbers added tokens itself
    base["model"]["vocab"] = vocabulary
    next_id = len(vocabulary)
    for token in base["added_tokens"]:
        token["id"] = vocabulary.get(token["content"], next_id)
        next_id += token["id"] == next_id


def build(rng):
    """{name: tokenizer.json as a dict}"""
    lines = generated_text.training_lines(rng, 4000)
    bytes_base = trained(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), 2000, ADDED)
    pieces_base = trained(lines, pre_tokenizers.Metaspace(), 2500, ADDED)
    leave_characters_unknown(pieces_base)
    across_base = trained(lines[:600], pre_tokenizers.Metaspace(split=False), 3000, ADDED)  # merges that span words

    def made(base, **changes):
        result = copy.deepcopy(base)
        result["model"].update(changes.pop("model", {}))
        template = changes.pop("template", None)
        result.update(changes)
        if template:
            ids = {token["content"]: token["id"] for token in result["added_tokens"]}
            result["post_processor"] = template(ids)
        return result

    def of_bytes(pre, **changes):
        return made(bytes_base, pre_tokenizer=sequence("pretokenizers", pre), decoder=byte_level(True), **changes)

    def of_pieces(**changes):
        model = dict(unk_token="<unk>", fuse_unk=True, byte_fallback=True) | changes.pop("model", {})
        return made(pieces_base, model=model, **changes)

    prepend = sequence("normalizers", [{"type": "Prepend", "prepend": "▁"}, BLANK_TO_LOW_LINE])
    result = {
        "gpt2": of_bytes([byte_level(True)]),
        "gpt2_prefix_space": of_bytes([dict(byte_level(True), add_prefix_space=True)], template=bos_eos(True)),
        "llama3": of_bytes([split(LLAMA3), byte_level(False)], model={"ignore_merges": True}, template=bos_eos(False)),
        "qwen2": of_bytes([split(QWEN2), byte_level(False)], normalizer={"type": "NFC"}),
        "o200k": of_bytes([split(O200K), byte_level(False)]),
        "deepseek_v3": of_bytes(
            [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK_V3), byte_level(False)]
        ),
        "punctuation": of_bytes([{"type": "Punctuation"}, dict(DIGITS, individual_digits=False), byte_level(False)]),
        "split_behaviors": of_bytes(
            [
                dict(split(r"\s+"), behavior="MergedWithNext"),
                dict(split(r"\p{Lu}"), behavior="Contiguous"),
                {"type": "Split", "pattern": {"String": "."}, "behavior": "MergedWithPrevious", "invert": False},
                dict(split(r"[^x]+"), behavior="Removed", invert=True),
                {"type": "WhitespaceSplit"},
                byte_level(False),
            ]
        ),
        "nfkc_lowercase": of_bytes(
            [byte_level(True)],
            normalizer=sequence(
                "normalizers",
                [
                    {"type": "NFKC"},
                    {"type": "Lowercase"},
                    {"type": "Strip", "strip_left": True, "strip_right": True},
                    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"},
                ],
            ),
        ),
        "nfd_strip_accents": of_bytes(
            [byte_level(True)], normalizer=sequence("normalizers", [{"type": "NFD"}, {"type": "StripAccents"}])
        ),
        "nfkd": of_bytes([byte_level(True)], normalizer={"type": "NFKD"}),
        "llama2_prepend": of_pieces(
            normalizer=prepend, pre_tokenizer=None, decoder=SENTENCEPIECE_DECODER, template=bos_eos(False)
        ),
        "mistral_metaspace_first": of_pieces(pre_tokenizer=metaspace("first", False), decoder=SENTENCEPIECE_DECODER),
        "metaspace_always": of_pieces(pre_tokenizer=metaspace("always", True), decoder=metaspace("always", True)),
        "metaspace_never": of_pieces(pre_tokenizer=metaspace("never", True), decoder=metaspace("never", True)),
        "unknown_fused": of_pieces(
            pre_tokenizer=metaspace("first", True), model={"byte_fallback": False}, decoder=None
        ),
        "unknown_each": of_pieces(
            pre_tokenizer=metaspace("always", False), decoder=None, model={"byte_fallback": False, "fuse_unk": False}
        ),
        "unknown_dropped": of_pieces(
            normalizer=prepend,
            pre_tokenizer=None,
            decoder={"type": "Fuse"},
            model={"byte_fallback": False, "unk_token": None},
        ),
    }
    result["across_words"] = made(across_base, normalizer=prepend, pre_tokenizer=None, decoder=SENTENCEPIECE_DECODER)
    for name in ("starcoder", "deepseek-coder", "deepseek-llm"):
        result[name] = of_bytes(PRE_TOKENIZERS[name])
    # The older spelling of merges; only possible without blanks in tokens.
    result["gpt2"]["model"]["merges"] = [" ".join(merge) for merge in result["gpt2"]["model"]["merges"]]
    return result
