"""Commands that stand in pages which no test runs: each names a command and flags that quire has, and their number only shrinks."""

import os
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
PROGRAMS = r"quire|curl|bash|docker|helm|kubectl|pip|python3?|cmake|systemctl|apt|git|ninja"
COMMAND = re.compile(rf"^(?:\$ )?(?:build/\S*/|\S*/bin/|\.venv/bin/|deploy/)?(?:{PROGRAMS}|install_packages\.sh)\b", re.M)
RUN = {"README.md", "start.md", "requests.md", "docker.md", "kubernetes.md"}  # by test_task_pages.py and test_deploy_pages.py
NOT_RUN = {  # blocks with commands; may only shrink
    "CONTRIBUTING.md": 3, "deploy.md": 3, "gpu.md": 1, "hub.md": 1, "kv-cache.md": 1, "kv-events.md": 1, "load-testing.md": 3,
    "models.md": 1, "performance.md": 1, "quantization.md": 2, "runbook.md": 2, "security.md": 1, "speculation.md": 1,
    "tls.md": 1, "tracing.md": 1,
}  # fmt: skip


def pages():
    return [page for page in [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))] if page.name != "CHANGELOG.md"]


def blocks_with_commands(page):
    return [text for _, text in BLOCK.findall(page.read_text()) if COMMAND.search(text)]


def test_the_number_of_commands_that_no_test_runs_only_shrinks():
    found = {page.name: len(blocks_with_commands(page)) for page in pages() if page.name not in RUN}
    expected = {name: count for name, count in NOT_RUN.items() if count}
    assert {name: count for name, count in found.items() if count} == expected, "run what you add (RUN), or lower the number"


def quire_lines():
    """(page, words after `quire`) of each line, continued ones joined."""
    for page in pages():
        for block in blocks_with_commands(page):
            for line in block.replace("\\\n", " ").splitlines():
                match = re.match(r"^(?:\$ )?(?:build/\S*/)?quire ([a-z].*)$", line)
                if match:
                    yield page.name, shlex.split(re.sub(r"\s+#.*", "", match[1]), comments=True)


def flags_of(command):
    told = subprocess.run([QUIRE, command, "--help"], capture_output=True, text=True, timeout=60, env=os.environ | {"COLUMNS": "1000"})
    return set(re.findall(r"--[a-z][a-z0-9-]*", told.stdout)) if told.returncode == 0 else None


@pytest.fixture(scope="module")
def known():
    return {}


def test_every_flag_of_quire_in_a_page_exists(known):
    lines = list(quire_lines())
    assert len(lines) > 20
    wrong = []
    for page, (command, *words) in lines:
        if command not in known:
            known[command] = flags_of(command)
        if known[command] is None:
            wrong.append(f"{page}: quire {command}")
            continue
        flags = {word.split("=")[0] for word in words if word.startswith("--")}
        wrong += [f"{page}: quire {command} {flag}" for flag in flags - known[command] - {"--help"}]
    assert not wrong
