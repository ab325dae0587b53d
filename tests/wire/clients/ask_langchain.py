"""Asks the server through LangChain; prints what it heard as one line of JSON."""

import only_loopback  # isort: skip: it watches what the others do

import asyncio
import json
import sys
from typing import Literal

import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel, Field

question = json.load(sys.stdin)
place = dict(base_url=question["url"] + "/v1", api_key="none", max_retries=0, model=question["model"])
how = dict(seed=question["seed"], temperature=question["temperature"])
talk = [{"system": SystemMessage, "user": HumanMessage}[m["role"]](m["content"]) for m in question["talk"]]
chat = ChatOpenAI(**place, **how, max_tokens=24)
formed = ChatOpenAI(**place, **how, max_tokens=120)
tools = question["calling"]["tools"]
caller = formed.bind_tools(tools, tool_choice="required", parallel_tool_calls=False)
plain = OpenAI(**place, **how, max_tokens=24)


class Person(BaseModel):
    """A person of the story."""

    name: str = Field(pattern="^[A-Z][a-z]{1,7}$")
    age: int = Field(ge=0, le=130)
    color: Literal["red", "green", "blue"]


def told(message):
    return {"content": message.content, "usage": message.usage_metadata, "finish": message.response_metadata.get("finish_reason"),
            "calls": [[call["name"], call["args"]] for call in message.tool_calls]}  # fmt: skip


def streamed(model, messages, **options):
    chunks = list(model.stream(messages, **options))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return {**told(whole), "chunks": len(chunks)}


async def asked_at_once():
    whole, (*chunks,) = await asyncio.gather(chat.ainvoke(talk), collected(chat.astream(talk)))
    return [whole.content, "".join(chunk.content for chunk in chunks)]


async def collected(stream):
    return [chunk async for chunk in stream]


def second_turn():
    first = caller.invoke(talk)
    back = [ToolMessage("It is blue.", tool_call_id=call["id"]) for call in first.tool_calls]
    return told(chat.bind_tools(tools).invoke([*talk, first, *back]))


def fault():
    try:
        ChatOpenAI(**{**place, "model": "gpt-4"}).invoke(talk)
    except openai.NotFoundError as error:
        return error.param


heard = {
    "invoked": told(chat.invoke(talk)),
    "streamed": streamed(chat, talk, stream_usage=True),
    "batch": [message.content for message in chat.batch([talk, talk[1:], talk])],
    "at_once": asyncio.run(asked_at_once()),
    "logprobs": chat.bind(logprobs=True, top_logprobs=2).invoke(talk).response_metadata["logprobs"]["content"],
    "called": told(caller.invoke(talk)),
    "called_in_a_stream": streamed(caller, talk),
    "second_turn": second_turn(),
    "person": formed.with_structured_output(Person, method="json_schema").invoke(talk).model_dump(),
    "person_as_dict": formed.with_structured_output(question["person"] | {"title": "person"}, method="json_schema").invoke(talk),
    "person_in_a_stream": [p if isinstance(p, dict) else p.model_dump() for p in formed.with_structured_output(Person, method="json_schema").stream(talk)][-1],
    "person_by_a_call": formed.with_structured_output(Person, method="function_calling").invoke(talk).model_dump(),
    "fault": fault(),
    "completed": plain.invoke(question["prompt"]),
    "completed_in_a_stream": "".join(plain.stream(question["prompt"])),
    "completed_several": [[g.text for g in some] for some in OpenAI(**place, **how, max_tokens=24, n=2, best_of=2).generate([question["prompt"], "The dog"]).generations],
    "message": isinstance(chat.invoke(talk), AIMessage),
}
heard["refused"] = only_loopback.refused
print(json.dumps(heard))
