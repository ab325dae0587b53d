"""opencode: a provider for each of the three APIs in opencode.json."""

import json

from driving import HOME, TASK, noted, project, run, write
from heard import check, model, tell

project()
PACKAGES = {"Chat Completions": "@ai-sdk/openai-compatible", "Responses": "@ai-sdk/openai", "Messages": "@ai-sdk/anthropic"}
settings = json.loads(noted("opencode"))
like = settings["provider"]["quire"]
like["models"][model]["limit"]["output"] = 64
for package in PACKAGES.values():
    settings["provider"][package.rpartition("/")[2]] = {**like, "npm": package}
write(".config/opencode/opencode.json", json.dumps({**settings, "autoupdate": False, "share": "disabled", "permission": {"*": "allow"}}))
quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "XDG_CONFIG_HOME": str(HOME / ".config")}
for path, package in PACKAGES.items():
    provider = f"{package.rpartition('/')[2]}/{model}"
    check(f"{path}: a turn that ended with the model's words", run("opencode", "run", "-m", provider, TASK, **quiet))
    check(f"{path}: the session continued by a second turn", run("opencode", "run", "-c", "-m", provider, "And in sums.py?", **quiet))
tell()
