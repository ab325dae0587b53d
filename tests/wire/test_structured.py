"""Answers that must have a form: JSON, schemas, expressions, choices and grammars, with sampling as wild as it gets."""

import json
import re

import jsonschema
import pytest

from conftest import choices_of

PROMPT = "Answer in JSON: "
WILD = dict(max_tokens=400, temperature=2.0, top_p=1.0)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
                   "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3}},
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


def ended(server, **fields):
    """The text of an answer that came to its end."""
    for seed in range(20):
        choice = server.complete(PROMPT, **{**WILD, "seed": seed, **fields})["choices"][0]
        if choice["finish_reason"] == "stop":
            return choice["text"]
    raise AssertionError("no answer ended")


@pytest.mark.parametrize("fields", [
    dict(response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}),
    dict(structured_outputs={"json": SCHEMA}), dict(structured_outputs={"json": json.dumps(SCHEMA)}), dict(guided_json=SCHEMA),
    dict(response_format={"type": "json_object", "schema": SCHEMA}), dict(response_format={"type": "json_object", "value": SCHEMA}),
    dict(json_schema=json.dumps(SCHEMA)),
], ids=lambda fields: next(iter(fields)))
def test_a_schema_is_held_to(server, fields):
    for seed in range(5):
        choice = server.complete(PROMPT, **WILD, seed=seed, **fields)["choices"][0]
        if choice["finish_reason"] == "stop":
            jsonschema.validate(json.loads(choice["text"]), SCHEMA)
    jsonschema.validate(json.loads(ended(server, **fields)), SCHEMA)


def test_a_json_object_is_one(server):
    assert isinstance(json.loads(ended(server, response_format={"type": "json_object"}, temperature=0.7)), dict)


@pytest.mark.parametrize("fields", [dict(guided_regex="[a-c]{2,5}-\\d{3}"), dict(structured_outputs={"regex": "[a-c]{2,5}-\\d{3}"}),
                                    dict(regex="[a-c]{2,5}-\\d{3}")], ids=str)
def test_an_expression_is_matched(server, fields):
    for seed in range(8):
        choice = server.complete(PROMPT, **WILD, seed=seed, **fields)["choices"][0]
        assert re.fullmatch("[a-c]{2,5}-\\d{3}", choice["text"]) and choice["finish_reason"] == "stop"


@pytest.mark.parametrize("fields", [dict(guided_choice=["yes", "no", "maybe"]), dict(structured_outputs={"choice": ["yes", "no", "maybe"]})], ids=str)
def test_a_choice_is_one_of_them(server, fields):
    said = {server.complete(PROMPT, **WILD, seed=seed, **fields)["choices"][0]["text"] for seed in range(30)}
    assert said <= {"yes", "no", "maybe"} and len(said) > 1


def test_a_grammar_of_lark_is_followed(server):
    """It is known by having no ::=, as vLLM knows it."""
    grammar = """
        start: sum                // it begins with itself
        ?sum: sum "+" NUMBER -> add
            | NUMBER
        %import common.NUMBER
        %ignore " "
    """
    for fields in (dict(guided_grammar=grammar), dict(structured_outputs={"grammar": grammar}), dict(ebnf=grammar), dict(grammar=grammar),
                   dict(response_format={"type": "grammar", "grammar": grammar})):
        answer = server.complete("Once", max_tokens=40, temperature=1.0, seed=3, **fields)["choices"][0]
        assert re.fullmatch(r"[ 0-9.eE+-]+", answer["text"]), answer
        if answer["finish_reason"] == "stop":
            assert all(float(part) >= 0 for part in re.sub("[eE][+]", "e", answer["text"]).split("+"))


def test_a_grammar_is_followed(server):
    grammar = 'root ::= greeting " " ("world" | "moon") "!"\ngreeting ::= "hello" | "good " ("day" | "night")'
    for fields in (dict(guided_grammar=grammar), dict(structured_outputs={"grammar": grammar}), dict(ebnf=grammar), dict(grammar=grammar),
                   dict(response_format={"type": "grammar", "grammar": grammar})):
        for seed in range(6):
            text = server.text(PROMPT, **WILD, seed=seed, **fields)
            assert re.fullmatch(r"(hello|good (day|night)) (world|moon)!", text), text


def test_text_is_free(server):
    plain = server.text(PROMPT, max_tokens=10, seed=1)
    assert server.text(PROMPT, max_tokens=10, seed=1, response_format={"type": "text"}) == plain


def test_a_stream_and_its_siblings_have_the_text_of_the_whole(server):
    fields = dict(max_tokens=60, temperature=1.0, seed=3, guided_json=SCHEMA)
    whole = server.complete([PROMPT, "x"], n=2, **fields)["choices"]
    with server.stream([PROMPT, "x"], n=2, **fields) as events:
        streamed, _ = choices_of(events)
    assert [streamed[i][0] for i in range(4)] == [choice["text"] for choice in whole]
    assert server.text(PROMPT, **fields) == whole[0]["text"]


@pytest.mark.parametrize("body, param", [
    (dict(guided_regex="(a"), "guided_regex"),
    (dict(guided_regex="(?=a)b"), "guided_regex"),
    (dict(guided_json={"type": "nonsense"}), "guided_json"),
    (dict(guided_json="{"), "guided_json"),
    (dict(guided_grammar="root ::= missing"), "guided_grammar"),
    (dict(guided_grammar="x ::= \"a\""), "guided_grammar"),
    (dict(guided_grammar="x: \"a\""), "guided_grammar"),
    (dict(guided_grammar="start: missing"), "guided_grammar"),
    (dict(guided_choice=[""]), "guided_choice"),
    (dict(structured_outputs={"regex": "a**("}), "structured_outputs.regex"),
    (dict(response_format={"type": "json_schema", "json_schema": {"schema": {"$ref": "http://example.org/"}}}),
     "response_format.json_schema.schema"),
    (dict(guided_regex="x" * 70000), "guided_regex"),
    (dict(guided_choice=["a"], use_beam_search=True, temperature=0), "guided_choice"),
    (dict(guided_choice=["a"], guided_regex="a"), "guided_regex"),
], ids=lambda value: str(value)[:60])
def test_what_is_no_grammar_is_refused(server, body, param):
    answer = server.post({"prompt": PROMPT, **body})
    assert answer.status == 400 and answer.error["param"] == param, answer.text
    assert len(answer.text) < 1000
