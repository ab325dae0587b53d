"""Outlines: answers of a choice, a pattern, a schema and a grammar."""

import re

import openai
import outlines
from heard import ASK, Color, SHORT, api, check, model, tell
from outlines.types import CFG, JsonSchema, Regex
from typed import Person


client = openai.OpenAI(base_url=api, api_key="none", max_retries=0, timeout=120)
one = outlines.from_vllm(client, model)
check("a free answer", one(ASK, max_tokens=SHORT))
check("a stream", len(list(one.stream(ASK, max_tokens=SHORT))) > 3)
check("a choice", one("Which color is the sky?", Color, max_tokens=20) in ("red", "green", "blue"))
check("a pattern", re.fullmatch(r"[0-9]{3}-[0-9]{4}", one("Invent a telephone number.", Regex(r"[0-9]{3}-[0-9]{4}"), max_tokens=30)))
check("a pydantic schema", Person.model_validate_json(one("Invent a person.", Person, max_tokens=120)))
check("a JSON schema as text", Person.model_validate_json(one("Invent a person.", JsonSchema(Person.model_json_schema()), max_tokens=120)))
check("a grammar", re.fullmatch(r"[0-9](\+[0-9])*", one("A sum:", CFG('root ::= digit ("+" digit)*\ndigit ::= [0-9]'), max_tokens=15).rstrip("+")))
plain = outlines.from_openai(client, model)
check("from_openai: a pydantic schema", Person.model_validate_json(plain("Invent a person.", Person, max_tokens=120)))
tell()
