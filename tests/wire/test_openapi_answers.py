"""The OpenAPI document says what the server answers: no more, and no less."""

import collections
import copy
import json

import pytest

from conftest import PACED, TALKING_TEMPLATE, Server
from openapi_answers import Asker, Document

# Members that no answer here has: nothing is preempted.
UNSEEN = {("Preemption", "at_ms"), ("Preemption", "kind")}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A document and answers of every kind, from a server with all that is off by default."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "t.jinja").write_text(TALKING_TEMPLATE)
    flags = ("--chat-template", folder / "t.jinja", "--tool-call-parser", "hermes", "--reasoning-parser", "think")
    drafts = json.dumps({"method": "ngram", "num_speculative_tokens": 4, "adaptive": False})
    server = Server(*flags, "--tokenizer-info", "on", "--cache-dir", folder, "--speculative-config", drafts)
    paced = Server(*flags, *PACED)
    asker = Asker()
    asker.ask_everything(server, paced)
    yield Document(server.get("/openapi.json").json), asker.heard
    assert server.stop() == 0 and paced.stop() == 0


def test_every_answer_keeps_to_its_schema_and_has_no_member_beyond_it(everything):
    document, heard = everything
    assert len(heard) > 150
    for one in heard:
        schema = document.schema(one.method, one.path, one.status, one.media) if one.value is not None else None
        if schema is not None:
            errors = document.errors(schema, one.value)
            assert not errors, (one.path, one.body, one.value, errors[0])
        else:
            assert one.path == "/ping"


def test_every_body_that_was_answered_keeps_to_its_schema_and_has_no_field_beyond_it(everything):
    document, heard = everything
    bodies = [one for one in heard if one.status == 200 and one.body is not None]
    assert len(bodies) > 50
    for one in bodies:
        schema = document.whole["paths"][one.path][one.method]["requestBody"]["content"]["application/json"]["schema"]
        errors = document.errors(schema, one.body)
        assert not errors, (one.path, one.body, errors[0])


def test_every_operation_and_every_stream_of_the_document_was_answered(everything):
    document, heard = everything
    answered = {(one.method, one.path, one.media) for one in heard if one.status == 200}
    for path, operations in document.whole["paths"].items():
        for method, operation in operations.items():
            for media in operation["responses"]["200"].get("content", {}):
                assert (method, path, media) in answered
    refused = {one.status for one in heard if one.status != 200}
    assert refused >= {400, 404}


def test_no_member_of_an_answer_s_schema_is_one_that_no_answer_has(everything):
    document, heard = everything
    known, seen = set(), set()
    for one in heard:
        if one.value is not None:
            schema = document.schema(one.method, one.path, one.status, one.media)
            known |= document.known(schema)
            seen |= document.seen(schema, one.value)
    assert len(known) > 200
    assert known - seen == UNSEEN


def test_a_member_that_is_missing_or_unknown_at_any_depth_is_found(everything):
    """The check itself: an answer with one more member, or one less that has to be there, is refused."""
    document, heard = everything
    one = next(one for one in heard if one.path == "/v1/chat/completions" and one.media == "application/json" and one.status == 200)
    schema = document.schema(one.method, one.path, 200, one.media)
    places = [[], ["choices", 0], ["choices", 0, "message"], ["usage"], ["usage", "prompt_tokens_details"], ["timings"]]
    for place in places:
        for change in ("more", "less"):
            changed = copy.deepcopy(one.value)
            inner = changed
            for step in place:
                inner = inner[step]
            if change == "more":
                inner["mood"] = 1
            else:
                inner.pop(next(iter(inner)))
            assert document.errors(schema, changed), (place, change)
    assert not document.errors(schema, one.value)


def test_events_of_every_kind_were_seen(everything):
    _, heard = everything
    kinds = collections.Counter(one.value.get("type") for one in heard if one.media == "text/event-stream")
    assert {"response.created", "response.completed", "response.incomplete", "response.failed", "response.function_call_arguments.done",
            "response.reasoning_text.delta", "message_start", "message_stop", "error"} <= kinds.keys()  # fmt: skip
