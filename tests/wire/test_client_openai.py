"""OpenAI's own client for Python: chat and completions, whole, streamed and at once, with tools, forms and errors."""

import asyncio
import json
from typing import Literal

import openai
import pydantic
import pytest

from conftest import PACED, PATIENCE_S, aborted, idle
from libraries import CALLING, PERSON, PLAIN, QUESTION, wire
from test_chat import TALE, TOOL

pytestmark = pytest.mark.full


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(pattern="^[A-Z][a-z]{1,7}$")
    age: int = pydantic.Field(ge=0, le=130)
    color: Literal["red", "green", "blue"]


class look(pydantic.BaseModel):
    """Look at it"""

    at: Literal["sky", "sea"]
    for_s: int


@pytest.fixture
def client(talker):
    return talker.client()


@pytest.fixture
def asynchronous(talker):
    return lambda: openai.AsyncOpenAI(base_url=talker.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)


def chat(client, **fields):
    return client.chat.completions.create(**{**PLAIN, "messages": TALE, "max_tokens": 24, **fields})


def calls_of(message):
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]


def gathered(chunks):
    """Content, reasoning, calls and finish reason of a stream's first choice."""
    content, calls, finish = "", [], None
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                if part.index == len(calls):
                    calls.append([part.id, part.function.name, ""])
                calls[part.index][2] += part.function.arguments
            finish = choice.finish_reason or finish
    return content, [(id_, name, json.loads(text)) for id_, name, text in calls], finish


def test_a_chat_is_received_whole_streamed_and_at_once(talker, client, asynchronous):
    expected = wire(talker, max_tokens=24)["choices"][0]["message"]["content"]
    assert chat(client).choices[0].message.content == expected
    assert gathered(chat(client, stream=True)) == (expected, [], "length")

    async def whole(client):
        return (await chat(client)).choices[0].message.content

    async def stream(client):
        return gathered([chunk async for chunk in await chat(client, stream=True)])[0]

    async def twenty_of_each():
        async with asynchronous() as client:
            return await asyncio.gather(*(ask(client) for ask in (whole, stream) for _ in range(20)))

    assert set(asyncio.run(twenty_of_each())) == {expected}


NAMED = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
@pytest.mark.parametrize("parallel", [False, True])
def test_calls_are_received_whole_and_streamed_with_the_same_ids(client, choice, parallel):
    fields = {**CALLING, "tool_choice": choice, "parallel_tool_calls": parallel, "max_tokens": 300}
    whole = chat(client, **fields).choices[0]
    calls = calls_of(whole.message)
    assert len(calls) == len({id_ for id_, _, _ in calls}) >= 1
    assert all(name == "look" and arguments["at"] in ("sky", "sea") for _, name, arguments in calls)
    assert gathered(chat(client, **fields, stream=True)) == ("", calls, whole.finish_reason)
    assert parallel or (len(calls) == 1 and whole.finish_reason == "tool_calls")


def test_the_stream_helper_parses_the_arguments_of_a_call(client):
    fields = {**CALLING, "tools": [openai.pydantic_function_tool(look)]}
    with client.chat.completions.stream(**PLAIN, messages=TALE, **fields) as stream:
        pieces = [event.arguments_delta for event in stream if event.type == "tool_calls.function.arguments.delta"]
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert len(pieces) > 3 and "".join(pieces) == call.function.arguments
    assert call.function.parsed_arguments == look(**json.loads(call.function.arguments))


def test_a_call_is_answered_and_the_talk_goes_on(client):
    message = chat(client, **CALLING).choices[0].message
    talk = [*TALE, message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "It is blue."}]
    answer = chat(client, messages=talk, tools=[TOOL])
    assert answer.choices[0].message.content and answer.usage.prompt_tokens > 80


def test_a_model_of_pydantic_is_parsed_whole_and_streamed(client):
    fields = dict(**PLAIN, messages=TALE, max_tokens=120, response_format=Person)
    answer = client.chat.completions.parse(**fields)
    assert isinstance(answer.choices[0].message.parsed, Person)
    with client.chat.completions.stream(**fields) as stream:
        content = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == answer.choices[0].message.parsed
    assert content == answer.choices[0].message.content


def test_a_parsed_answer_that_was_cut_raises_as_it_should(client):
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**PLAIN, messages=TALE, max_tokens=5, response_format=Person)


def test_a_schema_and_a_json_object_are_answered(client):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    Person.model_validate_json(chat(client, max_tokens=120, response_format=form).choices[0].message.content)
    answer = chat(client, max_tokens=300, response_format={"type": "json_object"}).choices[0]
    assert answer.message.content.startswith("{")
    if answer.finish_reason == "stop":
        assert isinstance(json.loads(answer.message.content), dict)


def test_log_probabilities_are_received_whole_and_streamed(client):
    whole = chat(client, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    streamed = [token for chunk in chat(client, logprobs=True, top_logprobs=3, stream=True) for choice in chunk.choices if choice.logprobs
                for token in choice.logprobs.content]
    assert len(whole) == 24 and streamed == whole
    lists = client.completions.create(**PLAIN, prompt=QUESTION["prompt"], max_tokens=10, logprobs=2, echo=True).choices[0].logprobs
    assert lists.token_logprobs[0] is None and len(lists.tokens) == len(lists.top_logprobs) == len(lists.text_offset)


def test_reasoning_is_separated(client):
    fields = dict(max_tokens=120, extra_body={"chat_template_kwargs": {"enable_thinking": True}})
    message = chat(client, **fields).choices[0].message
    streamed = [choice.delta.reasoning for chunk in chat(client, **fields, stream=True) for choice in chunk.choices if getattr(choice.delta, "reasoning", None)]
    assert message.reasoning and "".join(streamed) == message.reasoning == message.reasoning_content


def test_completions_of_several_prompts_and_choices(talker, client):
    fields = dict(**PLAIN, prompt=["Once", "The dog"], n=2, max_tokens=12)
    expected = [choice["text"] for choice in wire(talker, "/v1/completions", prompt=["Once", "The dog"], n=2, max_tokens=12)["choices"]]
    assert [choice.text for choice in client.completions.create(**fields).choices] == expected
    texts = [""] * 4
    for chunk in client.completions.create(**fields, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == expected


def test_the_request_id_is_on_every_answer_and_error(client):
    answer = chat(client, extra_headers={"X-Request-Id": "abc-7"})
    assert answer._request_id == "abc-7" and answer.id == "chatcmpl-abc-7"
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, top_p=3, extra_headers={"X-Request-Id": "abc-8"})
    assert caught.value.request_id == "abc-8"
    raw = client.chat.completions.with_raw_response.create(**PLAIN, messages=TALE, max_tokens=1)
    assert raw.status_code == 200 and raw.headers["x-request-id"] and raw.parse().choices


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields, kind, status, param", [
    (dict(temperature=3), openai.BadRequestError, 400, "temperature"),
    (dict(messages=[]), openai.BadRequestError, 400, "messages"),
    (dict(tools=[{"type": "function"}]), openai.BadRequestError, 400, "tools[0].function"),
    (dict(model="gpt-4"), openai.NotFoundError, 404, "model"),
    (dict(extra_headers={"Content-Type": "text/plain"}), openai.APIStatusError, 415, None),
    (dict(user="x" * (9 << 20)), openai.APIStatusError, 413, None),
], ids=lambda value: str(value)[:30])
def test_errors_have_the_types_of_the_client(client, fields, kind, status, param, stream):
    with pytest.raises(kind) as caught:
        chat(client, **fields, stream=stream)
    assert caught.value.status_code == status and caught.value.param == param
    assert caught.value.body["message"] and caught.value.body["code"] == status


def test_a_full_line_is_a_rate_limit_that_the_client_waits_out(start_server):
    server = start_server("--max-num-seqs", 1, "--max-queue", 2, *PACED)

    async def ten(max_retries):
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=max_retries, timeout=PATIENCE_S) as client:
            asked = (client.completions.create(**PLAIN, prompt="Once", max_tokens=25, extra_body={"ignore_eos": True}) for _ in range(10))
            return await asyncio.gather(*asked, return_exceptions=True)

    at_once = asyncio.run(ten(0))
    errors = [one for one in at_once if isinstance(one, Exception)]
    assert errors and {type(one) for one in errors} == {openai.RateLimitError}
    assert len(errors) < 10
    assert {one.choices[0].text for one in asyncio.run(ten(20))} == {one.choices[0].text for one in at_once if one not in errors}


def test_what_is_not_served_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.images.generate(prompt="a dragon")


def test_who_leaves_a_stream_stops_the_engine(paced):
    before = aborted(paced.wait_until(idle, "an idle engine"))
    stream = chat(paced.client(), stream=True, max_tokens=400, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    paced.wait_until(lambda m: idle(m) and aborted(m) == before + 1, "an idle engine, and one sequence cut short")
