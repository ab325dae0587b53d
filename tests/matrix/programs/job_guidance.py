"""guidance: a conversation with a constrained answer and a free one."""

import guidance
from guidance import assistant, gen, json as json_of, system, user
from guidance.models import OpenAI
from heard import ASK, SHORT, api, check, model, tell
from typed import Person


one = OpenAI(model, base_url=api, api_key="none", echo=False)
with system():
    one += "Answer shortly."
with user():
    one += ASK
with assistant():
    one += gen("answer", max_tokens=SHORT)
check("a free answer", one["answer"])
with user():
    one += "Invent a person."
with assistant():
    one += json_of(name="person", schema=Person, max_tokens=120)
check("an answer of a schema", Person.model_validate_json(one["person"]))
tell()
