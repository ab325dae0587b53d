"""quire pull, list, rm, and every command that takes a model by its name."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import BUILD, ROOT
from fake_hub import FakeHub, Repo

STORIES = {path.name: path.read_bytes() for path in (ROOT / "models/stories").iterdir() if path.is_file()}
HEAD = {path.name: path.read_bytes() for path in (ROOT / "models/stories_draft").iterdir() if path.is_file()}
ODD = {**STORIES, "config.json": b'{"model_type": "odd", "architectures": ["OddForCausalLM"]}'}
NAME = "acme/stories"
PROMPT = ("generate", "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "12")


@pytest.fixture
def hub():
    with FakeHub({NAME: Repo(STORIES), "acme/head": Repo(HEAD), "acme/odd": Repo(ODD)}) as one:
        yield one


@pytest.fixture
def cache(make_cache, hub):
    return make_cache(hub)


def test_pull_prints_the_directory_and_only_that(cache):
    done = cache.quire("pull", NAME)
    assert (done.returncode, done.stdout) == (0, f"{cache.folder(NAME)}/snapshots/{cache.ref(NAME)}\n")
    assert "info download model=acme/stories percent=100" in done.stderr


def test_pull_of_what_is_here_already_asks_nobody(cache, hub):
    assert cache.quire("pull", ROOT / "models/stories").stdout == f"{ROOT / 'models/stories'}\n"
    assert "inside the binary" in cache.quire("pull").stdout
    assert hub.requests == []


def test_a_name_gives_the_text_of_its_directory(cache, hub):
    by_path = cache.quire(*PROMPT, "--model", ROOT / "models/stories").stdout
    assert cache.quire(*PROMPT, "--model", NAME).stdout == by_path
    hub.requests.clear()
    assert cache.quire(*PROMPT, "--model", NAME).stdout == by_path
    assert hub.requests == []  # what is there is used at once


def test_the_commands_that_read_a_model_take_names(cache, tmp_path):
    assert cache.quire("inspect", NAME).stdout.startswith("acme/stories: LlamaForCausalLM")
    assert "acme/stories" in cache.quire("serve", NAME, "--plan").stdout
    (tmp_path / "text").write_text("Once upon a time there was a fox. " * 30)
    done = cache.quire("build-datastore", NAME, "--text", tmp_path / "text", "--output", tmp_path / "store")
    assert done.returncode == 0 and done.stdout.endswith("of acme/stories\n")


def test_a_quantisation_of_a_repository_is_served(cache, hub, tmp_path):
    import gguf_models

    raw = gguf_models.write(tmp_path / "stories.gguf").read_bytes()
    hub.repos["acme/gguf"] = Repo({"stories-BF16.gguf": raw, "stories-Q8_0.gguf": b"GGUF", "README.md": b""})
    by_path = cache.quire(*PROMPT, "--model", ROOT / "models/stories").stdout
    assert cache.quire(*PROMPT, "--model", "acme/gguf:BF16").stdout == by_path
    assert cache.quire("inspect", "acme/gguf:bf16").stdout.startswith("acme/gguf: LlamaForCausalLM")
    done = cache.quire("inspect", "acme/gguf")
    assert done.returncode == 2 and "name one of them, acme/gguf:QUANT" in done.stderr


@pytest.mark.parametrize("way", ["variable", "dead"])
def test_what_was_downloaded_is_served_offline(cache, hub, way):
    cache.quire("pull", NAME)
    cache.more = {"HF_HUB_OFFLINE": "1"} if way == "variable" else {"HF_ENDPOINT": "http://127.0.0.1:9"}
    hub.requests.clear()
    assert cache.quire(*PROMPT, "--model", NAME).returncode == 0
    assert hub.requests == []


def test_offline_a_model_that_is_not_there_is_said(cache):
    cache.more = {"HF_HUB_OFFLINE": "1"}
    for command in ((*PROMPT, "--model", NAME), ("serve", NAME), ("pull", NAME)):
        done = cache.quire(*command)
        assert done.returncode == 2 and "HF_HUB_OFFLINE" in done.stderr


def test_what_another_program_left_without_word_of_the_rest_is_completed_or_used_as_it_is(cache, hub):
    """Only config, weights and tokenizer: the hub is asked once for the rest; without it they are used, and that is said."""
    cache.quire("pull", NAME)
    commit = cache.ref(NAME)
    (cache.folder(NAME) / "snapshots" / commit / "generation_config.json").unlink()
    for path in (cache.folder(NAME) / ".no_exist").rglob("*"):
        if path.is_file():
            path.unlink()
    cache.more = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    done = cache.quire(*PROMPT, "--model", NAME)
    assert done.returncode == 0 and "what is in the cache is used as it is" in done.stderr
    cache.more = {}
    assert cache.quire(*PROMPT, "--model", NAME).returncode == 0
    assert "generation_config.json" in cache.files_of(NAME, commit)
    hub.requests.clear()
    assert cache.quire(*PROMPT, "--model", NAME).returncode == 0 and hub.requests == []


def test_a_start_looks_for_no_newer_revision(cache, hub):
    """Another program downloaded what is needed, and main has moved on since."""
    old = hub.repos[NAME].refs["main"]
    cache.quire("pull", NAME)
    for path in (cache.folder(NAME) / ".no_exist").rglob("*"):
        if path.is_file():
            path.unlink()
    hub.repos[NAME].commit({**STORIES, "generation_config.json": b'{"temperature": 0.1}'})
    assert cache.quire(*PROMPT, "--model", NAME).returncode == 0
    assert cache.ref(NAME) == old
    assert cache.quire("pull", NAME).returncode == 0
    assert cache.ref(NAME) == hub.repos[NAME].refs["main"] != old


def test_the_home_of_the_user_is_used_where_no_variable_names_one(cache):
    cache.quire("pull", NAME)
    plain = {name: value for name, value in cache.environment.items() if name not in ("HOME", "HF_HUB_CACHE")}
    done = subprocess.run([BUILD / "quire", "list"], env=plain, capture_output=True, text=True)
    assert done.returncode == 0 and (".cache/huggingface/hub" in done.stdout or done.stdout.startswith("name"))
    assert not pathlib.Path(".cache/huggingface").exists()


def test_a_family_that_is_not_served_is_said_before_weights(cache, hub):
    for command in (("pull", "acme/odd"), ("serve", "acme/odd", "--port", "0")):
        done = cache.quire(*command)
        assert done.returncode == 2 and "key 'model_type' is \"odd\"" in done.stderr
    assert hub.file_requests("model.safetensors") == [] and cache.ref("acme/odd") is None


def test_a_revision_is_named_by_flag_or_in_the_name_and_never_twice(cache, hub):
    hub.repos[NAME].commit({**STORIES, "generation_config.json": b"{}"}, "v2")
    assert cache.quire("pull", NAME, "--revision", "v2").returncode == 0
    assert cache.ref(NAME, "v2") and not cache.ref(NAME)
    assert cache.quire("inspect", f"{NAME}@v2").returncode == 0
    done = cache.quire("pull", f"{NAME}@v2", "--revision", "main2")
    assert done.returncode == 2 and "name two revisions" in done.stderr
    done = cache.quire("inspect", ROOT / "models/stories", "--revision", "v2")
    assert done.returncode == 2 and "--revision v2 is for a MODEL given by name" in done.stderr


def test_a_directory_of_the_same_name_is_taken_first(cache, hub, tmp_path):
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/stories").symlink_to(ROOT / "models/stories")
    assert cache.quire("inspect", NAME, cwd=tmp_path).stdout.startswith("stories: ")
    assert hub.requests == []


def test_the_download_directory_is_a_setting(cache, tmp_path):
    other = tmp_path / "elsewhere"
    done = cache.quire("pull", NAME, "--download-dir", other)
    assert done.stdout.startswith(f"{other}/models--acme--stories/snapshots/")
    assert cache.quire("list", "--download-dir", other).stdout.splitlines()[1].startswith("acme/stories")
    cache.more = {"QUIRE_DOWNLOAD_DIR": str(other), "HF_HUB_OFFLINE": "1"}
    assert cache.quire("inspect", NAME).returncode == 0


# ---- list and rm

def test_list_says_names_sizes_families_and_what_cannot_be_served(cache, hub):
    assert "no models in" in cache.quire("list").stdout
    cache.quire("pull", NAME)
    cache.quire("pull", "acme/head")
    cache.quire("pull", "acme/odd")
    hub.repos["acme/half"] = Repo(STORIES)
    cache.quire("pull", "acme/half")
    (cache.folder("acme/half") / "snapshots" / cache.ref("acme/half") / "model.safetensors").unlink()
    lines = cache.quire("list").stdout.splitlines()
    assert lines[0].split() == ["name", "revision", "size", "family", "served"]
    assert re.match(r"acme/half +main +\S+ KiB +llama +no: it is not whole yet", lines[1])
    assert re.match(r"acme/head +main +2\.3 MiB +llama +no: it has no tokenizer\.json: a draft head", lines[2])
    assert re.match(r"acme/odd +[0-9a-f]{12} +\S+ KiB +odd +no: config\.json: key 'model_type' is \"odd\"", lines[3])
    assert re.match(r"acme/stories +main +10\.7 MiB +llama +yes$", lines[4])
    assert cache.quire("list", "--names").stdout.split() == ["acme/half", "acme/head", "acme/odd", "acme/stories"]
    rows = {row["name"]: row for row in json.loads(cache.quire("list", "--json").stdout)}
    assert rows[NAME] == {"name": NAME, "revisions": ["main"], "commit": cache.ref(NAME), "bytes": sum(map(len, STORIES.values())), "family": "llama",
                          "can_be_served": True, "why_not": "", "path": str(cache.folder(NAME) / "snapshots" / cache.ref(NAME))}


def test_rm_removes_a_revision_and_only_what_no_other_has(cache, hub):
    cache.quire("pull", NAME)
    old = cache.ref(NAME)
    new = hub.repos[NAME].commit({**STORIES, "generation_config.json": b'{"temperature": 0.5}'})
    cache.quire("pull", NAME)
    assert len(list((cache.folder(NAME) / "blobs").iterdir())) == len(STORIES) + 1
    done = cache.quire("rm", f"{NAME}@{old[:10]}", "--yes")
    assert done.returncode == 0 and f"removed {NAME}@{old[:12]}" in done.stdout
    assert len(list((cache.folder(NAME) / "blobs").iterdir())) == len(STORIES)
    assert cache.ref(NAME) == new and set(cache.files_of(NAME, new)) == set(STORIES)
    assert not (cache.folder(NAME) / "snapshots" / old).exists()
    cache.expect_sound(NAME)
    assert cache.quire("rm", NAME, "-y").returncode == 0
    assert not cache.folder(NAME).exists()
    done = cache.quire("rm", NAME, "-y")
    assert done.returncode == 2 and "`quire list` shows what is" in done.stderr


def test_rm_keeps_what_another_repositorys_snapshot_leads_to(cache):
    cache.quire("pull", NAME)
    blob = os.path.realpath(cache.folder(NAME) / "snapshots" / cache.ref(NAME) / "model.safetensors")
    other = cache.root / "datasets--acme--other/snapshots" / ("b" * 40)
    other.mkdir(parents=True)
    (other / "copy").symlink_to(os.path.relpath(blob, other))
    assert cache.quire("rm", NAME, "--yes").returncode == 0
    assert (other / "copy").read_bytes() == STORIES["model.safetensors"]
    assert len(list((cache.folder(NAME) / "blobs").iterdir())) == 1


def test_rm_asks_first(cache):
    cache.quire("pull", NAME)
    done = cache.quire("rm", NAME, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and f"Remove {NAME}@main, 10.7 MiB, which frees 10.7 MiB? Confirm with --yes" in done.stderr
    for answer, gone in (("n\n", False), ("\n", False), ("y\n", True)):
        leader, follower = pty.openpty()
        process = subprocess.Popen([BUILD / "quire", "rm", NAME], env=cache.environment, stdin=follower, stdout=subprocess.PIPE, text=True)
        os.write(leader, answer.encode())
        said = process.communicate(timeout=60)[0]
        assert "[y/N]" in said and (f"removed {NAME}" in said) == gone
        assert (process.returncode == 0) == gone and cache.folder(NAME).exists() != gone
        os.close(leader), os.close(follower)


def test_rm_names_the_revisions_where_the_name_fits_none(cache, hub):
    hub.repos[NAME].commit({**STORIES, "generation_config.json": b"{}"}, "v1")
    hub.repos[NAME].commit({**STORIES, "generation_config.json": b"{ }"}, "v2")
    cache.quire("pull", f"{NAME}@v1"), cache.quire("pull", f"{NAME}@v2")
    done = cache.quire("rm", NAME, "--yes")
    assert done.returncode == 2 and f"{NAME}@main is not in" in done.stderr and "v1" in done.stderr and "v2" in done.stderr


@pytest.mark.parametrize("program", ["quire", "theirs"])
def test_huggingface_hub_and_rm_agree_on_what_a_revision_holds(cache, program):
    """Both remove what the other downloaded, and leave nothing."""
    import sys

    code = "import huggingface_hub as hf\n"
    if program == "theirs":
        subprocess.run([sys.executable, "-c", f"{code}hf.snapshot_download('{NAME}')"], env={**cache.environment, "HF_HUB_DISABLE_XET": "1"}, check=True, capture_output=True)
        assert cache.quire("rm", NAME, "--yes").returncode == 0
    else:
        cache.quire("pull", NAME)
        delete = f"i = hf.scan_cache_dir(); i.delete_revisions('{cache.ref(NAME)}').execute()"
        subprocess.run([sys.executable, "-c", code + delete], env=cache.environment, check=True, capture_output=True)
    assert not cache.folder(NAME).exists()
    assert "no models in" in cache.quire("list").stdout


# ---- serving

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port, path, **more):
    """(status, JSON)"""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", **more), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Serving:
    def __init__(self, cache, *arguments):
        self.port = free_port()
        self.process = subprocess.Popen([BUILD / "quire", "serve", "--port", str(self.port), *map(str, arguments)], env=cache.environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        for _ in range(2000):  # until the port is open
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.005)
        raise AssertionError("the port does not open")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def until_ready(self):
        for _ in range(2000):
            if ask(self.port, "/health")[0] == 200:
                return
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.03)
        raise AssertionError("never ready")


def test_the_port_answers_while_the_model_is_downloaded_and_serves_it_then(cache, hub):
    hub.slow_s = 0.02
    with Serving(cache, NAME, "--speculative-config", json.dumps({"method": "eagle3", "model": "acme/head"})) as server:
        seen = []
        while not seen or seen[-1][0] == 503:
            seen.append(ask(server.port, "/health"))
            if seen[-1][1].get("status") == "downloading" and len(seen) < 5:
                assert ask(server.port, "/live") == (200, {"status": "alive"})
                status, body = ask(server.port, "/v1/completions", data=b'{"prompt": "x"}', headers={"Content-Type": "application/json"})
                assert status == 503 and body["error"]["message"].startswith("the model is not served yet: downloading, ")
                status, body = ask(server.port, "/v1/messages", data=b"{}")
                assert status == 503 and body["type"] == "error"
            time.sleep(0.05)
        progress = [body["progress"] for status, body in seen if body.get("status") == "downloading" and "progress" in body]
        assert len(progress) > 3 and all(0 <= value <= 1 for value in progress)
        assert any(0.1 < value < 0.9 for value in progress)
        assert {entry["id"] for entry in ask(server.port, "/v1/models")[1]["data"]} == {NAME}
        status, body = ask(server.port, "/v1/completions", data=json.dumps({"model": NAME, "prompt": "Once upon a time", "max_tokens": 8}).encode(),
                           headers={"Content-Type": "application/json"})
        assert status == 200 and body["usage"]["completion_tokens"] == 8
        assert set(cache.files_of("acme/head", cache.ref("acme/head"))) == set(HEAD)


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_download_and_the_next_start_goes_on(cache, hub, way):
    hub.slow_s = 0.02
    with Serving(cache, NAME) as server:
        for _ in range(2000):
            if ask(server.port, "/health")[1].get("progress", 0) > 0.2:
                break
            time.sleep(0.01)
        server.process.send_signal(way)
        assert server.process.wait(20) == 128 + way
        assert "the next start goes on with the download" in server.process.stdout.read()
    hub.slow_s = 0
    hub.resumed.clear()
    with Serving(cache, NAME) as server:
        server.until_ready()
    assert any(first > 1_000_000 for _, first in hub.resumed)


def test_a_signal_ends_pull_with_a_word_on_how_to_go_on(cache, hub):
    hub.slow_s = 0.02
    process = subprocess.Popen([BUILD / "quire", "pull", NAME], env=cache.environment, stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        if cache.has_part_of(NAME, 500_000):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert f"interrupted: quire pull {NAME} goes on where this ended" in process.communicate()[1]


def test_idle_clients_do_not_keep_the_admin_port_from_answering(cache, hub):
    hub.slow_s = 0.05
    admin = free_port()
    with Serving(cache, NAME, "--admin-port", admin) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
        time.sleep(0.2)
        assert ask(admin, "/live") == (200, {"status": "alive"})
        for one in idle:
            one.close()


def test_a_taken_port_is_said_before_anything_is_downloaded(cache, hub):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        done = cache.quire("serve", NAME, "--port", one.getsockname()[1])
    assert done.returncode == 2 and "the port is taken" in done.stderr
    assert hub.requests == []


# ---- what is shown

def on_a_terminal(cache, *arguments):
    """Standard error as a terminal got it."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([BUILD / "quire", *arguments], env=cache.environment, stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    shown = b""
    while True:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        elif process.poll() is not None:
            break
    process.communicate()
    os.close(leader)
    return shown.decode()


def test_a_terminal_shows_each_file_and_the_whole(cache, hub):
    hub.slow_s = 0.02
    shown = on_a_terminal(cache, "pull", NAME)
    assert re.search(r"  model\.safetensors  [\d.]+ MiB of 10\.4 MiB", shown)
    total = r"(\d+) % \[[#.]{18}\]  [\d.]+ [KM]iB of 10\.7 MiB  [\d.]+ [KM]iB/s  (?:\d:\d\d left  )?acme/"
    assert len(set(re.findall(total, shown))) > 3
    assert re.search(r"\d:\d\d left", shown)
    assert len(re.findall(r"  tokenizer\.json  \S+ KiB\r\n", shown)) == 1
    assert "\x1b[" in shown and "info download" not in shown
    width = max(len(re.sub(r"\x1b\[\d*[AJ]", "", line)) for line in shown.split("\r\n"))
    assert width < 80


def test_elsewhere_there_are_lines_without_control_characters(cache, hub):
    done = cache.quire("pull", NAME)
    assert "\x1b" not in done.stderr and done.stderr.count("info download") == 1
    cache.more = {"QUIRE_LOG_FORMAT": "json"}
    cache.quire("rm", NAME, "--yes")
    event = json.loads(cache.quire("pull", NAME).stderr.splitlines()[-1])
    assert event["event"] == "download" and event["percent"] == 100 and event["model"] == NAME


def test_elsewhere_a_long_download_says_every_ten_seconds_where_it_is(cache, hub):
    hub.slow_s = 0.08
    began = time.monotonic()
    done = cache.quire("pull", NAME)
    took = time.monotonic() - began
    percents = [int(found) for found in re.findall(r"info download .*percent=(\d+)", done.stderr)]
    assert 2 <= len(percents) <= 1 + took / 10, (took, done.stderr)
    assert percents == sorted(percents) and percents[0] < 100 and percents[-1] == 100


def test_a_certificate_that_is_renewed_during_the_download_is_served(cache, hub, tmp_path):
    import ssl

    def make(name):
        os.system(f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {tmp_path}/pair.key -out {tmp_path}/pair.crt 2> /dev/null && "
                  f"cat {tmp_path}/pair.crt {tmp_path}/pair.key > {tmp_path}/pair.new && mv {tmp_path}/pair.new {tmp_path}/pair.pem")
        return (tmp_path / "pair.crt").read_text()

    first = make("first")
    hub.slow_s = 0.02
    with Serving(cache, NAME, "--tls-cert", tmp_path / "pair.pem") as server:
        def served():
            return ssl.get_server_certificate(("127.0.0.1", server.port))

        assert served() == first
        second = make("second")
        server.process.send_signal(signal.SIGHUP)
        for _ in range(1000):
            if served() == second:
                break
            assert server.process.poll() is None
            time.sleep(0.05)
        assert served() == second
