"""Codex CLI over Responses: a provider of its own in config.toml."""

import json

from driving import TASK, noted, project, run, write
from heard import check, tell

project()
write(".codex/config.toml", noted("Codex CLI"))
codex = ("codex", "exec", "--skip-git-repo-check")
check("a turn that ended with the model's words", run(*codex, TASK, QUIRE_KEY="none"))
check("the session continued by a second turn", run(*codex, "resume", "--last", "And in sums.py?", QUIRE_KEY="none"))
form = {"type": "object", "properties": {"mood": {"type": "string", "enum": ["good", "bad"]},
                                         "lines": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["mood", "lines"], "additionalProperties": False}
said = run(*codex, "--output-schema", write("schema.json", json.dumps(form)), "How is the code?", QUIRE_KEY="none")
answer = json.loads(said[said.rindex("{"):said.rindex("}") + 1])
check("an answer of a schema (--output-schema)", answer["mood"] in ("good", "bad") and 0 <= answer["lines"] <= 9)
tell()
