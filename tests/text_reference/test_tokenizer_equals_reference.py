"""quire's tokenizer gives the ids and the text of the independent `tokenizers` package and of published vocabularies.

QUIRE_BUILD_DIR  where encode_tool was built.
QUIRE_SHARED     a folder with data/vocabularies (published, not part of the project); without it those tests are skipped.
QUIRE_TEXT_SEED  the seed, 1 where absent: of one tree the tests say one thing. 0 draws one and prints it.
"""

import json
import os
import pathlib
import random
import re
import subprocess

import pytest
import tokenizers

import generated_text
import gguf_to_tokenizer_json
import reference_tokenizers
from encode_tool import ask

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUM_TEXTS = 20_000
SEED = int(os.environ.get("QUIRE_TEXT_SEED", "1")) or random.SystemRandom().randrange(1, 1 << 32)
PUBLISHED = ["gpt-2", "starcoder", "deepseek-coder", "deepseek-llm", "llama-spm", "phi-3"]
KINDS = [
    "gpt2",
    "gpt2_prefix_space",
    "llama3",
    "qwen2",
    "o200k",
    "deepseek_v3",
    "punctuation",
    "split_behaviors",
    "nfkc_lowercase",
    "nfd_strip_accents",
    "nfkd",
    "llama2_prepend",
    "mistral_metaspace_first",
    "metaspace_always",
    "metaspace_never",
    "unknown_fused",
    "unknown_each",
    "unknown_dropped",
    "across_words",
    "starcoder",
    "deepseek-coder",
    "deepseek-llm",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """{name: path of a trained tokenizer.json}"""
    print(f"\nseed {SEED} (QUIRE_TEXT_SEED={SEED} repeats it)")
    folder = tmp_path_factory.mktemp("tokenizers")
    built = reference_tokenizers.build(random.Random(SEED))
    assert sorted(built) == sorted(KINDS)
    for name, content in built.items():
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False))
    return {name: folder / f"{name}.json" for name in built}


def first_difference(inputs, ours, theirs):
    for given, own, other in zip(inputs, ours, theirs, strict=True):
        if own != other:
            return f"seed {SEED}: for {given!r} quire gives {own!r}, the reference {other!r}"
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_text_equal_the_reference(files, kind):
    rng = random.Random(f"{SEED} {kind}")
    reference = tokenizers.Tokenizer.from_file(str(files[kind]))
    inputs = []
    for _ in range(-(-NUM_TEXTS // len(KINDS))):
        drawn = generated_text.text(rng, reference_tokenizers.MENTIONED)
        inputs.append(generated_text.damaged(rng, drawn) if rng.random() < 0.15 else drawn.encode())
    readable = [data.decode("utf-8", errors="replace") for data in inputs]  # maximal subparts, too
    with_special = rng.random() < 0.5

    theirs = [encoding.ids for encoding in reference.encode_batch(readable, add_special_tokens=with_special)]
    ours = ask(files[kind], [("E" if with_special else "e", data) for data in inputs])
    assert first_difference(inputs, ours, theirs) is None

    size = reference.get_vocab_size()
    drawn_ids = [[rng.randrange(size + 3) for _ in range(rng.randrange(1, 12))] for _ in range(300)]
    bytes_alone = [id for token, id in reference.get_vocab().items() if re.fullmatch("<0x[0-9A-F]{2}>", token)]
    if bytes_alone:
        drawn_ids += [[rng.choice(bytes_alone) if rng.random() < 0.8 else rng.randrange(size) for _ in range(8)] for _ in range(300)]
    for skip in (False, True):
        theirs = reference.decode_batch(ours + drawn_ids, skip_special_tokens=skip)
        own_text = ask(files[kind], [("D" if skip else "d", ids) for ids in ours + drawn_ids])
        assert first_difference(ours + drawn_ids, own_text, theirs) is None
        streamed = ask(files[kind], [("S" if skip else "s", ids) for ids in ours + drawn_ids])
        assert first_difference(ours + drawn_ids, streamed, theirs) is None
    print(f"{kind}: {len(inputs)} texts, {sum(map(len, ours))} ids")


@pytest.fixture(scope="module")
def published_folder():
    folder = pathlib.Path(os.environ.get("QUIRE_SHARED", "/nonexistent")) / "data" / "vocabularies"
    if not folder.is_dir():
        print(
            "\nskipped: QUIRE_SHARED names no folder with data/vocabularies, and published ones are not part of the project"
        )
        pytest.skip("no published vocabularies: set QUIRE_SHARED")
    return folder


def converted(folder, name, tmp_path):
    """The tokenizer.json that quire makes of a GGUF file."""
    path = tmp_path / f"{name}.json"
    tool = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "gguf_tool"
    path.write_bytes(subprocess.run([tool, "--tokenizer", folder / f"ggml-vocab-{name}.gguf"], capture_output=True, check=True).stdout)
    return path


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_made_of_a_gguf_file_is_what_its_model_was_published_with(published_folder, tmp_path, name):
    pytest.importorskip("gguf")
    made = json.loads(converted(published_folder, name, tmp_path).read_text())
    published = gguf_to_tokenizer_json.convert(published_folder / f"ggml-vocab-{name}.gguf")
    assert made["model"]["vocab"] == published["model"]["vocab"]
    pairs = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in published["model"]["merges"]]
    assert made["model"]["merges"] == pairs
    assert made["added_tokens"] == published["added_tokens"]
    assert made["normalizer"] == published["normalizer"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_ids(published_folder, tmp_path, name):
    pytest.importorskip("gguf")
    path = converted(published_folder, name, tmp_path)
    source = published_folder / f"ggml-vocab-{name}.gguf"
    texts = pathlib.Path(f"{source}.inp").read_bytes().split(b"\n__ggml_vocab_test__\n")
    published = [list(map(int, line.split())) for line in pathlib.Path(f"{source}.out").read_text().splitlines()]
    texts = texts[: len(published)]  # the file ends with a separator
    assert len(texts) == len(published)
    ours = ask(path, [("e", text) for text in texts])
    assert first_difference(texts, ours, published) is None
    print(f"{name}: {len(texts)} published encodings")


SPECIAL_MENTIONS = ["<s>", "</s>", "<|endoftext|>", "<|end|>", "<fim_prefix>"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_vocabulary_equals_the_reference_on_generated_text(published_folder, tmp_path, name):
    pytest.importorskip("gguf")
    path = converted(published_folder, name, tmp_path)
    rng = random.Random(f"{SEED} {name}")
    texts = [generated_text.text(rng, SPECIAL_MENTIONS) for _ in range(500)]
    theirs = [encoding.ids for encoding in tokenizers.Tokenizer.from_file(str(path)).encode_batch(texts)]
    assert first_difference(texts, ask(path, [("E", text) for text in texts]), theirs) is None


@pytest.mark.parametrize("kind", ["gpt2", "llama3", "qwen2", "deepseek-llm", "llama2_prepend", "metaspace_always"])
def test_time_is_linear(files, kind):
    """Fails for gross non-linearity only; the speeds are printed."""
    rng = random.Random(f"{SEED} time")
    prose = " ".join(generated_text.training_lines(rng, 20_000))
    hard = {
        "one letter": "a",
        "blanks": " ",
        "line feeds": "\n",
        "a blank and a Han character": " 一",
        "emoji": "👍🏽",
        "digits": "7",
        "quotes": "'",
        "marks": "a\u0301\u0323",
    }
    texts = {name: unit * (1_000_000 // len(unit.encode())) for name, unit in hard.items()}
    texts["blanks before a Han character"] = " " * 1_000_000 + "一"
    texts["prose"] = prose
    for name, text in texts.items():
        tenth = text[: len(text) // 10]
        short, long = ask(files[kind], [("t", tenth), ("t", text)])  # of the processor
        size = len(text.encode())
        print(f"{kind}: {name}: {size / 1e6:.1f} MB in {long:.3f} s of one core, {size / long / 1e6:.1f} MB/s")
        assert long < 40 * max(short, 0.005), f"{name}: {short:.3f} s for a tenth, {long:.3f} s for all"
