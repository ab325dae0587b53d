"""LiteLLM's SDK: chats, calls and typed answers; over three APIs."""

import json

import litellm
from heard import ASK, POPULATION, SHORT, api, check, model, tell, url
from typed import Person


TOOL = {"type": "function", "function": {
    "name": "population", "description": "How many people live in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": list(POPULATION)}}, "required": ["city"]}}}
talk = [{"role": "user", "content": ASK}]
for provider, base in (("openai", api), ("hosted_vllm", api), ("anthropic", url)):
    place = {"model": f"{provider}/{model}", "api_base": base, "api_key": "none", "max_retries": 0, "temperature": 0, "timeout": 120}
    whole = litellm.completion(messages=talk, max_tokens=SHORT, **place).choices[0].message.content
    chunks = list(litellm.completion(messages=talk, max_tokens=SHORT, stream=True, **place))
    check(f"{provider}: a chat, streamed as it is whole",
          whole and litellm.stream_chunk_builder(chunks).choices[0].message.content == whole and len(chunks) > 1)
    answer = litellm.completion(messages=talk, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=100, **place).choices[0]
    (call,) = answer.message.tool_calls
    check(f"{provider}: a forced call", json.loads(call.function.arguments)["city"] in POPULATION)
    behind = [*talk, answer.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "2103000"}]
    check(f"{provider}: an answer behind it", litellm.completion(messages=behind, tools=[TOOL], max_tokens=SHORT, **place).choices[0].message.content)
    typed = litellm.completion(messages=[{"role": "user", "content": "Invent a person."}], response_format=Person, max_tokens=120, **place)
    check(f"{provider}: a typed answer", Person.model_validate_json(typed.choices[0].message.content))
place = {"model": f"openai/{model}", "api_base": api, "api_key": "none", "max_output_tokens": SHORT}
check("openai: Responses", litellm.responses(input=ASK, **place).output_text)
events = [event.type for event in litellm.responses(input=ASK, stream=True, **place)]
check("openai: Responses in a stream", len(events) > 8)
tell()
