"""Every key of every answer, looked up in the types of the official clients: what is missing, null, of another kind, or unknown to them."""

import importlib
import itertools
import json
import types
import typing
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

PARAMETERS = {"type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}}, "required": ["at"], "additionalProperties": False}
TALK = [{"role": "user", "content": "Look"}]
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
ENDED = {"structured_outputs": {"regex": "[a-z]{3,6}"}}
NOTHING = {"structured_outputs": {"regex": "()"}}
MARK = "</think>"
KEY = "a-key-of-my-own-00"
NUMBERS = itertools.count()  # no two requests have one name

# ---- what the types do not say

# Optional for the client, but no answer of the API's goes without: they are null where there is nothing to say.
THERE = {
    "ChatCompletionMessage": {"content", "refusal"},
    "ChatCompletion.Choice": {"logprobs"},
    "ChatCompletion.ChoiceLogprobs": {"content", "refusal"},
    "ChatCompletionChunk.Choice": {"finish_reason"},
    "ChatCompletionChunk.ChoiceLogprobs": {"content", "refusal"},
    "ChatCompletionTokenLogprob": {"bytes"},
    "ChatCompletionTokenLogprob.TopLogprob": {"bytes"},
    "CompletionChoice": {"logprobs"},
    "Response": {"error", "incomplete_details", "instructions", "metadata", "temperature", "top_p", "status", "usage"},
    "FunctionTool": {"parameters", "strict"},
    "ErrorObject": {"code", "param"},
    "Message": {"stop_reason", "stop_sequence"},
    "RawMessageDeltaEvent.Delta": {"stop_reason", "stop_sequence"},
    "Usage": {"cache_creation_input_tokens", "cache_read_input_tokens"},
    "MessageDeltaUsage": {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"},
}

# Null in answers of the API's as well, and why. Whatever else is optional is left out: many a client takes a list or nothing, and no null.
NULL = {
    "ChatCompletionMessage": {"content": "of a call", "refusal": "no refusal"},
    "ChatCompletion.Choice": {"logprobs": "not asked for"},
    "ChatCompletion.ChoiceLogprobs": {"refusal": "no refusal"},
    "ChatCompletionChunk": {"usage": "before the last"},
    "ChatCompletionChunk.Choice": {"finish_reason": "before the last", "logprobs": "not asked for"},
    "ChatCompletionChunk.ChoiceDelta": {"refusal": "in the first"},
    "ChatCompletionChunk.ChoiceLogprobs": {"refusal": "no refusal"},
    "Completion": {"usage": "before the last"},
    "CompletionChoice": {"logprobs": "not asked for", "finish_reason": "before the last"},
    "CompletionChoice.Logprobs": {"token_logprobs[]": "of the first token", "top_logprobs[]": "of the first token"},
    "Response": {
        "error": "no error", "incomplete_details": "whole", "usage": "before the end", "instructions": "asked", "max_output_tokens": "asked",
        "user": "asked", "safety_identifier": "asked", "prompt_cache_key": "asked", "previous_response_id": "asked",
    },
    "Reasoning": {"effort": "asked", "summary": "asked"},
    "Message": {"stop_reason": "not over", "stop_sequence": "none"},
    "RawMessageDeltaEvent.Delta": {"stop_reason": "cancelled", "stop_sequence": "none"},
    "ErrorObject": {"param": "of no field"},
}  # fmt: skip

# Keys of ours that the client does not know, and where they are from.
EXTENSIONS = {
    "ChatCompletion": {"seed": "ours", "timings": "llama.cpp"},
    "ChatCompletionChunk": {"seed": "ours", "timings": "llama.cpp"},
    "ChatCompletion.Choice": {"stop_reason": "vLLM", "token_ids": "vLLM", "prompt_token_ids": "vLLM"},
    "ChatCompletionChunk.Choice": {"stop_reason": "vLLM", "token_ids": "vLLM", "prompt_token_ids": "vLLM"},
    "ChatCompletionMessage": {"reasoning": "vLLM", "reasoning_content": "DeepSeek"},
    "ChatCompletionChunk.ChoiceDelta": {"reasoning": "vLLM", "reasoning_content": "DeepSeek"},
    "Completion": {"seed": "ours", "timings": "llama.cpp"},
    "CompletionChoice": {"stop_reason": "vLLM", "token_ids": "vLLM", "prompt_token_ids": "vLLM", "prompt_logprobs": "vLLM"},
    "Response": {"seed": "ours", "timings": "llama.cpp", "system_fingerprint": "chat's", "store": "OpenAI's answers have it"},
    "ResponseFunctionCallArgumentsDoneEvent": {"name": "older clients require it"},
    "ResponseTextDeltaEvent.LogprobTopLogprob": {"bytes": "OpenAI's answers have it"},
    "ResponseTextDoneEvent.LogprobTopLogprob": {"bytes": "OpenAI's answers have it"},
    "ResponseTextDeltaEvent.Logprob": {"bytes": "OpenAI's answers have it"},
    "ResponseTextDoneEvent.Logprob": {"bytes": "OpenAI's answers have it"},
    "Message": {"seed": "ours", "timings": "llama.cpp", "system_fingerprint": "chat's"},
    "RawMessageDeltaEvent": {"timings": "llama.cpp"},
    "Model": {"root": "vLLM", "parent": "vLLM", "max_model_len": "vLLM"},
    "CreateEmbeddingResponse": {"id": "vLLM", "created": "vLLM", "seed": "ours", "timings": "llama.cpp", "system_fingerprint": "chat's"},
    "CreateEmbeddingResponse.Usage": {"completion_tokens": "vLLM", "prompt_tokens_details": "vLLM"},
    "InvalidRequestErrorObject": {"param": "OpenAI", "code": "vLLM"},
    "NotFoundErrorObject": {"param": "OpenAI", "code": "vLLM"},
}

# Values of ours that the client's types have not, and why.
VALUES = {
    "ChatCompletion.Choice": {"finish_reason": {"'abort'": "cancelled by name"}},
    "ChatCompletionChunk.Choice": {"finish_reason": {"'abort'": "cancelled by name"}},
    "CompletionChoice": {"finish_reason": {"'abort'": "cancelled by name"}},
    "ErrorObject": {"code": {"a number": "vLLM's: the status"}},
    "InvalidRequestErrorObject": {"type": {"'request_too_large'": "in Anthropic's documents, and in no type"}},
}


class Fact(NamedTuple):
    """Of the `key` of a class: it is `missing`, `null`, `unknown`, or has a value that its type has not; `looked at` is a class that is told."""

    owner: str
    key: str
    what: str
    where: str

    def __str__(self):
        return f"{self.where}: {self.owner}.{self.key} is {self.what}"


def is_fault(fact):
    return not is_settled(fact) and fact.what != "looked at"


def is_settled(fact):
    tables = {"null": NULL, "unknown": EXTENSIONS}
    if fact.what in tables:
        return fact.key in tables[fact.what].get(fact.owner, ())
    return fact.what in VALUES.get(fact.owner, {}).get(fact.key, ())


def settled():
    """All that the tables name."""
    yield from ((owner, key, "null") for owner, keys in NULL.items() for key in keys)
    yield from ((owner, key, "unknown") for owner, keys in EXTENSIONS.items() for key in keys)
    yield from ((owner, key, value) for owner, keys in VALUES.items() for key, values in keys.items() for value in values)


# ---- an answer beside its type


def name_of(model):
    """Classes of one name are told apart by their modules: ChatCompletion.Choice, ChatCompletionChunk.Choice."""
    module = "".join(part.title() for part in model.__module__.rpartition(".")[2].split("_"))
    return model.__name__ if module.lower() == model.__name__.lower() else f"{module}.{model.__name__}"


def bare(kind):
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return kind


def is_model(kind):
    return isinstance(kind, type) and hasattr(kind, "model_fields")


def facts_of(value, kind, at, where):
    """`at` is (class, key) of where `value` stands."""
    kind = bare(kind)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if is_model(kind):
        return facts_of_model(value, kind, at, where)
    if origin in (typing.Union, types.UnionType):
        return facts_of_union(value, [bare(one) for one in inner], at, where)
    if origin is typing.Literal:
        known = any(value == one and type(value) is type(one) for one in inner)
        return [] if known else [wrong(value, at, where)]
    if origin is list and isinstance(value, list):
        return facts_of_all(value, inner[0], (at[0], at[1] + "[]"), where + "[]")
    if origin is dict and isinstance(value, dict):
        return facts_of_all(value.values(), inner[1], at, where + "{}")
    return [] if fits(value, kind) else [wrong(value, at, where)]


def facts_of_all(values, kind, at, where):
    return [fact for value in values for fact in facts_of(value, kind, at, where)]


def fits(value, kind):
    if kind in (object, typing.Any):
        return True
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind) if kind in (str, int, float, bool) else False


def wrong(value, at, where):
    words = {int: "a number", float: "a number", list: "a list", dict: "an object"}
    return Fact(*at, "null" if value is None else words.get(type(value), repr(value)), where)


def facts_of_model(value, model, at, where):
    if not isinstance(value, dict):
        return [wrong(value, at, where)]
    name, fields = name_of(model), {field.alias or key: field for key, field in model.model_fields.items()}
    facts = [Fact(name, "", "looked at", where)]
    facts += [Fact(name, key, "unknown", where) for key in value if key not in fields]
    for key, field in fields.items():
        if key in value:
            facts += facts_of_key(value[key], field, (name, key), f"{where}.{key}")
        elif field.is_required() or key in THERE.get(name, ()):
            facts.append(Fact(name, key, "missing", where))
    return facts


def facts_of_key(value, field, at, where):
    if value is None and not field.is_required():
        return [Fact(*at, "null", where)]
    return facts_of(value, field.annotation, at, where)


def facts_of_union(value, kinds, at, where):
    if value is None and type(None) in kinds:
        return []
    kinds = [kind for kind in kinds if kind is not type(None)]
    tagged = [kind for kind in kinds if isinstance(value, dict) and tag_fits(value.get("type"), kind)]
    lists = [kind for kind in kinds if isinstance(value, list) and typing.get_origin(kind) is list]
    tries = [facts_of(value, kind, at, where) for kind in tagged or lists or kinds]
    return min(tries, key=lambda facts: sum(map(is_fault, facts)))


def tag_fits(tag, kind):
    """Variants of unions tell themselves apart by their `type`."""
    field = kind.model_fields.get("type") if is_model(kind) else None
    return field is not None and tag in typing.get_args(bare(field.annotation))


# ---- the surfaces


class Surface(NamedTuple):
    path: str
    package: str
    whole: str
    event: str
    begin: dict
    cases: dict  # asked whole and streamed
    streams: dict  # streamed alone
    failing: str  # what is told of a stream that fails


def kinds_of(package, name):
    """Importing them takes seconds."""
    return getattr(importlib.import_module(package), name)


CHAT_TOOL = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
TOOL = {"type": "function", "name": "look", "description": "Look at it", "parameters": PARAMETERS, "strict": True}
CLAUDES_TOOL = {"name": "look", "input_schema": PARAMETERS}
FORCED = {"tool_choice": "required"}
CLAUDES_FORCED = {"tools": [CLAUDES_TOOL], "tool_choice": {"type": "any"}, "max_tokens": 250}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
USAGE = {"stream_options": {"include_usage": True}}

SURFACES = {
    "chat": Surface("/v1/chat/completions", "openai.types.chat", "ChatCompletion", "ChatCompletionChunk", {"messages": TALK, "max_tokens": 12}, {
        "cut": {},
        "ended": ENDED,
        "nothing": NOTHING,
        "stopped": {"stop": ["e", "a", " "]},
        "stopped by a token": {"stop_token_ids": list(range(1, 129)), "max_tokens": 200},
        "two": {"n": 2, "temperature": 1},
        "calls": {"tools": [CHAT_TOOL], **FORCED, "max_tokens": 250},
        "a call that was cut": {"tools": [CHAT_TOOL], **FORCED, "max_tokens": 40},
        "reasoning": THINKING,
        "reasoning and content": MARK,
        "log probabilities": {"logprobs": True, "top_logprobs": 2},
        "token ids": {"return_token_ids": True},
        "a form": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
    }, {"usage": USAGE, "usage everywhere": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}}, "error"),
    "completions": Surface("/v1/completions", "openai.types", "Completion", "Completion", {"prompt": "Once upon", "max_tokens": 12}, {
        "cut": {},
        "ended": ENDED,
        "nothing": NOTHING,
        "stopped": {"stop": ["e", "a", " "]},
        "two of two": {"prompt": ["Once", "The dog"], "n": 2},
        "log probabilities": {"logprobs": 2},
        "log probabilities of tokens alone": {"logprobs": 0},
        "echoed": {"echo": True, "logprobs": 1},
        "scored": {"echo": True, "logprobs": 1, "max_tokens": 0},
        "log probabilities of the prompt": {"prompt_logprobs": 1},
        "token ids": {"return_token_ids": True},
    }, {"usage": USAGE}, "error"),
    "responses": Surface("/v1/responses", "openai.types.responses", "Response", "ResponseStreamEvent", {"input": "Look", "max_output_tokens": 12}, {
        "cut": {},
        "without a limit": {"max_output_tokens": None, **ENDED},
        "nothing": NOTHING,
        "calls": {"tools": [TOOL], **FORCED, "max_output_tokens": 250},
        "a call that was cut": {"tools": [TOOL], **FORCED, "max_output_tokens": 40},
        "a tool that says little": {"tools": [{"type": "function", "name": "look"}], "tool_choice": "none"},
        "one tool": {"tools": [TOOL], "tool_choice": {"type": "function", "name": "look"}, "max_output_tokens": 250},
        "reasoning": THINKING,
        "reasoning and content": MARK,
        "log probabilities": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
        "a form": {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        "any object": {"text": {"format": {"type": "json_object"}}},
        "told again": {"instructions": "Be kind.", "metadata": {"a": "b"}, "user": "me", "safety_identifier": "me", "prompt_cache_key": "k",
                       "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto", "temperature": 0.5, "parallel_tool_calls": False},
    }, {}, "response.failed"),
    "messages": Surface("/v1/messages", "anthropic.types", "Message", "RawMessageStreamEvent", {"messages": TALK, "max_tokens": 12}, {
        "cut": {},
        "ended": ENDED,
        "nothing": NOTHING,
        "stopped": {"stop_sequences": ["e", "a", " "]},
        "calls": CLAUDES_FORCED,
        "a call that was cut": {**CLAUDES_FORCED, "max_tokens": 40},
        "thinking": THINKING,
        "thinking and text": MARK,
        "a form": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    }, {}, "error"),
}  # fmt: skip


def cases():
    for surface, about in SURFACES.items():
        yield from ((surface, case, stream) for case in about.cases for stream in (False, True))
        yield from ((surface, case, True) for case in about.streams)


@pytest.fixture(scope="session")
def end_of_reasoning(talker):
    """Fields with which reasoning ends and something follows: nothing may be said but the pieces of the end mark, until they make one."""
    pieces = talker.post_to("/tokenize", {"prompt": MARK}).json["tokens"]
    fields = {**THINKING, "allowed_token_ids": pieces, "frequency_penalty": 2, "temperature": 2, "top_p": 1}
    for seed in range(1000):
        answer = talker.post_to("/v1/chat/completions", {"messages": TALK, **fields, "max_tokens": 64, "seed": seed}).json
        message = answer["choices"][0]["message"]
        if message["content"] and "reasoning" in message:
            return {**fields, "seed": seed}
    raise AssertionError("no seed has reasoning and content")


def body_of(surface, case, stream, end_of_reasoning):
    about = SURFACES[surface]
    fields = {**about.cases, **about.streams}[case]
    if fields == MARK:
        fields = {**end_of_reasoning, "max_output_tokens" if surface == "responses" else "max_tokens": 64}
    return {"seed": 5, **about.begin, **fields, "stream": stream}


def events_of(text):
    """The data of each event; what has a name has the name of its type."""
    names, events = [], []
    for line in text.splitlines():
        if line.startswith("event: "):
            names.append(line.removeprefix("event: "))
        elif line.startswith("data: ") and line != "data: [DONE]":
            events.append(json.loads(line.removeprefix("data: ")))
    assert names in ([], [event.get("type") for event in events])
    return events


def facts_of_answer(surface, text, stream):
    about = SURFACES[surface]
    if not stream:
        return facts_of(json.loads(text), kinds_of(about.package, about.whole), ("", surface), about.whole)
    return [fact for event in events_of(text) for fact in facts_of_event(surface, event)]


def facts_of_event(surface, event):
    about = SURFACES[surface]
    if "error" in event:
        return facts_of_error(surface, event)
    return facts_of(event, kinds_of(about.package, about.event), ("", surface), event.get("type") or about.event)


def facts_of_error(surface, body):
    if surface == "messages":
        return facts_of(body, kinds_of("anthropic.types", "ErrorResponse"), ("", "error"), "error")
    return facts_of(body["error"], kinds_of("openai.types.shared", "ErrorObject"), ("", "error"), "error")


def facts_of_case(server, surface, case, stream, end_of_reasoning):
    answer = server.post_to(SURFACES[surface].path, body_of(surface, case, stream, end_of_reasoning))
    assert answer.status == 200, answer.text
    return facts_of_answer(surface, answer.text, stream)


def faults_in(facts):
    """Each once, with the first place where it is found."""
    found = {}
    for fact in filter(is_fault, facts):
        found.setdefault(fact[:3], str(fact))
    return list(found.values())


@pytest.mark.parametrize("surface,case,stream", list(cases()), ids=lambda value: {True: "streamed", False: "whole"}.get(value, value))
def test_an_answer_is_as_the_types_of_the_client_say(talker, end_of_reasoning, surface, case, stream):
    assert faults_in(facts_of_case(talker, surface, case, stream, end_of_reasoning)) == []


# ---- answers that do not come to their end

FAILING = {"allowed_token_ids": [65], "structured_outputs": {"regex": "a{3}0"}}  # the one token is "a"


def facts_of_failing(server, surface):
    """A stream whose first tokens are told before it fails."""
    about = SURFACES[surface]
    answer = server.post_to(about.path, {**about.begin, **FAILING, "stream": True})
    assert answer.status == 200 and f'"{about.failing}"' in answer.text, answer.text
    return facts_of_answer(surface, answer.text, stream=True)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_stream_that_fails_is_as_the_types_say(paced, surface):
    assert paced.post_to("/tokenize", {"prompt": "a"}).json["tokens"] == FAILING["allowed_token_ids"]
    assert faults_in(facts_of_failing(paced, surface)) == []


def facts_of_cancelled(server, surface, stream):
    about, name = SURFACES[surface], f"{surface}-{next(NUMBERS)}"
    length = "max_output_tokens" if surface == "responses" else "max_tokens"
    headers = {"Content-Type": "application/json", "X-Request-Id": name, "X-Request-Key": KEY}
    body = json.dumps({**about.begin, length: 400, "ignore_eos": True, "stream": stream})
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.request, "POST", about.path, body, headers)
        server.wait_until(lambda _: has_begun(server, name), "the first token of the request")
        assert server.request("DELETE", f"/v1/requests/{name}", headers={"X-Request-Key": KEY}).status == 200
        answer = asked.result()
    assert answer.status == 200, answer.text
    return facts_of_answer(surface, answer.text, stream)


def has_begun(server, name):
    told = server.request("GET", f"/v1/requests/{name}/explain", headers={"X-Request-Key": KEY})
    return told.status == 200 and told.json["sequences"][0]["generated_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("surface", SURFACES)
def test_an_answer_that_was_cancelled_is_as_the_types_say(paced, surface, stream):
    assert faults_in(facts_of_cancelled(paced, surface, stream)) == []


# ---- refusals

JSON = {"Content-Type": "application/json"}
REFUSED = {  # method, body or fields of it, headers, status
    "of a field": ("POST", {"temperature": 9}, JSON, 400),
    "of a model": ("POST", {"model": "other"}, JSON, 404),
    "of what is no JSON": ("POST", "{", JSON, 400),
    "of another type": ("POST", "{}", {"Content-Type": "text/plain"}, 415),
    "of another method": ("GET", None, {}, 405),
    "of a body that is too long": ("POST", " " * (9 << 20), JSON, 413),
}


def facts_of_refusal(server, surface, case):
    about, (method, body, headers, status) = SURFACES[surface], REFUSED[case]
    text = json.dumps({**about.begin, **body}) if isinstance(body, dict) else body
    answer = server.request(method, about.path, text, headers)
    assert answer.status == status, answer.text
    return facts_of_error(surface, answer.json)


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_refusal_is_as_the_types_say(server, surface, case):
    assert faults_in(facts_of_refusal(server, surface, case)) == []


@pytest.mark.parametrize("path", ["/v1/messages/batches", "/v1/messages/count_tokens"])
def test_a_refusal_below_the_path_of_messages_is_as_the_types_say(server, path):
    answer = server.request("POST", path, "{}", JSON)
    assert answer.status in (400, 404) and faults_in(facts_of_error("messages", answer.json)) == []


# ---- what is no answer of a model


def facts_of_lists(server):
    """Models, one of them, vectors, a count."""
    page, model = kinds_of("openai.pagination", "SyncPage"), kinds_of("openai.types", "Model")
    vectors = server.post_to("/v1/embeddings", {"input": ["Once", "The end"], "encoding_format": "float"})
    count = server.post_to("/v1/messages/count_tokens", {"messages": TALK})
    return [
        *facts_of(server.get("/v1/models").json, page[model], ("", "models"), "models"),
        *facts_of(server.get("/v1/models/stories").json, model, ("", "model"), "model"),
        *facts_of(vectors.json, kinds_of("openai.types", "CreateEmbeddingResponse"), ("", "embeddings"), "embeddings"),
        *facts_of(count.json, kinds_of("anthropic.types", "MessageTokensCount"), ("", "count"), "count"),
    ]


def test_models_vectors_and_counts_are_as_the_types_say(server):
    assert faults_in(facts_of_lists(server)) == []


# ---- of this test

TOLD = {
    "ChatCompletionMessageFunctionToolCall", "ChatCompletionTokenLogprob.TopLogprob", "ChatCompletionChunk.ChoiceDeltaToolCall", "CompletionUsage",
    "CompletionUsage.PromptTokensDetails", "CompletionChoice.Logprobs", "ResponseOutputMessage", "ResponseOutputText.LogprobTopLogprob",
    "ResponseReasoningItem.Content", "ResponseFunctionToolCall", "ResponseUsage.OutputTokensDetails", "ResponseError", "Response.IncompleteDetails",
    "ResponseFormatTextJSONSchemaConfig", "ResponseFormatJSONObject", "ResponseFormatText", "FunctionTool", "ToolChoiceFunction",
    "ResponseCreatedEvent", "ResponseInProgressEvent", "ResponseOutputItemAddedEvent", "ResponseContentPartAddedEvent.PartReasoningText",
    "ResponseTextDeltaEvent", "ResponseTextDoneEvent", "ResponseContentPartDoneEvent", "ResponseOutputItemDoneEvent",
    "ResponseReasoningTextDeltaEvent", "ResponseReasoningTextDoneEvent", "ResponseFunctionCallArgumentsDeltaEvent",
    "ResponseFunctionCallArgumentsDoneEvent", "ResponseCompletedEvent", "ResponseIncompleteEvent", "ResponseFailedEvent", "TextBlock",
    "ThinkingBlock", "ToolUseBlock", "TextDelta", "ThinkingDelta", "InputJSONDelta", "RawContentBlockStartEvent", "RawContentBlockDeltaEvent",
    "RawContentBlockStopEvent", "RawMessageStartEvent", "RawMessageDeltaEvent", "RawMessageStopEvent", "ErrorResponse", "Model", "Embedding",
}  # fmt: skip


def test_all_that_the_tables_name_is_returned_and_so_is_every_kind_of_thing(talker, paced, server, end_of_reasoning):
    facts = [fact for case in cases() for fact in facts_of_case(talker, *case, end_of_reasoning)] + facts_of_lists(server)
    for surface, stream in itertools.product(SURFACES, (False, True)):
        facts += facts_of_cancelled(paced, surface, stream)
    for surface, case in itertools.product(SURFACES, REFUSED):
        facts += facts_of_refusal(server, surface, case)
    facts += [fact for surface in SURFACES for fact in facts_of_failing(paced, surface)]
    told = {fact[:3] for fact in facts}
    assert set(settled()) - told == set()
    assert TOLD - {owner for owner, _, what in told if what == "looked at"} == set()


def test_what_is_wrong_is_found():
    kind = kinds_of("openai.types.chat", "ChatCompletion")
    message = {"role": "user", "content": "a", "refusal": None, "tool_calls": None, "mood": 1}
    choice = {"index": "0", "finish_reason": "stop", "message": message}
    facts = facts_of({"id": None, "created": 1.5, "model": "m", "object": "list", "choices": [choice]}, kind, ("", "chat"), "chat")
    assert sorted(f"{fact.owner}.{fact.key} {fact.what}" for fact in facts if is_fault(fact)) == [
        "ChatCompletion.Choice.index '0'", "ChatCompletion.Choice.logprobs missing", "ChatCompletion.created a number",
        "ChatCompletion.id null", "ChatCompletion.object 'list'", "ChatCompletionMessage.mood unknown",
        "ChatCompletionMessage.role 'user'", "ChatCompletionMessage.tool_calls null",
    ]  # fmt: skip


def test_a_variant_is_chosen_by_its_type():
    kind = kinds_of("anthropic.types", "RawMessageStreamEvent")

    def faults(event):
        return faults_in(facts_of(event, kind, ("", "event"), "event"))

    block = {"type": "text", "text": "", "citations": None}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    assert faults(start) == ["event.content_block.citations: TextBlock.citations is null"]
    assert faults({"type": "content_block_stop"}) == ["event: RawContentBlockStopEvent.index is missing"]
    assert len(faults({"type": "other"})) >= 1
