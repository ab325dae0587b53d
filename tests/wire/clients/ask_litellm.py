"""Asks the server through LiteLLM; prints what it heard as one line of JSON."""

import only_loopback  # isort: skip: it watches what the others do

import asyncio
import json
import sys

import litellm

question = json.load(sys.stdin)
place = dict(api_base=question["url"] + "/v1", api_key="none", max_retries=0)
how = dict(seed=question["seed"], temperature=question["temperature"])
talk = dict(messages=question["talk"], **how, **place)
tools = question["calling"]
form = {"type": "json_schema", "json_schema": {"name": "person", "schema": question["person"], "strict": True}}


def told(answer):
    choice = answer.choices[0]
    calls = [[call.function.name, json.loads(call.function.arguments)] for call in choice.message.tool_calls or []]
    return {"content": choice.message.content, "finish": choice.finish_reason, "usage": answer.usage.completion_tokens, "calls": calls}


def streamed(**fields):
    chunks = list(litellm.completion(**talk, **fields, stream=True))
    return {**told(litellm.stream_chunk_builder(chunks)), "chunks": len(chunks)}


async def at_once(model):
    answers = await asyncio.gather(*(litellm.acompletion(model, **talk, max_tokens=24) for _ in range(3)))
    return [answer.choices[0].message.content for answer in answers]


def fault(**fields):
    try:
        litellm.completion(**{**talk, **fields})
    except litellm.exceptions.APIError as error:
        return [type(error).__name__, error.status_code]
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None)]


heard = {}
for provider in ("openai", "hosted_vllm"):
    model = f"{provider}/{question['model']}"
    heard[provider] = {
        "whole": told(litellm.completion(model, **talk, max_tokens=24)),
        "streamed": streamed(model=model, max_tokens=24),
        "at_once": asyncio.run(at_once(model)),
        "called": told(litellm.completion(model, **talk, **tools)),
        "called_in_a_stream": streamed(model=model, **tools),
        "person": json.loads(litellm.completion(model, **talk, max_tokens=120, response_format=form).choices[0].message.content),
        "logprobs": len(litellm.completion(model, **talk, max_tokens=24, logprobs=True, top_logprobs=2).choices[0].logprobs.content),
        "unknown": fault(model=f"{provider}/gpt-4"),
        "wrong": fault(model=model, temperature=9),
    }
asked = dict(prompt=question["prompt"], max_tokens=24, **how, **place)
model = f"text-completion-openai/{question['model']}"
heard["text"] = litellm.text_completion(model=model, **asked).choices[0].text
heard["text_in_a_stream"] = "".join(chunk.choices[0].text or "" for chunk in litellm.text_completion(model=model, **asked, stream=True))
heard["text_by_openai"] = litellm.text_completion(model=f"openai/{question['model']}", **asked).choices[0].text
heard["refused"] = only_loopback.refused
print(json.dumps(heard))
