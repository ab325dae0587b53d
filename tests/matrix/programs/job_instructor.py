"""instructor: pydantic objects."""

import instructor
from heard import api, check, model, tell
from openai import OpenAI
from typed import Person


plain = OpenAI(base_url=api, api_key="none", max_retries=0, timeout=120)
talk = [{"role": "user", "content": "Invent a person."}]
for mode, what in ((instructor.Mode.TOOLS, "a forced call"), (instructor.Mode.TOOLS_STRICT, "a strict call"),
                   (instructor.Mode.JSON_SCHEMA, "a JSON schema")):
    client = instructor.from_openai(plain, mode=mode)
    person = client.chat.completions.create(model=model, messages=talk, response_model=Person, max_tokens=120, temperature=0, max_retries=0)
    check(f"an object by {what}", isinstance(person, Person))
client = instructor.from_openai(plain, mode=instructor.Mode.JSON_SCHEMA)
partial = list(client.chat.completions.create_partial(model=model, messages=talk, response_model=Person, max_tokens=120, temperature=0))
check("an object in a stream, grown in parts", len(partial) > 2 and Person.model_validate(partial[-1].model_dump()))
tell()
