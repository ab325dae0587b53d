"""Client libraries, each with packages of its own: their pins disagree with each other's and with ours."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from file_lock import file_lock
from packages import PLACE, install, python_with
from test_chat import TALE, TOOL

PROGRAMS = pathlib.Path(__file__).parent / "clients"
OPENAI_NODE = "openai@7.57.0"
# Nobody calls home, asks a hub or reads the settings of whoever runs the tests.
QUIET = {
    "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false",
    "NO_PROXY": "*", "no_proxy": "*", "TOKENIZERS_PARALLELISM": "false",
}  # fmt: skip

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[A-Z][a-z]{1,7}$"}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
                   "color": {"type": "string", "enum": ["red", "green", "blue"]}},
    "required": ["name", "age", "color"],
    "additionalProperties": False,
}  # fmt: skip
PLAIN = {"model": "stories", "seed": 5, "temperature": 0.8}
CALLING = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 120}
QUESTION = {"talk": TALE, "calling": CALLING, "person": PERSON, **PLAIN, "prompt": "Once upon a time", "model_folder": str(ROOT / "models" / "stories")}


def wire(server, path="/v1/chat/completions", **fields):
    """What the same question is answered without any library."""
    begin = {"messages": TALE} if path.endswith("chat/completions") else {"prompt": QUESTION["prompt"]}
    answer = server.post_to(path, {**PLAIN, **begin, **fields})
    assert answer.status == 200, answer.text
    return answer.json


def heard_by(name, server):
    """What clients/ask_NAME.py heard, run with the packages of clients/NAME.txt."""
    return _run([python_with(PROGRAMS / f"{name}.txt"), PROGRAMS / f"ask_{name}.py"], server, cwd=PROGRAMS)


def heard_by_node(server):
    """What clients/ask_openai.mjs heard, run with the openai package of npm."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    program = PLACE / "ask_openai.mjs"  # beside node_modules, where imports are looked for
    with file_lock(PLACE / "npm.lock"):
        install(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(PLACE), OPENAI_NODE], OPENAI_NODE)
        shutil.copy(PROGRAMS / program.name, program)
    return _run(["node", program], server, cwd=PLACE)


def heard_by_generated_client(server, folder):
    """What clients/ask_generated.py heard, run with a client that is made of the server's OpenAPI document in `folder`."""
    python = python_with(PROGRAMS / "generated.txt")
    (folder / "openapi.json").write_text(server.get("/openapi.json").text)
    (folder / "settings.yml").write_text("post_hooks: []\n")  # no formatter has to be there
    made = subprocess.run([python, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--config", "settings.yml", "--meta", "none",
                           "--output-path", "quire_client", "--fail-on-warning"], cwd=folder, capture_output=True, text=True, timeout=600)  # fmt: skip
    assert made.returncode == 0, made.stdout[-6000:] + made.stderr[-6000:]
    return _run([python, PROGRAMS / "ask_generated.py"], server, cwd=PROGRAMS, more={"PYTHONPATH": str(folder)})


def _run(command, server, more=None, **options):
    settings = {name: value for name, value in os.environ.items() if not re.match(r"(?i)openai|langchain|langsmith|litellm|.*_proxy$", name)}
    done = subprocess.run([str(part) for part in command], input=json.dumps({"url": server.url, **QUESTION}), capture_output=True, text=True,
                          timeout=600, env=settings | QUIET | (more or {}), **options)
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout.splitlines()[-1])
