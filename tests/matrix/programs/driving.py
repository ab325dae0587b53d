"""What the programs of coding agents share: an empty repository to work in, the agent run to its end, its words kept in the log."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

from heard import question, url

HOME = pathlib.Path(question["home"])
WORK = HOME / "project"
NOTES = pathlib.Path(__file__).resolve().parents[1] / "clients_notes.md"
TASK = "What is in the file notes.txt? Answer in one sentence."


def project():
    """A repository of two files."""
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "notes.txt").write_text("Buy bread.\n")
    (WORK / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "."], ["add", "-A"], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *words], cwd=WORK, check=True)
    return WORK


def noted(title):
    """The settings that docs/clients.md tells for a client: the first block of its section, with this server's address."""
    section = NOTES.read_text().partition(f"### {title}\n")[2]
    return re.search(r"```\w+\n(.*?)```", section, re.DOTALL)[1].replace("http://127.0.0.1:8000", url)


def exports(text):
    """The variables of a shell's export lines."""
    lines = (shlex.split(line) for line in text.splitlines() if line.startswith("export "))
    return dict(word.split("=", 1) for line in lines for word in line[1:])


def write(path, text):
    file = HOME / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def run(*command, **settings):
    """What the agent printed on its standard output; the program ends where the agent ended with an error."""
    done = subprocess.run([str(part) for part in command], cwd=WORK, env={**os.environ, **settings}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace")
    print(f"== {command[0]}: {done.returncode}\n{done.stdout}\n{done.stderr}", file=sys.stderr, flush=True)
    if done.returncode != 0:
        said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        sys.exit(f"not so: {command[0]} ended with {done.returncode}: {' / '.join(said[-2:])[:400]}")
    return done.stdout.strip()
