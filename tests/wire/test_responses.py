"""POST /v1/responses through the official client: items, their events, and what is told again."""

import json

import openai
import pytest

TEXT = "A little girl named Lily lived by the sea.\nShe loved to"
LOOK = {"type": "function", "name": "look", "description": "Look at it", "strict": True, "parameters": {
    "type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}}, "required": ["at"],
    "additionalProperties": False}}


def ask(client, **fields):
    return client.responses.create(**{"model": "stories", "instructions": "A little girl named Lily lived by the sea.",
                                      "input": "She loved to", "max_output_tokens": 24, "extra_body": {"seed": 5}, **fields})


@pytest.fixture(scope="module")
def hermes(hermes_server):
    return hermes_server.client()


@pytest.fixture(scope="module")
def thinker(thinking_server):
    return thinking_server.client()


def events_of(stream):
    """All events, numbered without a gap."""
    events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def test_an_answer_is_a_response_and_goes_on_from_the_template(server, client):
    answer = ask(client, metadata={"a": "b"}, user="me")
    assert answer.object == "response" and answer.id.startswith("resp_") and answer.error is None
    assert answer.status == "incomplete" and answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text == server.text(TEXT, seed=5, max_tokens=24)
    [message] = answer.output
    assert message.type == "message" and message.role == "assistant" and message.content[0].annotations == []
    assert answer.metadata == {"a": "b"} and answer.user == "me" and answer.max_output_tokens == 24
    assert answer.usage.output_tokens == 24 and answer.usage.output_tokens_details.reasoning_tokens == 0
    assert answer.usage.total_tokens == answer.usage.input_tokens + 24
    assert answer.store is False and answer.seed == 5 and answer.timings["predicted_n"] == 24


def test_a_stream_has_openais_events_and_ends_with_the_whole_response(client):
    whole = ask(client)
    events = events_of(ask(client, stream=True))
    types = [event.type for event in events]
    deltas = types.count("response.output_text.delta")
    assert types == (["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
                     + ["response.output_text.delta"] * deltas
                     + ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                        "response.incomplete"])
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    last = events[-1].response
    assert last.output_text == whole.output_text and last.usage.output_tokens == whole.usage.output_tokens


def test_the_clients_own_stream_puts_it_together(client):
    with client.responses.stream(model="stories", input="Once upon a time", max_output_tokens=12,
                                 extra_body={"seed": 5}) as stream:
        said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    assert said == client.responses.create(model="stories", input="Once upon a time", max_output_tokens=12,
                                           extra_body={"seed": 5}).output_text


def test_there_is_no_done_and_every_event_has_its_name(server):
    with server.socket() as raw:
        body = json.dumps({"input": "Once", "max_output_tokens": 4, "stream": True}).encode()
        raw.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        text = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert "[DONE]" not in text
    names = [line[7:].strip() for line in text.splitlines() if line.startswith("event: ")]
    assert names == [json.loads(line[6:])["type"] for line in text.splitlines() if line.startswith("data: ")]


def test_a_forced_call_is_an_item_and_its_result_goes_back(hermes):
    fields = {"tools": [LOOK], "tool_choice": "required", "parallel_tool_calls": False, "max_output_tokens": 200}
    answer = ask(hermes, **fields)
    [call] = [item for item in answer.output if item.type == "function_call"]
    assert call.name == "look" and json.loads(call.arguments)["at"] in ("sky", "sea") and answer.status == "completed"
    events = events_of(ask(hermes, **fields, stream=True))
    assert "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta") == call.arguments
    assert events[-1].type == "response.completed" and events[-1].response.output[-1].call_id == call.call_id
    again = ask(hermes, tools=[LOOK], input=[
        {"role": "user", "content": "What is there?"}, *[item.model_dump(exclude_none=True) for item in answer.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "blue"}])
    assert again.output


def test_reasoning_is_an_item_before_all_others(thinker):
    fields = {"extra_body": {"seed": 5, "chat_template_kwargs": {"enable_thinking": True}}}
    answer = ask(thinker, **fields)
    assert answer.output[0].type == "reasoning" and answer.output[0].content[0].type == "reasoning_text"
    assert 0 < answer.usage.output_tokens_details.reasoning_tokens <= 24
    events = events_of(ask(thinker, stream=True, **fields))
    said = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    assert said == answer.output[0].content[0].text


def test_text_has_the_form_that_was_asked_for(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["n"],
              "additionalProperties": False}
    answer = ask(client, text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}})
    assert 1 <= json.loads(answer.output_text)["n"] <= 9 and answer.status == "completed"
    assert answer.text.format.type == "json_schema"


def test_log_probabilities_are_those_of_a_completion_whole_and_streamed(server, client):
    """The official client's types have them; a completion of the same prompt and seed has the same figures."""
    asked = dict(include=["message.output_text.logprobs"], top_logprobs=3, temperature=0)
    answer = ask(client, **asked)
    [part] = answer.output[0].content
    plain = server.post({"prompt": TEXT, "seed": 5, "max_tokens": 24, "temperature": 0, "logprobs": 3}).json["choices"][0]["logprobs"]
    assert "".join(bytes(token.bytes).decode() for token in part.logprobs) == part.text
    assert [token.logprob for token in part.logprobs] == plain["token_logprobs"][: len(part.logprobs)]
    for token in part.logprobs:
        assert len(token.top_logprobs) == 3 and token.top_logprobs[0].logprob == token.logprob  # greedy: it is the likeliest
        assert token.top_logprobs[0].token == token.token
    assert answer.top_logprobs == 3

    events = events_of(ask(client, stream=True, **asked))
    told = [token for event in events if event.type == "response.output_text.delta" for token in event.logprobs]
    [done] = [event for event in events if event.type == "response.output_text.done"]
    figures = [(token.token, token.logprob) for token in part.logprobs]
    assert [(token.token, token.logprob) for token in told] == figures
    assert [(token.token, token.logprob) for token in done.logprobs] == figures
    assert events[-1].response.output[0].content[0].logprobs == part.logprobs


def test_reasoning_has_no_log_probabilities_and_what_follows_it_has(thinker):
    answer = ask(thinker, include=["message.output_text.logprobs"], max_output_tokens=60)
    for item in answer.output:
        if item.type == "message":
            assert item.content[0].text in "".join(bytes(token.bytes).decode(errors="replace") for token in item.content[0].logprobs)
        else:
            assert "logprobs" not in item.model_dump_json()


@pytest.mark.parametrize("fields,param", [
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    ({"tools": [{"type": 7}]}, "tools[0].type"),
    ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"background": True}, "background"),
    ({"include": [7]}, "include[0]"),
    ({"include": ["message.output_text.logprobs"], "top_logprobs": 21}, "top_logprobs"),
    ({"truncation": "some"}, "truncation"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_output_tokens": 100000}, "max_output_tokens"),
])
def test_a_wrong_field_is_refused_by_its_path(client, fields, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **fields)
    assert caught.value.param == param


def test_an_unknown_field_is_named_in_the_warnings(client):
    raw = client.responses.with_raw_response.create(model="stories", input="Once", max_output_tokens=2,
                                                    extra_body={"mood": "sunny"})
    assert raw.headers["X-Quire-Warnings"] == "unknown fields: mood"
