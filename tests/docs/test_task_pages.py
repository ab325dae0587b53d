"""The commands of the task pages in docs/: each block of bash and Python runs as it stands, with a real instruct model from a package in
place of the one from the hub, and a free port in place of 8000. What cannot run here is marked in the page."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "real_model"))
import smollm2  # noqa: E402

BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
PAGES = ["start.md", "requests.md", "../README.md"]
MOST_NOT_RUN = 3  # blocks; may only shrink
NOT_RUN = re.compile(r"<!-- not run by tests: .+ -->\n$")
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.M | re.S)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
MODEL = "Qwen/Qwen3-0.6B"


def blocks_of(page):
    """[(language, text, runs)] of a page."""
    text = (ROOT / "docs" / page).read_text()
    return [(block[1], block[2], not NOT_RUN.search(text[: block.start()])) for block in BLOCK.finditer(text)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Reader:
    """Somebody who types what a page says."""

    def __init__(self):
        self.port = free_port()
        self.server = None

    def adapted(self, text):
        text = text.replace("build/release/quire", str(BUILD / "quire")).replace(MODEL, str(smollm2.gguf_file()))
        return text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")

    def serve(self, command):
        self.stop()
        self.server = subprocess.Popen(["bash", "-c", f"exec {command.split('  #')[0].strip()} --port {self.port} --kv-cache-memory 256MiB"], cwd=ROOT, env=ENVIRONMENT,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = []
        for line in self.server.stdout:
            said.append(line)
            if line.startswith("ready in"):
                return
        raise AssertionError("".join(said))

    def run(self, language, text):
        if language == "python":
            done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (text, done.stdout[-1000:], done.stderr[-2000:])
        return done.stdout

    def stop(self):
        if self.server is not None:
            self.server.terminate()
            assert self.server.wait(60) == 0
            self.server = None


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_works(page):
    reader = Reader()
    try:
        if page == "../README.md":
            reader.serve(f"{BUILD / 'quire'} serve")  # what its first command ends with
        for language, text, runs in blocks_of(page):
            if not runs or "quickstart.sh" in text:  # tests/deploy runs the quickstart
                continue
            text = reader.adapted(text)
            started = time.monotonic()
            if language == "bash" and " serve " in text and "--plan" not in text:
                reader.serve(text)
            elif "assert" not in text:
                assert reader.run(language, text).strip(), text
            else:
                reader.run(language, text)
            print(f"{time.monotonic() - started:5.1f} s  {text.splitlines()[0][:100]}")
    finally:
        reader.stop()


@pytest.mark.full
def test_the_answer_that_the_readme_shows_is_the_one_that_its_request_gets():
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"^```bash\n(curl .*?/v1/completions.*?)^```\n```\n(.*?)^```$", text, re.M | re.S)
    reader = Reader()
    try:
        reader.serve(f"{BUILD / 'quire'} serve")
        answer, expected = json.loads(reader.run("bash", reader.adapted(shown[1]))), json.loads(shown[2])
    finally:
        reader.stop()
    answer.pop("timings")
    changing = ("id", "created", "seed")
    assert {key: value for key, value in answer.items() if key not in changing} == {key: value for key, value in expected.items() if key not in changing}


def test_few_commands_are_marked_as_not_run():
    marked = sum(not runs for page in PAGES for _, _, runs in blocks_of(page))
    assert marked == MOST_NOT_RUN, f"{marked} blocks are marked, {MOST_NOT_RUN} are known: lower the number, or run what you add"


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md" and f"({page.name})" not in index]
    assert not missing


def anchors_of(page):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_of_the_documents_lead_somewhere():
    wrong = []
    for page in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
            if "://" in target or target.startswith("mailto:"):
                continue
            there = page.parent / target if target else page
            if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors_of(there)):
                wrong.append(f"{page.name}: {target}#{anchor}")
    assert not wrong
