"""One client's turn: its environment, its program against the server, and what came of it, kept for the document."""

import collections
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import clients
import environments
import served
from clients import FAILED, NOT_RUN, PLACE, RESULTS, WORKED
from clients_page import judged

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# Nobody calls home, asks a hub or reads the settings of the person who runs the tests.
QUIET = {
    "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1", "OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false",
    "NO_PROXY": "*", "no_proxy": "*", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
}  # fmt: skip
OTHERS = r"(?i)openai|anthropic|claude|codex|langchain|langsmith|litellm|.*_proxy$|pythonpath|xdg_"


def run(client, servers):
    """What came of it, as the document wants it; also kept below build/matrix/results."""
    began = time.monotonic()
    outcome = {"name": client.name, "result": NOT_RUN, "why": "", "facts": [], "requests": {}, "warned": [],
               "date": datetime.date.today().isoformat(), "server": served.version()}
    try:
        folder = environments.made(client)
        server = servers.of(client.server)
        mark = server.mark()
        outcome |= job_of(client, folder, servers, server)
        time.sleep(0.2)  # the log comes through a pipe
        asked, warned = server.requests(mark)
        outcome |= {"requests": dict(collections.Counter(asked)), "warned": sorted(set(warned))}
        outcome = judged(client, outcome)
    except environments.CannotInstall as error:
        outcome["why"] = str(error)
    outcome["seconds"] = round(time.monotonic() - began, 1)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{client.name}.json").write_text(json.dumps(outcome, indent=1, ensure_ascii=False) + "\n")
    return outcome


def job_of(client, folder, servers, server):
    """Runs the client's program in an empty home, and reads the line of JSON that it ends with."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    question = {"url": server.url, "model": served.MODEL, "model_folder": str(servers.models[client.server]), "folder": str(folder),
                "home": str(home), "version": next(iter(client.packages.values()))}
    log = PLACE / f"{client.name}.log"
    with log.open("w") as out:
        process = subprocess.Popen([*servers.network.prefix, *command_of(client, folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=out, text=True, env=settings(client, folder, home), cwd=home, start_new_session=True)
        try:
            said, _ = process.communicate(json.dumps(question), timeout=client.limit_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            return {"result": FAILED, "why": f"it had not ended after {client.limit_s} s"}
    kill_group(process)  # what it left running
    with log.open("a") as out:
        out.write(said)
    if process.returncode != 0:
        return {"result": FAILED, "why": last_words(log.read_text(errors="replace"))}
    return {"result": WORKED, "facts": json.loads(said.splitlines()[-1])}


def command_of(client, folder):
    if client.file.endswith(".mjs"):
        beside_modules = folder / client.file  # where imports are looked for
        shutil.copy(PROGRAMS / client.file, beside_modules)
        return [str(newest_node(folder)), str(beside_modules)]
    return [str(folder / "bin" / "python") if client.kind == clients.ALONE else sys.executable, str(PROGRAMS / client.file)]


def newest_node(folder):
    own = folder / "node_modules" / "node" / "bin" / "node"
    return own if own.exists() else "node"


def settings(client, folder, home):
    kept = {name: value for name, value in os.environ.items() if not re.match(OTHERS, name)}
    path = [str(folder / "bin"), str(folder / "node_modules" / ".bin"), str(folder / "node_modules" / "node" / "bin"), kept.get("PATH", "")]
    return {**kept, **QUIET, "HOME": str(home), "PATH": os.pathsep.join(path), "TMPDIR": str(scratch(home))}


def scratch(home):
    folder = home / "tmp"
    folder.mkdir(exist_ok=True)
    return folder


def kill_group(process):
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.wait()


def last_words(text):
    """The line that names the error; of programs that do not, their last lines."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines[-40:] if re.match(r"not so: |([\w.]+)?(Error|Exception)\b", line)]
    return " / ".join(named[-1:] or lines[-3:])[-600:] or "it ended with an error and no word of it"
