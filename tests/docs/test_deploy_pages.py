"""The commands of docs/docker.md and docs/kubernetes.md run as they stand. Docker and a cluster are stood in for: fake_docker.py runs this build's
program with the mounts, variables and ports that a command gives, fake_cluster.py renders the chart and looks for what a command names."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "deploy"))
import deploy_tools  # noqa: E402
from test_task_pages import BUILD, blocks_of, free_port  # noqa: E402

PAGES = ["docker.md", "kubernetes.md"]
MOST_NOT_RUN = 0  # blocks; may only shrink
HERE = pathlib.Path(__file__).parent


class Desk:
    """Somebody's shell in a copy of the repository, with `docker`, `kubectl` and `helm` in the path."""

    def __init__(self, home):
        self.home, self.port, self.admin_port = home, free_port(), free_port()
        self.root = home / "quire"
        self.root.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name not in ("build", ".git"):
                (self.root / path.name).symlink_to(path)
        (self.root / "build" / "release").mkdir(parents=True)
        (self.root / "build" / "release" / "quire").symlink_to(BUILD / "quire")
        (home / "models").mkdir()
        (home / "models" / "Qwen3-0.6B").symlink_to(ROOT / "models" / "stories")
        programs = home / "programs"
        programs.mkdir()
        for name, script in (("docker", "fake_docker.py"), ("kubectl", "fake_cluster.py"), ("helm", "fake_cluster.py")):
            first = "" if name == "docker" else ' "$0"'
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / script}"{first} "$@"\n')
            (programs / name).chmod(0o755)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("QUIRE_", "HF_"))}
        self.environment = plain | {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "PWD": str(self.root), "FAKE_HOME": str(home),
            "FAKE_QUIRE": str(BUILD / "quire"), "FAKE_PORT": str(self.port), "FAKE_ADMIN_PORT": str(self.admin_port)}

    def run(self, text):
        for written, real in (("127.0.0.1:8000", self.port), ("127.0.0.1:8001", self.admin_port)):
            text = text.replace(written, f"127.0.0.1:{real}")
        text = text.replace("8001:8001", f"{self.admin_port}:8001").replace("QUIRE_MODEL=Qwen/Qwen3-0.6B", f"QUIRE_MODEL={ROOT / 'models' / 'stories'}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (text, done.stdout[-1000:], done.stderr[-2000:])
        return done.stdout

    def close(self):
        pids = [json.loads(path.read_text())["pid"] for path in self.home.glob("containers/*.json")]
        pids += [int(path.read_text()) for path in self.home.glob("forward.pid")]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.fixture
def desk(tmp_path):
    one = Desk(tmp_path / "desk")
    yield one
    one.close()


def commands_of(page):
    return [text for language, text, runs in blocks_of(page) if language == "bash" and runs]


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_works(desk, page):
    if page == "kubernetes.md":
        desk.environment["FAKE_HELM"] = str(deploy_tools.helm(4))
    for text in commands_of(page):
        print(text + desk.run(text))
    assert not list(desk.home.glob("containers/*.json")), "each container is removed"
    if page == "kubernetes.md":
        assert json.loads((desk.home / "cluster.json").read_text())["releases"] == {}, "each release is removed"


@pytest.mark.parametrize("wrong", [
    "docker build -f deploy/docker/gone.Dockerfile -t quire:0.1.0 .",
    "docker run -d --name quire --publsh 127.0.0.1:8000:8000 quire:0.1.0",
    "docker run -d --name quire -p 127.0.0.1:8000:8000 quire:0.1.0 serve --max-nun-seqs 3 --host 0.0.0.0",
    "docker run -d --name quire -p 127.0.0.1:8000:8000 -e QUIRE_MAX_NUN_SEQS=3 quire:0.1.0",
    "docker run -d --name quire -p 127.0.0.1:8000:8000 quire:0.1.0 serve",
    "docker run -d --name quire -p 127.0.0.1:8000:8000 -v ~/gone:/models/gone:ro -e QUIRE_MODEL=/models/gone quire:0.1.0",
    "docker compose -f deploy/docker/gone.yaml up -d",
])
def test_a_wrong_command_of_docker_would_fail(desk, wrong):
    build, *_ = commands_of("docker.md")
    desk.run(build)
    with pytest.raises(AssertionError):
        desk.run(wrong)


@pytest.mark.full
@pytest.mark.parametrize("wrong", [
    "helm install other helm/quire --namespace llm --set model.sauce=pvc",
    "helm install other helm/quire --namespace llm --set model.source=pvc,model.pvc.claimName=gone",
    "helm install other helm/quire --namespace llm --set auth.existingSecret=gone",
    "helm upgrade other helm/quire --namespace llm",
    "kubectl --namespace llm rollout status deployment/other",
    "kubectl --namespace llm port-forward service/one-quire 8000:81",
    "kubectl --namespace llm logs deployment/one-quire --container other",
])
def test_a_wrong_command_of_kubernetes_would_fail(desk, wrong):
    desk.environment["FAKE_HELM"] = str(deploy_tools.helm(4))
    desk.run("helm install one helm/quire --namespace llm")
    desk.run("kubectl --namespace llm port-forward service/one-quire 8000:80")
    with pytest.raises(AssertionError):
        desk.run(wrong)


def test_few_commands_are_marked_as_not_run():
    marked = sum(not runs for page in PAGES for _, _, runs in blocks_of(page))
    assert marked == MOST_NOT_RUN, f"{marked} blocks are marked, {MOST_NOT_RUN} are known: lower the number, or run what you add"


def test_every_block_of_the_pages_has_a_language_that_runs():
    for page in PAGES:
        fences = re.findall(r"^```(\w*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
        assert set(fences[::2]) == {"bash"} and set(fences[1::2]) == {""}, page


def test_panels_and_images_that_the_pages_name_exist():
    boards = {}
    for path in (ROOT / "helm" / "quire" / "files" / "dashboards").glob("*.json"):
        board = json.loads(path.read_text())
        boards[board["title"].removeprefix("quire / ")] = {panel["title"] for panel in board["panels"]}
    rows = re.findall(r"^\| [^|]*\? \| (.*) \|$", (ROOT / "docs" / "docker.md").read_text(), re.MULTILINE)
    named = [(part.split(":")[0].strip(), panel) for row in rows for part in row.split(";") for panel in re.findall(r"\*([^*]+)\*", part) if ":" in part]
    assert len(named) > 10
    for board, panel in named:
        assert panel in boards[board], f"{board}: {panel}"
