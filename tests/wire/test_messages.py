"""POST /v1/messages and count_tokens through the official client: blocks, their events, and errors of their own shape."""

import json

import pytest

from conftest import PATIENCE_S

SYSTEM = "A little girl named Lily lived by the sea."
TALK = [{"role": "user", "content": "She loved to"}]
TEXT = SYSTEM + "\nShe loved to"
LOOK = {"name": "look", "description": "Look at it", "strict": True, "input_schema": {
    "type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}}, "required": ["at"],
    "additionalProperties": False}}


@pytest.fixture(scope="module")
def anthropic():
    """The package, which takes seconds to import."""
    import anthropic

    return anthropic


def client_of(server):
    import anthropic

    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def claude(server):
    return client_of(server)


@pytest.fixture(scope="module")
def hermes(hermes_server):
    return client_of(hermes_server)


@pytest.fixture(scope="module")
def thinker(thinking_server):
    return client_of(thinking_server)


def fields_of(**fields):
    return {"model": "stories", "system": SYSTEM, "messages": TALK, "max_tokens": 24, "extra_body": {"seed": 5}, **fields}


def ask(client, **fields):
    return client.messages.create(**fields_of(**fields))


def test_an_answer_is_a_message_and_goes_on_from_the_template(server, claude):
    answer = ask(claude)
    assert answer.type == "message" and answer.role == "assistant" and answer.id.startswith("msg_")
    [block] = answer.content
    assert block.type == "text" and block.text == server.text(TEXT, seed=5, max_tokens=24)
    assert answer.stop_reason == "max_tokens" and answer.stop_sequence is None
    assert answer.usage.output_tokens == 24 and answer.usage.cache_creation_input_tokens == 0
    assert answer.seed == 5 and answer.timings["predicted_n"] == 24


def test_a_prompt_that_was_read_before_is_reported_as_cached(claude):
    talk = [{"role": "user", "content": "The boat was red and the sail was white. " * 12}]
    first, second = ask(claude, messages=talk), ask(claude, messages=talk)
    assert second.usage.cache_read_input_tokens > 0
    assert (second.usage.input_tokens + second.usage.cache_read_input_tokens
            == first.usage.input_tokens + first.usage.cache_read_input_tokens)
    assert second.content == first.content


def test_a_stream_has_anthropics_events_and_is_the_whole_message(claude):
    whole = ask(claude)
    events = list(ask(claude, stream=True))
    types = [event.type for event in events]
    assert types == (["message_start", "content_block_start"] + ["content_block_delta"] * (len(types) - 5)
                     + ["content_block_stop", "message_delta", "message_stop"])
    assert "".join(event.delta.text for event in events if event.type == "content_block_delta") == whole.content[0].text
    with claude.messages.stream(**fields_of()) as stream:
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text and final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_a_forced_call_is_a_block_and_its_result_goes_back(hermes):
    answer = ask(hermes, tools=[LOOK], tool_choice={"type": "any", "disable_parallel_tool_use": True}, max_tokens=200)
    [call] = [block for block in answer.content if block.type == "tool_use"]
    assert answer.stop_reason == "tool_use" and call.name == "look" and call.input["at"] in ("sky", "sea")
    with hermes.messages.stream(**fields_of(tools=[LOOK], tool_choice={"type": "tool", "name": "look"}, max_tokens=200)) as stream:
        assert stream.get_final_message().content[-1].name == "look"
    again = ask(hermes, tools=[LOOK], messages=TALK + [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "blue"}]}])
    assert again.content


def test_thinking_is_a_block_before_all_others(thinker):
    fields = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    whole = ask(thinker, **fields)
    assert whole.content[0].type == "thinking" and whole.content[0].thinking
    with thinker.messages.stream(**fields_of(**fields)) as stream:
        assert stream.get_final_message().content[0].thinking == whole.content[0].thinking
    assert ask(thinker, thinking={"type": "disabled"}).content[0].type == "text"


def test_a_stop_sequence_ends_it_and_is_returned(claude):
    said = ask(claude).content[0].text
    word = said.split()[3]
    answer = ask(claude, stop_sequences=[word])
    assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == word
    assert answer.content[0].text == said[:said.index(word)]


def test_the_assistants_last_words_go_on(server, claude):
    answer = ask(claude, messages=TALK + [{"role": "assistant", "content": "swim and"}])
    assert answer.content[0].text == server.text(TEXT + "\nswim and", seed=5, max_tokens=24)


def test_a_count_is_what_the_answer_was_asked_with(claude):
    counted = claude.messages.count_tokens(model="stories", system=SYSTEM, messages=TALK).input_tokens
    usage = ask(claude).usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens


@pytest.mark.parametrize("fields,param", [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]},
     "messages[0].content[0].type"),
    ({"tools": [{"type": 20250124, "name": "bash"}]}, "tools[0].type"),
    ({"tools": [{"type": "bash_20250124", "name": "bash"}], "tool_choice": {"type": "tool", "name": "bash"}}, "tool_choice"),
    ({"thinking": {"type": "enabled", "budget_tokens": 0}}, "thinking.budget_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 100000}, "max_tokens"),
    ({"extra_body": {"temperature": 3}}, "temperature"),
])
def test_a_wrong_field_is_refused_in_anthropics_shape(anthropic, claude, fields, param):
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(claude, **fields)
    body = caught.value.body
    assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error" and body["error"]["param"] == param


def test_refusals_before_a_body_is_read_have_that_shape_too(anthropic, server, claude):
    with pytest.raises(anthropic.NotFoundError) as caught:
        ask(claude, model="other")
    assert caught.value.body["error"]["type"] == "not_found_error"
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        for body, content_type in (("{", "application/json"), ("{}", "text/plain")):
            answer = server.request("POST", path, body, {"Content-Type": content_type})
            assert answer.status in (400, 415) and answer.json["type"] == "error"
    assert server.post_to("/v1/messages", {"messages": TALK}).error["param"] == "max_tokens"


def test_an_unknown_field_is_named_in_the_warnings(server):
    answer = server.post_to("/v1/messages", {"messages": TALK, "max_tokens": 2, "mood": "sunny"})
    assert answer.headers["x-quire-warnings"] == "unknown fields: mood"
    assert json.loads(answer.text)["type"] == "message"
