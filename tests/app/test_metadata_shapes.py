"""The small files of real checkpoints, in the shapes that tools write: each loads, and means what the packages that define it read."""

import functools
import json
import re

import pytest

pytest.importorskip("torch", reason="weights are made by it, and answers compared with its")
pytest.importorskip("transformers", reason="what is read is compared with it")

from metadata_shapes import other_readers, tiny_checkpoints
from metadata_shapes.program_reading import Served, reading
from metadata_shapes.tiny_checkpoints import END, OTHER_END, TOKENIZER_CONFIG, place
from metadata_shapes import (added_tokens_shapes, chat_template_shapes, config_shapes, generation_config_shapes, refused_shapes,
                             special_tokens_map_shapes, tokenizer_config_shapes, tokenizer_shapes, weights_shapes)

TABLES = {
    "config.json": config_shapes.SHAPES,
    "generation_config.json": generation_config_shapes.SHAPES,
    "tokenizer_config.json": tokenizer_config_shapes.SHAPES,
    "special_tokens_map.json": special_tokens_map_shapes.SHAPES,
    "added_tokens.json": added_tokens_shapes.SHAPES,
    "chat templates": chat_template_shapes.SHAPES,
    "tokenizer.json": tokenizer_shapes.SHAPES,
    "model.safetensors.index.json": weights_shapes.SHAPES,
}
OTHER_CONFIG = tiny_checkpoints.LLAMA | {"eos_token_id": OTHER_END}


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    other_readers.transformers()
    tiny_checkpoints.make_weights(folder)
    return folder


@pytest.fixture(scope="session")
def plain_answer(weights, tmp_path_factory):
    """What transformers answers with the plain checkpoint of a kind."""
    return functools.cache(lambda kind="llama": other_readers.answer(place(tmp_path_factory.mktemp("plain"), weights, {}, kind)))


@pytest.fixture
def placed(tmp_path, weights):
    """A model's directory with these files instead of the plain ones."""
    return lambda files, kind="llama", name="model": place(tmp_path / name, weights, files, kind)


def every(table):
    return pytest.mark.parametrize("shape", TABLES[table], ids=str)


def read(folder, *parts, flags=()):
    told = reading(folder, *parts, flags=flags)
    assert "error" not in told, told["error"]
    return told


def numbers_of(arithmetic):
    """The numeric mode's words in the form of other_readers.arithmetic()."""
    windows = [int(width) for run in arithmetic["window"].split(",") for width, count in [run.split("*")] for _ in range(int(count))]
    kind, rope = re.fullmatch(r"(\w+)\((.*)\)", arithmetic["rope"]).groups()
    rope = dict(part.partition("=")[::2] for part in rope.split(","))
    whole = {name: int(arithmetic[name]) for name in "EFLHGDV"}
    return {"model": arithmetic["model"]} | whole | {
        "eps": pytest.approx(float(arithmetic["eps"])), "windows": windows, "tied": "tied" in arithmetic, "rope": kind,
        "theta": pytest.approx(float(rope["theta"])), "factor": pytest.approx(float(rope.get("factor", 1)))}


@every("config.json")
def test_every_shape_of_config_json_loads_and_means_what_transformers_reads(shape, placed):
    folder = placed({"config.json": shape.text, "generation_config.json": None} | shape.beside, shape.kind)
    reader = folder if shape.others_read_it else placed({"generation_config.json": None}, shape.kind, "plain")
    told = read(folder, "arithmetic", "length", "answer", "ends")
    assert other_readers.arithmetic(reader) == numbers_of(told["arithmetic"])
    assert told["length"] == shape.means.get("length", 128)
    assert told["answer"] == other_readers.answer(reader)
    logits = range(tiny_checkpoints.V)
    ends = {END} | {number for number in other_readers.ends_of_config(reader) if number in logits}  # END is the tokenizer's own
    assert told["ends"] == shape.means.get("ends", ends)


@every("generation_config.json")
def test_every_shape_of_generation_config_json_gives_the_ends_and_defaults_that_transformers_reads(shape, placed, plain_answer):
    beside = {"config.json": OTHER_CONFIG, "tokenizer_config.json": TOKENIZER_CONFIG | {"eos_token": None}} | shape.beside
    folder = placed({"generation_config.json": shape.text} | beside)
    plain = {"generation_config.json": generation_config_shapes.PLAIN}
    reader = folder if shape.others_read_it else placed(plain | beside, name="plain")
    told = read(folder, "defaults", "ends", "answer")
    expected = shape.means
    if shape.text is not None:
        ends = other_readers.ends_of_generation(reader) or {OTHER_END}
        expected = {"defaults": other_readers.defaults(reader), "ends": ends} | expected
    logits = range(tiny_checkpoints.V)
    if "top_k" in told["defaults"]:
        told["defaults"]["top_k"] = max(told["defaults"]["top_k"], 0)  # both keep all
    assert told["defaults"] == pytest.approx(expected["defaults"])
    assert told["ends"] == {number for number in expected["ends"] if number in logits}
    assert told["answer"] == plain_answer()


def read_tokenizer(placed, table, plain, shape, beside):
    """What the program reads of a tokenizer's file, and what transformers does."""
    folder = placed({table: shape.text} | beside | shape.beside)
    reader = folder if shape.others_read_it else placed({table: plain} | beside | shape.beside, name="plain")
    told = read(folder, "ids", "ends", "chat", "length")
    return told, {"ids": other_readers.ids(reader), "ends": {OTHER_END} | other_readers.end_of_tokenizer(reader), "chat": other_readers.chat(reader),
                  "length": 128} | shape.means


@every("tokenizer_config.json")
def test_every_shape_of_tokenizer_config_json_gives_the_ends_tokens_and_prompt_that_transformers_reads(shape, placed):
    beside = {"config.json": OTHER_CONFIG, "generation_config.json": None}
    told, expected = read_tokenizer(placed, "tokenizer_config.json", tokenizer_config_shapes.PLAIN, shape, beside)
    assert told == expected


@every("special_tokens_map.json")
def test_every_shape_of_special_tokens_map_json_gives_the_ends_tokens_and_prompt_that_transformers_reads(shape, placed):
    beside = {"config.json": OTHER_CONFIG, "generation_config.json": None, "tokenizer_config.json": special_tokens_map_shapes.NAMELESS}
    told, expected = read_tokenizer(placed, "special_tokens_map.json", special_tokens_map_shapes.PLAIN, shape, beside)
    assert told == expected


@every("added_tokens.json")
def test_every_shape_of_added_tokens_json_loads_and_texts_that_spell_its_tokens_have_the_ids_of_transformers(shape, placed):
    folder = placed({"added_tokens.json": shape.text} | shape.beside)
    reader = folder if shape.others_read_it else placed({"added_tokens.json": added_tokens_shapes.KNOWN} | shape.beside, name="plain")
    names = list(json.loads((reader / "added_tokens.json").read_text())) if shape.text is not None else []
    texts = tiny_checkpoints.TEXTS + [f"a {name}b{name} {name}" for name in names]
    with Served(folder) as served:
        assert not served.error, served.error
        assert served.ids(texts) == other_readers.ids(reader, texts)


@every("chat templates")
def test_every_shape_of_chat_templates_makes_the_prompt_that_transformers_makes(shape, placed):
    long = {"config.json": tiny_checkpoints.LLAMA | {"max_position_embeddings": 2048}}
    folder = placed(shape.beside | long)
    as_if = shape.means.get("as_if")
    in_config = {"chat_template.jinja": None, "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": as_if}}
    reader = placed(in_config, name="other") if as_if else folder
    told = read(folder, "chat", "chat_with_tools", flags=["--tool-call-parser", "hermes"])
    expected = {"chat": other_readers.chat(reader), "chat_with_tools": other_readers.chat_with_tools(reader)}
    expected = {part: 400 if prompt is None else prompt for part, prompt in expected.items()} | shape.means
    assert told["chat"] == expected["chat"]
    if expected["chat_with_tools"] == expected["chat"]:  # a template that drops the tools: the program may say so
        assert told["chat_with_tools"] in (400, expected["chat"])
    else:
        assert told["chat_with_tools"] == expected["chat_with_tools"]


@every("tokenizer.json")
def test_every_shape_of_tokenizer_json_gives_the_ids_and_texts_that_tokenizers_gives(shape, placed):
    folder = placed({"tokenizer.json": shape.text} | shape.beside)
    reader = folder if shape.others_read_it else placed({"tokenizer.json": tokenizer_shapes.PLAIN} | shape.beside, name="plain")
    told = read(folder, "ids", "spelled")
    assert told["ids"] == other_readers.bare_ids(reader)
    assert told["spelled"] == other_readers.bare_spelled(reader)


@every("model.safetensors.index.json")
def test_every_shape_of_the_weights_index_and_header_gives_the_answer_of_the_plain_file(shape, placed, plain_answer):
    assert read(placed(shape.beside, shape.kind), "answer") == {"answer": plain_answer(shape.kind)}


@pytest.mark.parametrize("shape", refused_shapes.SHAPES, ids=str)
def test_what_would_be_answered_wrongly_is_refused_by_name(shape, placed):
    with Served(placed(shape.files, shape.kind)) as served:
        assert served.error and served.code == 2, served.said
    for words in shape.says:
        assert words in served.error, served.error


def contents(shape, folder, weights):
    """All that a shape writes, as bytes."""
    placed = place(folder, weights, {"": None} | shape.beside if shape.text is None else {"text": shape.text} | shape.beside, shape.kind)
    return tuple((str(path.relative_to(placed)), path.read_bytes()) for path in sorted(placed.rglob("*")) if path.is_file())


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_at_least_forty_shapes_of_different_contents_and_names(table, tmp_path, weights):
    shapes = TABLES[table]
    written = {contents(shape, tmp_path / str(number), weights) for number, shape in enumerate(shapes)}
    assert len(written) == len({shape.name for shape in shapes}) == len(shapes) >= 40
