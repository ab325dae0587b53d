"""POST /v1/chat/completions through the official client: the embedded model's template joins what was said with line breaks."""

import json

import jsonschema
import openai
import pytest

from conftest import HERMES

TALE = [{"role": "system", "content": "A little girl named Lily lived by the sea."}, {"role": "user", "content": "She loved to"}]
TEXT = "A little girl named Lily lived by the sea.\nShe loved to"
TOOL = {"type": "function", "function": {"name": "look", "description": "Look at it", "parameters": {
    "type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}, "for_s": {"type": "integer"}},
    "required": ["at"], "additionalProperties": False}}}


def ask(client, **fields):
    return client.chat.completions.create(**{"model": "stories", "messages": TALE, "seed": 5, "max_tokens": 24, **fields})


def joined(chunks):
    """What a stream says of its first choice: role, content, finish reason, usage."""
    role = content = ""
    finish = usage = None
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            assert finish is None and choice.index == 0
            role += choice.delta.role or ""
            content += choice.delta.content or ""
            finish = choice.finish_reason
    return role, content, finish, usage


def test_an_answer_is_a_message_and_goes_on_from_the_template(server, client):
    answer = ask(client)
    message = answer.choices[0].message
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert message.role == "assistant" and message.tool_calls is None and message.refusal is None
    assert message.content == server.text(TEXT, seed=5, max_tokens=24)
    assert answer.usage.completion_tokens == 24 and answer.choices[0].finish_reason == "length"


def test_a_stream_has_role_content_end_and_usage(client):
    whole = ask(client)
    role, content, finish, usage = joined(ask(client, stream=True, stream_options={"include_usage": True}))
    assert (role, content, finish) == ("assistant", whole.choices[0].message.content, "length")
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_a_stream_returns_its_timings_once_at_its_end(client):
    chunks = list(ask(client, stream=True))
    assert [i for i, chunk in enumerate(chunks) if (chunk.model_extra or {}).get("timings")] == [len(chunks) - 1]


def test_several_choices_are_those_of_the_completion(server, client):
    answers = ask(client, n=3, temperature=1.0)
    assert [c.index for c in answers.choices] == [0, 1, 2]
    plain = server.complete(TEXT, seed=5, max_tokens=24, n=3, temperature=1.0)["choices"]
    assert [c.message.content for c in answers.choices] == [c["text"] for c in plain]


def test_the_longest_answer_is_what_room_is_left(client):
    answer = ask(client, max_tokens=None, extra_body={"ignore_eos": True})
    assert answer.usage.total_tokens == 512


def test_log_probabilities_stand_beside_every_token(client):
    answer = ask(client, logprobs=True, top_logprobs=3)
    tokens = answer.choices[0].logprobs.content
    assert len(tokens) == 24
    assert b"".join(bytes(t.bytes) for t in tokens).decode() == answer.choices[0].message.content
    for token in tokens:
        assert len(token.top_logprobs) == 3 and token.logprob <= token.top_logprobs[0].logprob <= 0
    streamed = []
    for chunk in ask(client, logprobs=True, top_logprobs=3, stream=True):
        for choice in chunk.choices:
            streamed += choice.logprobs.content if choice.logprobs else []
    assert streamed == tokens


def test_a_message_goes_on(server, client):
    talk = [TALE[0], {"role": "assistant", "content": "She loved to "}]
    answer = ask(client, messages=talk, extra_body={"continue_final_message": True})
    assert answer.choices[0].message.content == server.text(TEXT + " ", seed=5, max_tokens=24)


def test_rendering_returns_the_prompt_and_its_tokens(server):
    answer = server.post_to("/v1/chat/completions/render", {"messages": TALE})
    assert answer.status == 200 and answer.json["prompt"] == TEXT
    assert answer.json["count"] == len(answer.json["token_ids"])
    assert server.text(answer.json["token_ids"], seed=5, max_tokens=8) == server.text(TEXT, seed=5, max_tokens=8)


@pytest.mark.parametrize("fields,param", [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages[0].role"),
    ({"tools": [{"type": "function", "function": {"name": "no good"}}]}, "tools[0].function.name"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"extra_body": {"chat_template": "{{ 1 }}"}}, "chat_template"),
    ({"extra_body": {"chat_template_kwargs": {"messages": []}}}, "chat_template_kwargs.messages"),
    ({"reasoning_effort": "enormous"}, "reasoning_effort"),
])
def test_a_wrong_field_is_refused_by_its_path(client, fields, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **fields)
    assert caught.value.param == param


def test_the_operator_may_give_another_template(start_server, tmp_path):
    (tmp_path / "t.jinja").write_text("{% for m in messages %}({{ m.role }}) {{ m.content }} {% endfor %}")
    server = start_server("--chat-template", tmp_path / "t.jinja")
    rendered = server.post_to("/v1/chat/completions/render", {"messages": TALE}).json["prompt"]
    assert rendered == f"(system) {TALE[0]['content']} (user) {TALE[1]['content']} "


def test_tools_may_be_offered_where_the_form_of_calls_is_known(start_server, tmp_path):
    (tmp_path / "t.jinja").write_text(HERMES)
    client = start_server("--chat-template", tmp_path / "t.jinja").client()
    answer = ask(client, tools=[TOOL])
    assert answer.choices[0].message.tool_calls is None and answer.choices[0].message.content
    talk = TALE + [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": json.dumps({"at": "sky"})}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "blue"}]
    assert ask(client, messages=talk, tools=[TOOL]).choices[0].finish_reason == "length"


@pytest.fixture(scope="module")
def caller(hermes_server):
    """A client of the embedded model, taught Hermes calls by its template."""
    return hermes_server.client()


def streamed_calls(chunks):
    """Names, ids, arguments, and the finish reason."""
    calls, finish = {}, None
    for chunk in chunks:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            assert not choice.delta.content
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"name": "", "arguments": "", "id": part.id})
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    return [calls[i] for i in sorted(calls)], finish


OTHER = {"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties": {
    "to": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["to"]}}}


@pytest.mark.parametrize("choice,names", [
    ("required", {"look", "count"}),
    ({"type": "function", "function": {"name": "count"}}, {"count"}),
])
@pytest.mark.parametrize("seed", range(6))
def test_a_forced_call_is_one_with_arguments_of_its_schema(caller, choice, names, seed):
    fields = {"tools": [TOOL, OTHER], "tool_choice": choice, "parallel_tool_calls": False, "seed": seed, "temperature": 1.0, "max_tokens": 200}
    answer = ask(caller, **fields).choices[0]
    assert answer.finish_reason == "tool_calls" and answer.message.content is None
    (call,) = answer.message.tool_calls
    assert call.function.name in names
    jsonschema.validate(json.loads(call.function.arguments), {t["function"]["name"]: t["function"]["parameters"] for t in [TOOL, OTHER]}[call.function.name])
    calls, finish = streamed_calls(ask(caller, **fields, stream=True))
    assert (calls, finish) == ([{"name": call.function.name, "arguments": call.function.arguments, "id": call.id}], "tool_calls")


def test_a_strict_tool_leaves_the_model_free_to_talk(caller):
    strict = {"type": "function", "function": {**TOOL["function"], "strict": True}}
    free = ask(caller, tools=[TOOL]).choices[0]
    assert ask(caller, tools=[strict]).choices[0].message.content == free.message.content != ""


def test_a_form_of_content_may_stand_beside_tools(caller):
    answer = ask(caller, tools=[TOOL], max_tokens=200, response_format={"type": "json_schema", "json_schema": {
        "name": "is", "schema": {"type": "object", "properties": {"is": {"type": "boolean"}}, "required": ["is"]}}}).choices[0]
    if answer.message.tool_calls is None:
        assert json.loads(answer.message.content)["is"] in (True, False)
    else:
        assert answer.message.tool_calls[0].function.name == "look"


def test_a_schema_of_arguments_that_cannot_be_kept_is_refused(caller):
    bad = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "$dynamicRef": "#x"}}}
    with pytest.raises(openai.BadRequestError) as caught:
        ask(caller, tools=[TOOL, bad], tool_choice="required")
    assert caught.value.param == "tools[1].function.parameters" and "$dynamicRef" in caught.value.message
