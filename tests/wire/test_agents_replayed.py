"""What coding agents send, word for word but for its words. Every request of agent_requests/ is answered with a well-formed stream
or body, once pictures are taken out, which are refused by name."""

import json
import pathlib

import pytest

from conftest import ROOT, TALKING_TEMPLATE, server_of

FILES = sorted((pathlib.Path(__file__).parent / "agent_requests").glob("*.json"))
FILLER = "lorem ipsum"
MODEL = ROOT / "models" / "stories"
REQUESTS = [pytest.param(request, id=f"{file.stem}-{index}{request['path'].partition('?')[0].replace('/', '.')}")
            for file in FILES for index, request in enumerate(json.loads(file.read_text()))]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The embedded model, said to go up to 65536 tokens: what agents send is longer than the 512 that it has learnt. Its template shows
    tools, begins reasoning where that is asked for, and takes a system's message at any place."""
    folder = tmp_path_factory.mktemp("agents")
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).symlink_to(MODEL / name)
    config = json.loads((MODEL / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 65536}))
    yield from server_of(TALKING_TEMPLATE, folder, "--model", folder, "--served-model-name", "stories", "--kv-cache-memory", "512MiB",
                         "--tool-call-parser", "hermes", "--reasoning-parser", "think")


def shortened(value):
    """Fillers are cut to 40 characters: a prompt of 10 to 40 thousand tokens would take this machine up to a minute. Nothing else is changed."""
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value]
    return value[:40] if isinstance(value, str) and value.startswith(FILLER) else value


PICTURES = ("image", "image_url", "input_image", "document")


def without_pictures(value):
    if isinstance(value, dict):
        return {key: without_pictures(one) for key, one in value.items()}
    if isinstance(value, list):
        kept = [without_pictures(one) for one in value if not (isinstance(one, dict) and one.get("type") in PICTURES)]
        return kept if kept or not value else [{"type": "text", "text": FILLER}]
    return value


def replay(server, request, seen=without_pictures):
    body = {**seen(shortened(request["body"])), "model": "stories"}
    path = request["path"].partition("?")[0]
    if path != "/v1/messages/count_tokens":
        body["max_output_tokens" if path == "/v1/responses" else "max_tokens"] = 16
    return server.request(request["method"], request["path"], json.dumps(body), request["headers"])


# ---- what is well-formed


def frames_of(answer):
    """(event, data) of a whole stream."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    *frames, rest = answer.text.split("\n\n")
    assert rest == ""
    for frame in frames:
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
        assert set(fields) <= {"event", "data"}, frame
        if fields:
            yield fields.get("event"), fields["data"]


def named_events_of(answer):
    events = []
    for name, data in frames_of(answer):
        events.append(json.loads(data))
        assert events[-1]["type"] == name != "error", data
    return events


def check_response(answer):
    events = named_events_of(answer)
    types = [event["type"] for event in events]
    assert types[:2] == ["response.created", "response.in_progress"] and types[-1] in ("response.completed", "response.incomplete")
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    added = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert added == list(range(len(done))) and events[-1]["response"]["output"] == done
    assert 1 <= events[-1]["response"]["usage"]["output_tokens"] <= 16


def check_message(answer):
    events = named_events_of(answer)
    events = [event for event in events if event["type"] != "ping"]
    first, *blocks, delta, last = events
    assert (first["type"], delta["type"], last["type"]) == ("message_start", "message_delta", "message_stop")
    assert delta["delta"]["stop_reason"] in ("end_turn", "max_tokens", "tool_use") and 1 <= delta["usage"]["output_tokens"] <= 16
    opened, is_open = 0, False
    for event in blocks:
        kind = event["type"].removeprefix("content_block_")
        assert is_open == (kind != "start"), event
        opened += kind == "start"
        is_open = kind != "stop"
        assert event["index"] == opened - 1
    assert not is_open


def check_chat(answer, tells_usage):
    *chunks, last = [data for _, data in frames_of(answer)]
    assert last == "[DONE]"
    chunks = [json.loads(data) for data in chunks]
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
    ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert len(ends) == 1 and ends[0] in ("stop", "length", "tool_calls")
    told = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    assert len(told) == tells_usage and all(1 <= usage["completion_tokens"] <= 16 for usage in told)


# ---- the claims


@pytest.mark.parametrize("request_", [one for one in REQUESTS if one.values[0]["body"]])
def test_a_recorded_request_is_answered_with_a_well_formed_stream_or_body(reader, request_):
    answer = replay(reader, request_)
    assert answer.status == 200, answer.text
    path, body = request_["path"].partition("?")[0], request_["body"]
    if path == "/v1/messages/count_tokens":
        assert answer.json["input_tokens"] > 0
    elif not body.get("stream"):
        assert path == "/v1/chat/completions" and answer.json["object"] == "chat.completion" and answer.json["choices"][0]["finish_reason"]
    elif path == "/v1/responses":
        check_response(answer)
    elif path == "/v1/messages":
        check_message(answer)
    else:
        assert path == "/v1/chat/completions"
        check_chat(answer, tells_usage=bool(body.get("stream_options", {}).get("include_usage")))


@pytest.mark.parametrize("request_", [one for one in REQUESTS if one.values[0]["body"] != without_pictures(one.values[0]["body"])])
def test_a_picture_or_a_document_is_refused_by_name(reader, request_):
    answer = replay(reader, request_, seen=lambda body: body)
    assert answer.status == 400 and answer.error["param"].endswith(".type") and "reads text only" in answer.error["message"]


@pytest.mark.parametrize("request_", [one for one in REQUESTS if not one.values[0]["body"]])
def test_a_look_before_the_first_request_is_answered_without_a_body(reader, request_):
    """An agent that warms its connection up does not mind which status it gets, as long as the connection stays."""
    answer = reader.request(request_["method"], request_["path"], headers=request_["headers"])
    assert answer.status in (200, 404) and answer.text == ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_holds_no_prose(file):
    def texts(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                yield from texts(one)
        elif isinstance(value, str):
            yield value

    assert file.stat().st_size < 300_000
    for text in texts(json.loads(file.read_text())):
        # Beside filler: arguments and notes in JSON, a schema's pattern, and the grammar that stands for a grammar.
        assert " " not in text or text.startswith((FILLER[:len(text)], "{", "^", "start: ")), text
