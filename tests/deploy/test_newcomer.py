"""Somebody who has a bare Debian 12 and types what README and docs/start.md say: from a clone to the answers of a model, timed."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from containers import INSTALL_CCACHE, compiler_cache, debian, shell
from deploy_tools import ROOT

sys.path.insert(0, str(ROOT / "tests" / "real_model"))
import smollm2  # noqa: E402

pytestmark = pytest.mark.heavy

PATIENCE_S = 1800
MODEL = "/models/SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTION = "What is the capital of France?"


class Newcomer:
    """A shell in a Debian tree that has nothing but apt; it shares this machine's network."""

    def __init__(self, home):
        self.tree = home / "debian"
        self.tree.mkdir()
        shell("tar", "-C", self.tree, "-xf", debian())
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.tree / "etc" / name)
        (self.tree / "models").mkdir()
        shutil.copy(smollm2.gguf_file(), self.tree / MODEL[1:])
        (self.tree / "var/cache/ccache").mkdir()
        shell("git", "clone", "-q", "--no-hardlinks", f"file://{ROOT}", self.tree / "srv" / "quire")
        self.times, self.answers = {}, {}

    def words(self, command):
        mounts = f"mount -t proc proc {self.tree}/proc && mount --rbind /dev {self.tree}/dev"
        if (self.tree / "var/cache/ccache").exists():
            mounts += f" && mount --bind {compiler_cache()} {self.tree}/var/cache/ccache"
        inside = f"cd /srv/quire && exec env -i HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euo pipefail -c {shlex.quote(command)}"
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec",
                f"{mounts} && exec chroot {self.tree} bash -c {shlex.quote(inside)}"]

    def type(self, step, command):
        """Standard output of a command, which has to succeed."""
        began = time.monotonic()
        done = subprocess.run(self.words(command), capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        self.took(step, began)
        return done.stdout

    def took(self, step, began):
        self.times[step] = time.monotonic() - began
        print(f"{self.times[step]:7.1f} s  {step}")

    def serve(self, step, command):
        began = time.monotonic()
        server = subprocess.Popen(self.words(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        said = []
        for line in server.stdout:
            said.append(line)
            if line.startswith("ready in"):
                said.append(next(server.stdout))
                self.took(step, began)
                return server, "".join(said)
        raise AssertionError("".join(said))


def stop(server):
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    one = Newcomer(tmp_path_factory.mktemp("newcomer"))
    one.type("git, which a clone needs, and ccache, for the tests", f"{INSTALL_CCACHE} && apt-get -qy install --no-install-recommends git")
    text = (ROOT / "docs" / "start.md").read_text()
    assert "bash deploy/quickstart.sh --build-only" in text
    said = one.type("from a clone to a program: bash deploy/quickstart.sh --build-only", "bash deploy/quickstart.sh --build-only")
    assert "[3/3] built: build/release/quire" in said
    yield one
    shutil.rmtree(one.tree, ignore_errors=True)


def answer_of(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.loads(reply.read())


def test_the_quickstart_serves_and_prints_a_request_that_works(newcomer):
    port = free_port()
    command = f"bash deploy/quickstart.sh --model {MODEL} --port {port}"
    assert "bash deploy/quickstart.sh" in (ROOT / "README.md").read_text()
    server, said = newcomer.serve("from the program to a server: bash deploy/quickstart.sh --model FILE", command)
    try:
        began = time.monotonic()
        curl = re.search(r"^  (curl .*/v1/chat/completions .*)$", said, re.M)[1]
        done = subprocess.run(["bash", "-c", curl.replace("curl ", "curl --fail --silent ", 1)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (curl, done.stdout, done.stderr)
        assert json.loads(done.stdout)["choices"][0]["message"]["content"].strip()
        newcomer.took("the request that the start prints", began)
        answer = answer_of(f"http://127.0.0.1:{port}/v1/chat/completions",
                           {"model": json.loads(done.stdout)["model"], "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 32, "temperature": 0})
        newcomer.answers["the server"] = answer["choices"][0]["message"]["content"]
    finally:
        stop(server)


def test_the_terminal_gives_the_same_answer(newcomer):
    newcomer.answers["chat"] = newcomer.type("quire chat", f"echo '{QUESTION}' | build/release/quire chat {MODEL} --set temperature=0 --set max_tokens=32")
    newcomer.answers["generate"] = newcomer.type("quire generate", f"build/release/quire generate {MODEL} '{QUESTION}' --temperature 0 --max-tokens 32")
    assert len({text.strip() for text in newcomer.answers.values()}) == 1 and len(newcomer.answers) == 3, newcomer.answers
    assert newcomer.answers["chat"].strip()
    assert "SmolLM2" in newcomer.type("quire inspect", f"build/release/quire inspect {MODEL}")


def test_the_program_runs_where_only_the_packages_of_the_run_section_are(newcomer, tmp_path):
    """A machine without compilers, as docs/deploy.md has it: the binary and the packages that it needs to run."""
    bare = tmp_path / "bare"
    bare.mkdir()
    shell("tar", "-C", bare, "-xf", debian())
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", bare / "etc" / name)
    shutil.copytree(ROOT / "deploy", bare / "srv" / "quire" / "deploy")
    (bare / "srv" / "quire" / "build" / "release").mkdir(parents=True)
    shutil.copy(newcomer.tree / "srv/quire/build/release/quire", bare / "srv/quire/build/release/quire")
    there = Newcomer.__new__(Newcomer)
    there.tree, there.times = bare, {}
    there.type("packages to run it", "bash deploy/install_packages.sh run")
    missing = there.type("libraries", "ldd build/release/quire")
    assert "not found" not in missing
    assert there.type("an answer", "build/release/quire generate --prompt 'Once upon a time' --max-tokens 8").strip()
    shutil.rmtree(bare, ignore_errors=True)


def test_the_version_names_the_clone(newcomer):
    commit = shell("git", "-C", newcomer.tree / "srv/quire", "rev-parse", "--short=8", "HEAD")
    assert commit in newcomer.type("quire --version", "build/release/quire --version")
    assert pathlib.Path(newcomer.tree / "srv/quire/build/release/quire").stat().st_size > 0
