"""A GGUF file names the rule that cuts text into words: each is the pre-tokenizer that its models were published with.

The reference is the package `tokenizers`, given the published pre-tokenizer. The vocabulary has merges that span words, digits
and punctuation, so that a cut in another place shows in the ids.
"""

import json
import os
import pathlib
import random
import subprocess

import pytest
import tokenizers
from tokenizers import pre_tokenizers

import generated_text
import reference_tokenizers
from encode_tool import ask
from gguf_to_tokenizer_json import DIGITS, PRE_TOKENIZERS, byte_level, split
from reference_tokenizers import DEEPSEEK_V3, LLAMA3, O200K, QWEN2

gguf = pytest.importorskip("gguf", reason="GGUF files are written by the package gguf")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "gguf_tool"
SEED = 1
NUM_TEXTS = 1500
BLOOM = [split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(False)]
DEEPSEEK_3 = [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK_V3), byte_level(False)]
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
WORDS = {
    **{name: steps for name, steps in PRE_TOKENIZERS.items()},
    **{name: [byte_level(True)] for name in ("phi-2", "mpt", "olmo", "exaone4", "trillion")},
    **{name: [DIGITS, byte_level(True)] for name in ("refact", "command-r", "smollm", "mellum2")},
    **{name: [split(LLAMA3), byte_level(False)] for name in ("llama-bpe", "falcon3", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4")},
    **{name: [split(QWEN2), byte_level(False)] for name in ("qwen2", "deepseek-r1-qwen", "hunyuan", "stablelm2")},
    **{name: DEEPSEEK_3 for name in ("deepseek-v3", "hunyuan-dense")},
    **{name: [split(O200K), byte_level(False)] for name in ("gpt-4o", "llama4")},
    **{name: BLOOM for name in ("bloom", "poro-chat", "gpt3-finnish")},
    "viking": [BLOOM[0], split(r"\p{N}"), byte_level(False)],
    "minicpm5": [split(r"\p{N}{1,3}"), split(LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+")), byte_level(False)],
    "ufakzeka": [split(QWEN2.partition(")|")[2]), byte_level(False)],
    "laguna": [split(r"[^\n]+|[\n]+"), split(QWEN2), byte_level(False)],
    "default": [split(r"[\p{P}\$\+<=>\^~\|]+"), byte_level(True), {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")],
    "tekken": [split(TEKKEN), byte_level(False)],
    "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), {"type": "Digits", "individual_digits": False},
               split("[0-9][0-9][0-9]")],
    "seed-coder": [split(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"),
                   byte_level(False)],
    "bailingmoe": [split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"),
                   byte_level(False)],
}


@pytest.fixture(scope="module")
def lines():
    drawn = generated_text.training_lines(random.Random(SEED), 1500)
    return drawn + ["it's 1234.56, (a1b22c333) 4444! ... 12½345 x² \n\n  a\t b\r\n«да», 你好，世界。 don'T WE'LL"] * 60


@pytest.fixture(scope="module")
def model(lines):
    return reference_tokenizers.trained(lines, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), 3000, [])["model"]


@pytest.mark.parametrize("name", WORDS)
def test_text_is_cut_as_its_models_were_published(name, lines, model, tmp_path):
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre(name), writer.add_token_list(vocabulary), writer.add_add_bos_token(False)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(vocabulary)), writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    made = subprocess.run([TOOL, "--tokenizer", tmp_path / "x.gguf"], capture_output=True, check=True).stdout
    (tmp_path / "tokenizer.json").write_bytes(made)

    whole_words = json.loads(made)["model"]["ignore_merges"]
    reference = tokenizers.Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "decoder": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": WORDS[name]}, "model": {**model, "ignore_merges": whole_words}}))
    rng = random.Random(f"{SEED} {name}")
    texts = [generated_text.text(rng, []) for _ in range(NUM_TEXTS)] + [rng.choice(lines) for _ in range(200)] + lines[-1:]
    ours = ask(tmp_path / "tokenizer.json", [("e", text) for text in texts])
    theirs = [encoding.ids for encoding in reference.encode_batch(texts, add_special_tokens=False)]
    for text, own, other in zip(texts, ours, theirs, strict=True):
        assert own == other, text


def test_gemma_4_merges_characters_of_a_whole_text_and_falls_back_to_bytes(lines, tmp_path):
    """As in its tokenizer.json: blanks become ▁ and stay within words, which have merges by rank; BOS comes before a text."""
    made = [f"<0x{byte:02X}>" for byte in range(256)]
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=2000, show_progress=False, limit_alphabet=80)
    trained.train_from_iterator([line.replace("\n", " ") for line in lines], trainer)
    model = json.loads(trained.to_str())["model"]
    tokens = special + made + sorted(model["vocab"], key=model["vocab"].get)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "gemma4")
    writer.add_tokenizer_model("gemma4"), writer.add_token_list(tokens), writer.add_token_scores([0.0] * len(tokens))
    kinds = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.UNKNOWN] + [gguf.TokenType.BYTE] * 256
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds)))
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(2), writer.add_unk_token_id(3), writer.add_add_space_prefix(False), writer.add_add_bos_token(True)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    text = subprocess.run([TOOL, "--tokenizer", tmp_path / "x.gguf"], capture_output=True, check=True).stdout
    (tmp_path / "tokenizer.json").write_bytes(text)
    reference = tokenizers.Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": json.loads(text)["added_tokens"], "post_processor": None, "decoder": None,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "model": {**model, "vocab": {token: place for place, token in enumerate(tokens)}, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}}))
    rng = random.Random(SEED)
    texts = [generated_text.text(rng, []) for _ in range(500)] + [rng.choice(lines) for _ in range(100)] + lines[-1:] + ["a  b", " ", "日本"]
    theirs = [encoding.ids for encoding in reference.encode_batch(texts, add_special_tokens=False)]
    for one, own, other in zip(texts, ask(tmp_path / "tokenizer.json", [("e", text) for text in texts]), theirs, strict=True):
        assert own == other, one
    assert any(4 <= token < 260 for ids in theirs for token in ids), "no byte was needed"
