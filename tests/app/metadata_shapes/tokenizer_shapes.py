"""tokenizer.json. The `tokenizers` package, which defines the file, says the ids of TEXTS and how they are spelled again."""

import json

from metadata_shapes import shape
from metadata_shapes.shape import Shape, without
from metadata_shapes.tiny_checkpoints import FREE, TOKENIZER, V, added_token

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
          r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]


# ---- parts


def byte_level(prefix=False, trim=True, **more):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim} | more


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def words(*parts):
    return {"pre_tokenizer": sequence("pretokenizers", *parts)}


def template(before=(), after=(), numbers=None):
    """TemplateProcessing with these special tokens around a text."""
    numbers = numbers or {"<|endoftext|>": [0], "<|im_end|>": [258], "<|im_start|>": [257]}
    special = [{"SpecialToken": {"id": name, "type_id": 0}} for name in before]
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in after]
    return {"type": "TemplateProcessing", "single": [*special, {"Sequence": {"id": "A", "type_id": 0}}, *ends],
            "pair": [*special, {"Sequence": {"id": "A", "type_id": 0}}, *ends, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": numbers[name], "tokens": [name] * len(numbers[name])} for name in (*before, *after)}}


def of(**parts):
    """The plain file with these parts instead of its own; those of `model` one by one."""
    model = parts.pop("model", {})
    return TOKENIZER | parts | {"model": TOKENIZER["model"] | model}


def plus(*tokens):
    return of(added_tokens=TOKENIZER["added_tokens"] + list(tokens))


def replaced(name, **flags):
    return of(added_tokens=[token | (flags if token["content"] == name else {}) for token in TOKENIZER["added_tokens"]])


# ---- a file as it is made of SentencePiece's


def pieces():
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    merges = ["\u2581 t", "h e", "\u2581t he", "i n", "a n", "an d", "\u2581 and", "o u", "r e", "\u2581 o", "t h", "l l", "s s", "\u2581 \u2581"]
    for token in ["\u2581", *"abcdefghijklmnopqrstuvwxyz,.'12I", *(merge.replace(" ", "") for merge in merges)]:
        vocabulary[token] = len(vocabulary)
    assert len(vocabulary) <= V
    return vocabulary, merges


PREPEND, UNDERLINE = {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
BLANK = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
PIECE_DECODER = sequence("decoders", BLANK, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP)
VOCABULARY, MERGES = pieces()
PIECES = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [added_token("<unk>", 0, normalized=True), added_token("<s>", 1, normalized=True), added_token("</s>", 2, normalized=True)],
    "normalizer": sequence("normalizers", PREPEND, UNDERLINE), "pre_tokenizer": None, "post_processor": template(["<s>"], numbers={"<s>": [1]}),
    "decoder": PIECE_DECODER,
    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
              "byte_fallback": True, "vocab": VOCABULARY, "merges": MERGES}}


def metaspace(**more):
    return {"type": "Metaspace", "replacement": "\u2581"} | more


def piece_file(name, model=None, **parts):
    names = {"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>"}}
    return Shape(name, PIECES | parts | {"model": PIECES["model"] | (model or {})}, beside=names)


SHAPES = [
    # ---- bytes
    Shape("Qwen2: NFC, Split and ByteLevel, ByteLevel behind", of(
        normalizer={"type": "NFC"}, **words(split(QWEN2), byte_level(trim=False, use_regex=False)),
        post_processor=byte_level(trim=False, use_regex=False), decoder=byte_level(trim=False, use_regex=False))),
    Shape("Llama 3: ignore_merges, ByteLevel and a template behind", of(
        **words(split(LLAMA3), byte_level(use_regex=False)), post_processor=sequence("processors", byte_level(), template(["<|endoftext|>"])),
        model={"ignore_merges": True})),
    Shape("Llama 3 of transformers 4.40: merges as texts, ignore_merges absent", of(
        **words(split(LLAMA3), byte_level(use_regex=False)), model={"merges": TOKENIZER["model"]["merges"]}) | {
        "model": without(TOKENIZER["model"], "ignore_merges")}),
    Shape("Mistral's Tekken", of(**words(split(TEKKEN), byte_level(use_regex=False)), post_processor=template(["<|endoftext|>"]))),
    Shape("deepseek-coder: four Splits, Digits, ByteLevel", of(**words(
        *(split(pattern) for pattern in DEEPSEEK), {"type": "Digits", "individual_digits": True}, byte_level(use_regex=False)))),
    Shape("SmolLM: Digits and ByteLevel", of(**words({"type": "Digits", "individual_digits": True}, byte_level(use_regex=True)))),
    Shape("Digits in runs", of(**words({"type": "Digits", "individual_digits": False}, byte_level()))),
    Shape("GPT-2's own file: a model without its type, affixes that are empty", of(
        pre_tokenizer=byte_level(), post_processor=byte_level(trim=False), decoder=byte_level(True)) | {
        "model": without(TOKENIZER["model"], "type", "byte_fallback", "ignore_merges") | {
            "continuing_subword_prefix": "", "end_of_word_suffix": ""}}),
    Shape("GPT-NeoX's: use_regex absent", of(pre_tokenizer=byte_level(), decoder=byte_level(True))),
    Shape("a blank in front of every text", of(pre_tokenizer=byte_level(True, use_regex=True))),
    Shape("ByteLevel without its words", of(pre_tokenizer=byte_level(use_regex=False))),
    Shape("Punctuation and ByteLevel", of(**words({"type": "Punctuation", "behavior": "Isolated"}, byte_level(use_regex=False)))),
    Shape("Punctuation without a behavior", of(**words({"type": "Punctuation"}, byte_level(use_regex=False)))),
    Shape("Splits at a text: merged with what is before or behind", of(**words(
        split(" ", "MergedWithNext", kind="String"), split(",", "MergedWithPrevious", kind="String"), byte_level(use_regex=False)))),
    Shape("a Split that is inverted", of(**words(split(r"\p{L}+|\p{N}+|\s+", "Removed", invert=True), byte_level(use_regex=False)))),
    Shape("Sequences inside of Sequences",
          of(pre_tokenizer=sequence("pretokenizers", sequence("pretokenizers", split(QWEN2)), byte_level(use_regex=False)),
             normalizer=sequence("normalizers", sequence("normalizers", {"type": "NFC"})))),

    # ---- what stands around a text
    Shape("a template: begin", of(post_processor=template(["<|endoftext|>"]))),
    Shape("a template: begin and end", of(post_processor=template(["<|endoftext|>"], ["<|im_end|>"]))),
    Shape("a template: end alone", of(post_processor=template([], ["<|im_end|>"]))),
    Shape("a template: nothing", of(post_processor=template())),
    Shape("a template: one name, two numbers", of(post_processor=template(["both"], numbers={"both": [257, 0]}))),
    Shape("an empty Sequence behind", of(post_processor=sequence("processors"))),
    Shape("axolotl's data: truncation and padding are set", of(
        truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        padding={"strategy": {"Fixed": 12}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 259, "pad_type_id": 0, "pad_token": "<pad>"},
        post_processor=template(["<|endoftext|>"]))),
    Shape("sentence-transformers: truncation to 512, padding of a batch", of(
        truncation={"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0},
        padding={"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": 8, "pad_id": 0, "pad_type_id": 0,
                 "pad_token": "<|endoftext|>"})),

    # ---- the model
    Shape("tokenizers 0.20: merges as pairs", of(model={"merges": [merge.split(" ") for merge in TOKENIZER["model"]["merges"]]})),
    Shape("dropout 0.0", of(model={"dropout": 0.0})),
    Shape("an unk that is the end", of(model={"unk_token": "<|endoftext|>"})),
    Shape("fuse_unk and byte_fallback over letters of bytes", of(model={"fuse_unk": True, "byte_fallback": True, "unk_token": "<pad>"})),
    Shape("affixes that are empty", of(model={"continuing_subword_prefix": "", "end_of_word_suffix": ""})),
    Shape("flags absent", TOKENIZER | {"model": {key: TOKENIZER["model"][key] for key in ("type", "vocab", "merges")}}),
    Shape("the type last", TOKENIZER | {"model": without(TOKENIZER["model"], "type") | {"type": "BPE"}}),
    Shape("a vocabulary in no order", of(model={"vocab": dict(sorted(TOKENIZER["model"]["vocab"].items()))})),
    Shape("a vocabulary with a hole", of(added_tokens=TOKENIZER["added_tokens"][:4], model={"vocab": TOKENIZER["model"]["vocab"] | {"ss": V - 5}})),
    Shape("no merges", of(model={"merges": []})),

    # ---- normalizers and decoders
    Shape("an empty Sequence of normalizers", of(normalizer=sequence("normalizers"))),
    Shape("NFKC", of(normalizer={"type": "NFKC"})),
    Shape("NFD and marks taken away", of(normalizer=sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}))),
    Shape("line breaks made one kind, blanks at the ends taken away", of(normalizer=sequence(
        "normalizers", {"type": "Replace", "pattern": {"Regex": "\\r\\n|\\r"}, "content": "\n"},
        {"type": "Strip", "strip_left": False, "strip_right": True}))),
    Shape("a Sequence of one decoder", of(decoder=sequence("decoders", byte_level(True)))),
    Shape("no decoder", of(decoder=None)),

    # ---- added tokens
    Shape("Phi-3: rstrip", replaced("<|im_end|>", rstrip=True)),
    Shape("RoBERTa's mask: lstrip", replaced("<pad>", lstrip=True)),
    Shape("both", replaced("<|im_start|>", lstrip=True, rstrip=True)),
    Shape("single_word", plus(added_token("and", 267, special=False, single_word=True))),
    Shape("normalized though special", replaced("<|im_start|>", normalized=True)),
    Shape("a normalizer that changes an added token",
          of(normalizer={"type": "NFC"}, added_tokens=[*TOKENIZER["added_tokens"], added_token("e\u0301", FREE, special=False)])),
    Shape("the flags of tokenizers alone: no special ones", of(added_tokens=[token | {"special": False} for token in TOKENIZER["added_tokens"]])),
    Shape("numbers of the vocabulary in no order", of(added_tokens=[TOKENIZER["added_tokens"][at] for at in (3, 1, 0, 2, 4, 5)])),
    Shape("Llama 3: reserved ones behind the vocabulary", plus(*(added_token(f"<|reserved_special_token_{at}|>", FREE + at) for at in range(20)))),
    Shape("a pad that the model's rows were not made for: more tokens than logits", plus(
        *(added_token(f"<unused{at}>", FREE + at) for at in range(V - FREE)), added_token("<|pad_of_mine|>", V))),
    Shape("runs of blanks", plus(*(added_token(" " * (4 - at), FREE + at, special=False) for at in range(3)))),
    Shape("an empty one", plus(added_token("", FREE))),
    Shape("none", of(added_tokens=[])),

    # ---- SentencePiece's
    piece_file("Llama 2: Prepend and Replace"),
    piece_file("Llama 2 with pairs, ignore_merges false", {"merges": [merge.split(" ") for merge in MERGES], "ignore_merges": False}),
    piece_file("Yi: no Prepend, no Strip",
               normalizer=sequence("normalizers", UNDERLINE), decoder=sequence("decoders", BLANK, {"type": "ByteFallback"}, {"type": "Fuse"}),
               post_processor=None),
    piece_file("Mistral 0.3: Metaspace in front of the first", normalizer=None, pre_tokenizer=metaspace(prepend_scheme="first", split=False)),
    piece_file("Llama of transformers 4.40, legacy false: Metaspace, split false",
               normalizer=None, pre_tokenizer=metaspace(prepend_scheme="always", split=False)),
    piece_file("Metaspace, never in front",
               normalizer=None, pre_tokenizer=metaspace(prepend_scheme="never", split=True), decoder=metaspace(prepend_scheme="never", split=True)),
    piece_file("Metaspace, never in front, and its older flag",
               normalizer=None, pre_tokenizer=metaspace(add_prefix_space=False, prepend_scheme="never", split=True)),
    piece_file("tokenizers 0.13: Metaspace with add_prefix_space, decoder likewise", normalizer=None,
               pre_tokenizer=metaspace(add_prefix_space=True), decoder=metaspace(add_prefix_space=True)),
    piece_file("tokenizers 0.14: Metaspace with both", normalizer=None, pre_tokenizer=metaspace(add_prefix_space=True, prepend_scheme="always"),
               decoder=metaspace(add_prefix_space=True, prepend_scheme="always")),
    piece_file("tokenizers 0.10: Metaspace with str_rep", normalizer=None, pre_tokenizer=metaspace(str_rep="\u2581", add_prefix_space=True)),
    piece_file("no unk", {"unk_token": None}),
    piece_file("unknown letters not fused, no bytes for them", {"fuse_unk": False, "byte_fallback": False}),
    piece_file("Lucie 7B: Metaspace and Replace behind ByteFallback", decoder=sequence(
        "decoders", {"type": "ByteFallback"}, metaspace(add_prefix_space=True, prepend_scheme="always"), {"type": "Fuse"},
        {"type": "Replace", "pattern": {"String": "\n "}, "content": "\n"}), normalizer=None,
               pre_tokenizer=metaspace(prepend_scheme="always", split=True)),
    piece_file("CodeLlama: infill tokens that are normalized",
               added_tokens=[*PIECES["added_tokens"], added_token("\u2581and", VOCABULARY["\u2581and"], special=False)]),
    piece_file("axolotl: ChatML behind Llama 2's",
               added_tokens=[*PIECES["added_tokens"], added_token("<|im_start|>", len(VOCABULARY)), added_token("<|im_end|>", len(VOCABULARY) + 1)],
               padding={"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": None, "pad_id": 2, "pad_type_id": 0,
                        "pad_token": "</s>"}),

    # ---- how it is written
    Shape("letters not escaped", json.dumps(TOKENIZER, indent=2, ensure_ascii=False)),
    Shape("one line without blanks", json.dumps(TOKENIZER, separators=(",", ":"), ensure_ascii=False)),
    Shape("every letter escaped", shape.all_escaped(TOKENIZER)),
    Shape("an editor's CR LF", shape.crlf(TOKENIZER)),
    Shape("an editor's byte order mark", shape.byte_order_mark(TOKENIZER), others_read_it=False),
    Shape("tabs", shape.tabs(TOKENIZER)),
    Shape("keys in the other order", shape.backwards(TOKENIZER)),
    Shape("an unknown key beside", TOKENIZER | {"model": TOKENIZER["model"] | {"vocab_size": 1000000000000000019884624838656}}),
    Shape("model last, as tokenizers writes it, and a line break",
          json.dumps(without(TOKENIZER, "model") | {"model": TOKENIZER["model"]}, indent=2) + "\n"),
]
PLAIN = TOKENIZER
