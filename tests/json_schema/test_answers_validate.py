"""Random walks through the grammars of more than 300 schemas: whatever is written validates with the jsonschema package."""

import json

import jsonschema
import pytest

import schemas
from asking import ask, faults

WALKS = 6


def answers(documents):
    return ask([{"schema": json.dumps(schema), "walks": WALKS, "seed": seed} for seed, schema in enumerate(documents)])


@pytest.fixture(scope="module")
def written():
    return list(zip(schemas.WRITTEN, answers(schemas.WRITTEN), strict=True))


@pytest.fixture(scope="module")
def generated():
    documents = schemas.generated(400)
    for schema in documents:
        jsonschema.Draft202012Validator.check_schema(schema)
    return list(zip(documents, answers(documents), strict=True))


def check(pairs):
    found = [fault for schema, answer in pairs for fault in faults(schema, answer.get("texts", []))]
    assert not found, f"{len(found)} texts:\n" + "\n".join(found[:10])


def test_schemas_that_people_send_are_taken(written):
    refused = [f"{json.dumps(schema)[:300]}: {answer['refused']}" for schema, answer in written if "refused" in answer]
    assert not refused, "\n".join(refused)


def test_every_answer_to_a_written_schema_validates(written):
    check(written)


def test_every_answer_to_a_generated_schema_validates(generated):
    check(generated)


def test_there_are_300_schemas_and_their_random_texts_end(written, generated):
    taken = [answer for _, answer in written + generated if "refused" not in answer]
    assert len(taken) >= 300
    finished = sum(len(answer["texts"]) for answer in taken)
    assert finished >= 0.98 * WALKS * len(taken)


def test_an_object_of_a_thousand_properties_compiles():
    schema = schemas.record(None, **{f"property_{i}": schemas.STRING for i in range(1000)})
    (answer,) = ask([{"schema": json.dumps(schema), "walks": 1, "seed": 1}])
    assert "refused" not in answer, answer
    check([(schema, answer)])


@pytest.mark.parametrize("request_", [{"object": True}, {"choice": ["yes", "no", "it depends"]}], ids=["json_object", "choice"])
def test_the_small_front_ends_write_what_they_say(request_):
    (answer,) = ask([{**request_, "walks": 30, "seed": 1}])
    for text in answer["texts"]:
        assert text in request_["choice"] if "choice" in request_ else isinstance(json.loads(text), dict)


def test_valid_texts_are_accepted_and_others_are_not():
    schema = json.dumps(schemas.PERSON)
    good = ['{"name": "Ann", "age": 7}', '{"name":"\\u0041\\ud83d\\ude00","age":150,"email":"a@b.de","nick":null}']
    bad = ['{"age": 7, "name": "Ann"}', '{"name": "", "age": 7}', '{"name": "Ann", "age": 151}', '{"name": "Ann"}', "[]", '{"name": "Ann", "age": 7', ""]
    (answer,) = ask([{"schema": schema, "texts": good + bad}])
    assert answer["accepted"] == [True] * len(good) + [False] * len(bad)
