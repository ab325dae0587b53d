"""Asks the server through a client that was generated from its OpenAPI document; prints what it heard as one line of JSON."""

import only_loopback  # isort: skip: it watches what the others do

import asyncio
import json
import sys

from quire_client import Client
from quire_client.api.chat import create_chat_completion
from quire_client.api.embeddings import create_embedding
from quire_client.api.messages import create_message
from quire_client.api.models import list_models, retrieve_model
from quire_client.api.responses import create_response
from quire_client.models import (
    AnthropicError, ChatCompletion, ChatCompletionRequest, ChatMessage, ChatMessageRole, EmbeddingRequest, Error, Message, MessageParam, MessageParamRole,
    MessageRequest, Model, ModelList, OutputMessage, ResponseObject, ResponseRequest, Tool)  # fmt: skip
from quire_client.types import UNSET

question = json.load(sys.stdin)
client = Client(base_url=question["url"], raise_on_unexpected_status=True, timeout=120)
how = dict(model=question["model"], seed=question["seed"], temperature=question["temperature"])
talk = [ChatMessage(role=ChatMessageRole(one["role"]), content=one["content"]) for one in question["talk"]]


def typed(value, kind):
    assert isinstance(value, kind), (type(value), value)
    return value


def chat(**fields):
    body = ChatCompletionRequest(messages=talk, **{**how, **fields})
    return typed(create_chat_completion.sync(client=client, body=body), ChatCompletion)


def told(answer):
    (choice,) = answer.choices
    calls = [[call.function.name, json.loads(call.function.arguments)] for call in choice.message.tool_calls or []]
    return {"content": choice.message.content, "finish": choice.finish_reason.value, "tokens": answer.usage.completion_tokens, "calls": calls,
            "cached": answer.usage.prompt_tokens_details.cached_tokens}  # fmt: skip


def chat_with_tools():
    calling = question["calling"]
    return told(chat(tools=[Tool.from_dict(one) for one in calling["tools"]], tool_choice=calling["tool_choice"],
                     parallel_tool_calls=calling["parallel_tool_calls"], max_tokens=calling["max_tokens"]))  # fmt: skip


def logprobs():
    (choice,) = chat(max_tokens=24, logprobs=True, top_logprobs=2).choices
    return [[one.token, one.logprob, [top.token for top in one.top_logprobs]] for one in choice.logprobs.content]


def fault(**fields):
    answer = create_chat_completion.sync_detailed(client=client, body=ChatCompletionRequest(messages=talk, **{**how, **fields}))
    error = typed(answer.parsed, Error).error
    return [answer.status_code, error.type_, error.param, error.code]


def fault_of_messages():
    body = MessageRequest(messages=[MessageParam(role=MessageParamRole.USER, content="Once")], max_tokens=2, model="gpt-4")
    error = typed(create_message.sync(client=client, body=body), AnthropicError)
    return [error.type_, error.error.type_]


def message():
    body = MessageRequest(messages=[MessageParam(role=MessageParamRole.USER, content="Once")], max_tokens=8, **how)
    answer = typed(create_message.sync(client=client, body=body), Message)
    return [answer.content[0].text, answer.stop_reason.value]


def response():
    answer = typed(create_response.sync(client=client, body=ResponseRequest(input_="Once", max_output_tokens=8, **how)), ResponseObject)
    return [typed(answer.output[0], OutputMessage).content[0].text, answer.status.value]


async def asynchronously():
    body = ChatCompletionRequest(messages=talk, max_tokens=24, **how)
    async with client:
        return told(await create_chat_completion.asyncio(client=client, body=body))


models = typed(list_models.sync(client=client), ModelList)
heard = {
    "models": [model.id for model in models.data],
    "as_anthropic": type(list_models.sync(client=client, anthropic_version="2023-06-01")).__name__,
    "model": typed(retrieve_model.sync(question["model"], client=client), Model).max_model_len,
    "no_model": typed(retrieve_model.sync("gpt-4", client=client), Error).error.param,
    "chat": told(chat(max_tokens=24)),
    "called": chat_with_tools(),
    "logprobs": logprobs(),
    "message": message(),
    "response": response(),
    "embedding": len(create_embedding.sync(client=client, body=EmbeddingRequest(input_=["Once", "The end"])).data),
    "unknown": fault(model="gpt-4"),
    "wrong": fault(temperature=9),
    "message_fault": fault_of_messages(),
    "unset": chat(max_tokens=1).choices[0].message.tool_calls is UNSET,
    "asynchronous": asyncio.run(asynchronously()),
}
heard["refused"] = only_loopback.refused
print(json.dumps(heard))
