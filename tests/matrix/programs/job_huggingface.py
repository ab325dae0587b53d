"""huggingface_hub's InferenceClient."""

import json
import os

for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):  # with them the client asks nobody, this machine neither
    os.environ.pop(name, None)

from heard import ASK, POPULATION, SHORT, api, check, model, tell
from huggingface_hub import InferenceClient
from typed import Person


client = InferenceClient(base_url=api, api_key="none", timeout=120)
talk = [{"role": "user", "content": ASK}]
whole = client.chat_completion(talk, model=model, max_tokens=SHORT, temperature=0).choices[0].message.content
pieces = [chunk.choices[0].delta.content or "" for chunk in client.chat_completion(talk, model=model, max_tokens=SHORT, temperature=0, stream=True)]
check("a chat, streamed as it is whole", whole and "".join(pieces) == whole and len(pieces) > 3)

tool = {"type": "function", "function": {
    "name": "population", "description": "How many people live in a city",
    "parameters": {"type": "object", "properties": {"city": {"enum": list(POPULATION)}}, "required": ["city"], "additionalProperties": False}}}
answer = client.chat_completion(talk, model=model, tools=[tool], tool_choice="required", max_tokens=100).choices[0].message
call = answer.tool_calls[0]
arguments = call.function.arguments
city = (json.loads(arguments) if isinstance(arguments, str) else arguments)["city"]
check("a forced call", city in POPULATION)
again = [*talk, {"role": "assistant", "content": "", "tool_calls": [{"id": call.id, "type": "function", "function": {
    "name": "population", "arguments": json.dumps({"city": city})}}]}, {"role": "tool", "tool_call_id": call.id, "content": str(POPULATION[city])}]
check("an answer behind the call", client.chat_completion(again, model=model, tools=[tool], max_tokens=SHORT).choices[0].message.content)

form = {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema(), "strict": True}}
typed = client.chat_completion([{"role": "user", "content": "Invent a person."}], model=model, response_format=form, max_tokens=100)
check("an answer of a schema, by pydantic", Person.model_validate_json(typed.choices[0].message.content))
tell()
