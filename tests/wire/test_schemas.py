"""More than 300 JSON Schemas asked of the server itself: every answer that came to its end validates with the jsonschema package."""

import collections
import concurrent.futures
import json

import pytest

import schemas
from asking import faults

NUM_GENERATED = 240
MAX_TOKENS = 160


def documents():
    return schemas.WRITTEN + schemas.generated(NUM_GENERATED)


def ask(server, nth, schema):
    """(finish_reason, text) or ("refused", message): half of them as a completion, half as a chat."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    fields = {"max_tokens": MAX_TOKENS, "temperature": 1.5, "seed": nth, "response_format": form}
    if nth % 2:
        answer = server.post_to("/v1/chat/completions", {"messages": [{"role": "user", "content": "Answer in JSON:"}], **fields})
    else:
        answer = server.post({"prompt": "Answer in JSON:", **fields})
    if answer.status == 400:
        return "refused", answer.error["message"]
    assert answer.status == 200, (schema, answer.text)
    (choice,) = answer.json["choices"]
    return choice["finish_reason"], choice["message"]["content"] if nth % 2 else choice["text"]


@pytest.fixture(scope="module")
def answers(server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda pair: ask(server, *pair), enumerate(documents())))
    return list(zip(documents(), told, strict=True))


def test_every_answer_that_ends_validates(answers):
    found = [fault for schema, (finish, text) in answers if finish == "stop" for fault in faults(schema, [text])]
    assert not found, f"{len(found)} answers:\n" + "\n".join(found[:10])


def test_most_of_300_schemas_are_answered_to_the_end(answers):
    """The others were cut by max_tokens: strings and lists without a limit go on as long as the model likes."""
    ends = collections.Counter(finish for _, (finish, _) in answers)
    taken = ends["stop"] + ends["length"]
    print(dict(ends))
    assert taken >= 300 and ends["stop"] >= 200, ends
    assert set(ends) <= {"stop", "length", "refused"}


def test_no_schema_that_people_send_is_refused(answers):
    refused = [(schema, text) for schema, (finish, text) in answers[: len(schemas.WRITTEN)] if finish == "refused"]
    assert not refused, refused[:3]


def test_an_answer_that_was_cut_begins_like_one_that_was_not(server):
    """What max_tokens cuts is the beginning of the longer answer: the form does not know where it will be cut."""
    for nth, schema in enumerate(schemas.WRITTEN[:8]):
        form = {"type": "json_schema", "json_schema": {"schema": schema}}
        fields = {"temperature": 1.5, "seed": nth, "response_format": form}
        long = server.text("Answer in JSON:", max_tokens=80, **fields)
        assert long.startswith(server.text("Answer in JSON:", max_tokens=7, **fields))
