"""Every field of the two generating endpoints, as /openapi.json lists them, with every value that somebody might try."""

import concurrent.futures
import http.client
import json
import threading

import jsonschema
import pytest

from bystander import Bystander
from conftest import Answer, PATIENCE_S
from test_chat import TOOL

BODIES = {
    "/v1/completions": {"prompt": "Once", "max_tokens": 2},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 2},
}
DEEP = "[" * 100 + "]" * 100
# JSON texts, so that there may be some that no Python value becomes.
VALUES = {
    "null": "null", "true": "true", "false": "false", "zero": "0", "minus zero": "-0.0", "one": "1", "minus one": "-1", "two": "2",
    "half": "0.5", "float of a whole": "2.0", "tiny": "1e-320", "largest float": "1.7976931348623157e308", "int32": "2147483647",
    "past int32": "2147483648", "least int32": "-2147483648", "below int32": "-2147483649", "past uint32": "4294967296",
    "int64": "9223372036854775807", "past int64": "9223372036854775808", "least int64": "-9223372036854775808",
    "uint64": "18446744073709551615", "text": '"x"', "empty text": '""', "number as text": '"1"', "NUL": '"\\u0000"',
    "format marks": '"%s%n{0}{{x}}${x}"', "line breaks": '"a\\r\\nX-Evil: b"', "special token": '"<|endoftext|>"', "emoji": json.dumps("🙂" * 100),
    "a million letters": '"' + "x" * 1_000_000 + '"', "empty list": "[]", "list of null": "[null]", "list of lists": "[[]]",
    "list of an object": "[{}]", "mixed list": '["a", 1, null]', "list of texts": '["a", "b"]', "list of ids": "[1, 2]",
    "list of negatives": "[-1]", "list of halves": "[0.5]", "100000 ones": "[" + "1," * 99_999 + "1]",
    "100000 texts": "[" + '"x",' * 99_999 + '"x"]', "empty object": "{}", "unknown inside": '{"x": 1}', "null inside": '{"": null}',
    "object of objects": '{"type": {"type": {}}}', "type of nothing": '{"type": "x"}', "same key twice": '{"1": 1, "1": 2}',
    "100000 keys": "{" + ",".join(f'"{i}": 1' for i in range(100_000)) + "}", "deep": DEEP, "deep object": '{"a":' * 100 + "1" + "}" * 100,
}  # fmt: skip
UNREADABLE = {  # no JSON at all: nobody can say which field it was
    "NaN": b"NaN", "Infinity": b"Infinity", "minus Infinity": b"-Infinity", "1e400": b"1e400", "2**64": b"18446744073709551616",
    "400 digits": b"1" * 400, "leading zero": b"01", "hexadecimal": b"0x10", "half a surrogate": b'"\\ud800"', "bad UTF-8": b'"\xff\xfe"',
    "overlong UTF-8": b'"\xc0\x80"', "bad escape": b'"\\x41"', "line break": b'"a\nb"', "single quotes": b"'x'", "comma": b"[1,]",
    "too deep": b"[" * 5000 + b"]" * 5000, "cut": b'{"a": "b',
}  # fmt: skip


@pytest.fixture(scope="module")
def schemas(server):
    document = server.get("/openapi.json").json

    def fields(path):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        properties = document["components"]["schemas"][body]["properties"]
        return {name: {**field, "components": document["components"]} for name, field in properties.items()}

    return {path: fields(path) for path in BODIES}


class Connection:
    """One for each thread, kept open as long as the server keeps it."""

    def __init__(self, server):
        self.server = server
        self.own = threading.local()

    def post(self, path, text):
        connection = getattr(self.own, "connection", None)
        if connection is None:
            connection = self.own.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        connection.request("POST", path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = Answer(response)
        if response.will_close:
            self.own.connection = None
        return answer


def for_each(items, ask):
    """ask(number, item) of each, several at a time: most of an answer's time is waiting for a step of the engine."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, *zip(*enumerate(items))))


def body_with(path, name, value, stream):
    """JSON text of a plain body with one field of the value's text."""
    fields = {key: json.dumps(field) for key, field in BODIES[path].items() if (key, name) != ("max_tokens", "max_completion_tokens")}
    if stream and name not in ("stream", "stream_options", "use_beam_search", "best_of"):
        fields["stream"] = "true"
    fields[name] = value
    return "{" + ", ".join(f"{json.dumps(key)}: {field}" for key, field in fields.items()) + "}"


def check_refusal(answer, name, what):
    error = answer.error
    assert answer.status == (404 if (name, error["param"]) == ("model", "model") and error["code"] == 404 else 400), (what, answer.text[:500])
    root = (error["param"] or "").split(".")[0].split("[")[0]
    assert root == name and name in error["message"], (what, answer.text[:500])
    assert len(answer.text) < 1500, what


@pytest.mark.parametrize("path", BODIES)
def test_every_field_takes_or_refuses_every_value_by_name(server, schemas, path):
    connection = Connection(server)

    def ask(place, field):
        (name, schema), counts = field, {"accepted": 0, "refused": 0}
        for nth, (value_name, value) in enumerate(VALUES.items()):
            what = f"{name}: {value_name}"
            answer = connection.post(path, body_with(path, name, value, stream=(place + nth) % 2 == 0))
            if answer.status == 200:
                counts["accepted"] += 1
                assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(value)), f"{what} is not in the schema, and was taken"
                assert '"error"' not in answer.text[:200] or ran_out(name, answer), (what, answer.text[:500])
            elif not cannot_be_kept(name, answer) and not ran_out(name, answer):
                counts["refused"] += 1
                check_refusal(answer, name, what)
        return counts

    with Bystander(server):
        found = for_each(schemas[path].items(), ask)
    accepted, refused = (sum(counts[kind] for counts in found) for kind in ("accepted", "refused"))
    assert accepted > 3 * len(schemas[path]) and refused > 20 * len(schemas[path])


def cannot_be_kept(name, answer):
    """A deadline that is within its bounds may be one that nobody can keep."""
    return name == "deadline_ms" and answer.status == 429 and answer.error["code"] == "deadline_cannot_be_met"


def ran_out(name, answer):
    """One of two milliseconds passes on a busy machine, before the first token (504) or behind it (an event in the stream)."""
    return name == "deadline_ms" and answer.status in (200, 504) and '"timeout_error"' in answer.text


@pytest.mark.parametrize("path", BODIES)
def test_what_is_no_json_is_refused_whole(server, schemas, path):
    connection = Connection(server)
    with Bystander(server):
        for name in schemas[path]:
            for what, value in UNREADABLE.items():
                body = body_with(path, name, "?", stream=False).encode().replace(b"?", value, 1)
                answer = connection.post(path, body)
                assert answer.status == 400 and answer.error["param"] is None, (name, what, answer.text[:500])
                assert "body" in answer.error["message"], answer.text


@pytest.mark.parametrize("path", BODIES)
def test_no_field_may_stand_twice(server, schemas, path):
    connection = Connection(server)
    for name in schemas[path]:
        for first, second in (("null", "null"), ("1", "2"), ('"a"', '"a"')):
            once = body_with(path, name, first, stream=False)
            answer = connection.post(path, once[:-1] + f", {json.dumps(name)}: {second}}}")
            assert answer.status in (400, 404) and answer.error["param"].startswith(name), (name, answer.text[:500])
    answer = connection.post(path, body_with(path, "seed", "1", stream=False)[:-1] + ', "seed": 1}')
    assert answer.status == 400 and answer.error["message"] == "seed is given twice"


@pytest.mark.parametrize("path", BODIES)
def test_bounds_are_where_the_document_has_them(server, schemas, path):
    """At a bound and inside it nothing is wrong with the field by itself; one beyond it is refused by name."""
    connection = Connection(server)
    alone = {"max_tokens", "max_completion_tokens", "truncate_prompt_tokens", "best_of", "n", "length_penalty", "top_logprobs", "prompt_logprobs", "min_tokens"}
    for name, schema in schemas[path].items():
        kinds = set(schema.get("type", ())) & {"integer", "number"}
        step = 1 if "integer" in kinds else 1e-3
        for bound, sign in (("minimum", -1), ("exclusiveMinimum", -1), ("maximum", 1)):
            if not kinds or bound not in schema:
                continue
            limit = schema[bound]
            inside, at, beyond = (json.dumps(limit + sign * k * step if step == 1 else round(limit + sign * k * step, 6)) for k in (-1, 0, 1))
            for value in (inside, at):
                answer = connection.post(path, body_with(path, name, value, stream=False))
                fits = answer.status == 200 or (name in alone and answer.error["param"] == name)
                fits = fits or cannot_be_kept(name, answer) or ran_out(name, answer)
                if value == at and bound == "exclusiveMinimum":
                    fits = answer.status == 400 and answer.error["param"] == name
                assert fits, (name, value, answer.text[:300])
            answer = connection.post(path, body_with(path, name, beyond, stream=False))
            assert answer.status == 400, (name, beyond)
            if abs(float(beyond)) < 2**63:  # else it is no number that the JSON parser takes
                check_refusal(answer, name, f"{name}: {beyond}")


# ---- inside of a field: every place of a rich body gets every value


RICH = {
    "messages": [
        {"role": "system", "content": "Be brief.", "name": "boss"},
        {"role": "user", "content": [{"type": "text", "text": "Once"}, {"type": "text", "text": "upon"}]},
        {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        {"role": "user", "content": "And?"},
    ],
    "tools": [TOOL], "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    "logit_bias": {"17": 1.5}, "stop": ["a", "b"], "stop_token_ids": [17], "bad_words": ["zebra"],
    "chat_template_kwargs": {"enable_thinking": True, "deep": {"a": [1, {"b": None}]}}, "documents": [{"title": "a", "text": "b"}],
    "metadata": {"a": "b"}, "max_tokens": 2,
    "speculative": {"method": "none", "num_speculative_tokens": 4},
}  # fmt: skip
FORMED = {
    "messages": [{"role": "user", "content": "Once"}], "max_tokens": 2,
    "response_format": {"type": "json_schema", "json_schema": {"name": "p", "description": "q", "strict": True, "schema": {
        "type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$", "maxLength": 5}, "b": {"enum": [1, "x"]}}, "required": ["a"]}}},
}  # fmt: skip
STRUCTURED = {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 2, "structured_outputs": {"choice": ["yes", "no"]},
              "kv_policy": {"type": "sink_window", "sinks": 16, "window": 256}}  # with a short prompt, for none of it is found in the cache


def places(value, path=()):
    """The way to everything below a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from places(below, (*path, key))


def put(body, path, mark):
    copy = json.loads(json.dumps(body))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = mark
    return json.dumps(copy)


@pytest.mark.parametrize("body", [RICH, FORMED, STRUCTURED], ids=["rich", "formed", "structured"])
def test_every_place_inside_takes_or_refuses_every_value_by_name(talker, body):
    connection = Connection(talker)
    assert connection.post("/v1/chat/completions", json.dumps(body)).status == 200

    def ask(place, path):
        for nth, (value_name, value) in enumerate(VALUES.items()):
            if len(value) > 10_000 and (place + nth) % 8 != 0:
                continue  # megabytes are for some places each
            text = put(body, path, "?mark?").replace('"?mark?"', value, 1)
            answer = connection.post("/v1/chat/completions", text)
            if answer.status != 200:
                assert answer.status == 400, (path, value_name, answer.text[:500])
                # Where a field makes another one senseless, either may be named; a prompt that grew too long is the messages'.
                roots = {path[0], "messages", *(body if len(path) == 1 else ())}
                assert (answer.error["param"] or "").split(".")[0].split("[")[0] in roots, (path, value_name, answer.text[:500])
                assert len(answer.text) < 1500, (path, value_name)

    with Bystander(talker):
        for_each(places(body), ask)
