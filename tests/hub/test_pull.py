"""Downloads of models by name: the right files, once, whole, from a hub that may fail in every way that it can."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest
from conftest import BUILD
from fake_hub import FakeHub, Repo, blob_of

NAME = "org/tiny-model"
CONFIG = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()


def noise(seed, length):
    return random.Random(seed).randbytes(length)


def one_file():
    return {"config.json": CONFIG, "tokenizer.json": noise(1, 30_000), "tokenizer_config.json": b"{}", "model.safetensors": noise(2, 700_000),
            "README.md": b"# read me", "pytorch_model.bin": noise(3, 20_000), "original/consolidated.00.pth": noise(4, 20_000), ".gitattributes": b""}


def sharded(shards=3):
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    files = {name: noise(i, 100_000 + i) for i, name in enumerate(names)}
    index = {"metadata": {"total_size": 1}, "weight_map": {f"layer.{i}.weight": names[i % shards] for i in range(7)}}
    return {**files, "model.safetensors.index.json": json.dumps(index).encode(), "config.json": CONFIG, "tokenizer.json": b"{}",
            "consolidated.safetensors": noise(9, 50_000), "model-00009-of-00009.safetensors": noise(10, 50_000)}


WANTED = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


def test_what_is_read_is_downloaded_and_nothing_else(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        status, snapshot, said = cache.pull(NAME)
        commit = hub.repos[NAME].refs["main"]
        assert status == 0, said
        assert snapshot == cache.folder(NAME) / "snapshots" / commit
        assert cache.files_of(NAME, commit) == {path: data for path, data in one_file().items() if path in WANTED}
        assert cache.ref(NAME) == commit
        cache.expect_sound(NAME)
        assert {blob_of(one_file()[path]) for path in WANTED} == {path.name for path in (cache.folder(NAME) / "blobs").iterdir()}
        absent = cache.folder(NAME) / ".no_exist" / commit
        assert (absent / "chat_template.jinja").exists() and (absent / "additional_chat_templates/tool_use.jinja").exists()
        assert not (absent / "config.json").exists()


def test_shards_are_those_of_the_index(make_cache):
    with FakeHub({NAME: Repo(sharded())}, page=2) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        got = cache.files_of(NAME, cache.ref(NAME))
        assert set(got) == {"config.json", "tokenizer.json", "model.safetensors.index.json", *(f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3))}
        assert all(sharded()[path] == data for path, data in got.items())


@pytest.mark.parametrize("head", ["medusa_lm_head.safetensors", "hydra_lm_head.safetensors", "model.safetensors"])
def test_draft_heads_have_names_of_their_own(make_cache, head):
    with FakeHub({NAME: Repo({"config.json": b"{}", head: noise(1, 20_000)})}) as hub:
        cache = make_cache(hub)
        assert cache.pull(NAME)[0] == 0
        assert set(cache.files_of(NAME, cache.ref(NAME))) == {"config.json", head}


GGUF = {"x-Q4_K_M.gguf": noise(1, 20_000), "x-Q8_0.gguf": noise(2, 20_000), "mmproj-Q8_0.gguf": noise(3, 20_000), "x-IQ4_XS.gguf": b"1",
        "BF16/x-BF16-00001-of-00002.gguf": noise(4, 30_000), "BF16/x-BF16-00002-of-00002.gguf": noise(5, 30_000), "imatrix.gguf": b"2", "README.md": b""}


@pytest.mark.parametrize("quant, files", [("Q4_K_M", ["x-Q4_K_M.gguf"]), ("q8_0", ["x-Q8_0.gguf"]),
                                          ("BF16", ["BF16/x-BF16-00001-of-00002.gguf", "BF16/x-BF16-00002-of-00002.gguf"])])
def test_a_quantisation_names_its_gguf_files(make_cache, quant, files):
    with FakeHub({NAME: Repo(GGUF)}) as hub:
        cache = make_cache(hub)
        status, first, said = cache.pull(f"{NAME}:{quant}")
        assert status == 0, said
        assert first == cache.folder(NAME) / "snapshots" / cache.ref(NAME) / files[0]
        assert cache.files_of(NAME, cache.ref(NAME)) == {path: GGUF[path] for path in files}


def test_a_second_pull_asks_for_the_list_alone(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        cache.pull(NAME)
        hub.requests.clear()
        assert cache.pull(NAME)[0] == 0
        assert hub.file_requests() == [] and len(hub.requests) == 2


def test_a_new_commit_downloads_what_changed_and_keeps_the_old_revision(make_cache):
    repo = Repo(one_file())
    with FakeHub({NAME: repo}) as hub:
        cache = make_cache(hub)
        cache.pull(NAME)
        old = cache.ref(NAME)
        new_files = {**one_file(), "tokenizer.json": noise(77, 40_000)}
        new = repo.commit(new_files)
        hub.requests.clear()
        assert cache.pull(NAME)[0] == 0
        assert {entry[2].rsplit("/", 1)[1] for entry in hub.file_requests()} == {"tokenizer.json"}
        assert cache.ref(NAME) == new != old
        assert cache.files_of(NAME, old)["tokenizer.json"] == one_file()["tokenizer.json"]
        assert cache.files_of(NAME, new)["tokenizer.json"] == new_files["tokenizer.json"]
        cache.expect_sound(NAME)


def test_branches_tags_and_commits_are_revisions(make_cache):
    repo = Repo(one_file())
    branch = repo.commit({**one_file(), "tokenizer.json": b"[1]"}, "refs/pr/3")
    tag = repo.commit({**one_file(), "tokenizer.json": b"[2]"}, "v1.0")
    with FakeHub({NAME: repo}) as hub:
        cache = make_cache(hub)
        for revision, commit in (("refs/pr/3", branch), ("v1.0", tag)):
            assert cache.pull(f"{NAME}@{revision}")[0] == 0
            assert cache.ref(NAME, revision) == commit
        main = repo.refs["main"]
        assert cache.pull(f"{NAME}@{main}")[0] == 0
        assert cache.ref(NAME) is None  # a commit is no branch
        assert set(cache.files_of(NAME, main)) == WANTED


# ---- refusals: each with its next step

@pytest.mark.parametrize("repo, token, expected", [
    (None, None, "is not on http"), (None, "hf_x", "the token of HF_TOKEN may not read it"),
    (Repo(one_file(), private=True), None, "set HF_TOKEN"),
    (Repo(one_file(), gated=True), None, "is gated: accept its terms at"), (Repo(one_file(), gated=True), "hf_wrong", "ask for access at"),
    (Repo(one_file(), disabled=True), None, "was disabled"),
    (Repo({"config.json": CONFIG, "pytorch_model.bin": b"1"}), None, "its weights are pickles (pytorch_model.bin)"),
    (Repo(GGUF), None, "it has GGUF files (BF16/x-BF16-00001-of-00002.gguf, "),
    (Repo({"adapter_config.json": b"{}", "adapter_model.safetensors": b"1"}), None, "it is an adapter"),
    (Repo({"model.safetensors": b"1"}), None, "has no config.json"),
    (Repo({"README.md": b"1"}), None, "has no safetensors: it has README.md"),
])
def test_what_cannot_be_had_is_said_with_the_next_step(make_cache, repo, token, expected):
    with FakeHub({NAME: repo} if repo else {}, token="hf_right") as hub:
        cache = make_cache(hub)
        cache.more = {"HF_TOKEN": token} if token else {}
        status, _, said = cache.pull(NAME)
        assert status == 2 and expected in said, said
        assert cache.ref(NAME) is None


def test_a_missing_revision_or_quantisation_is_named(make_cache):
    with FakeHub({NAME: Repo(GGUF)}) as hub:
        cache = make_cache(hub)
        assert f"{NAME} has no revision 'v9'" in cache.pull(f"{NAME}@v9")[2]
        assert "has no GGUF file of Q5_0: it has BF16/x-BF16-00001-of-00002.gguf" in cache.pull(f"{NAME}:Q5_0")[2]


def test_the_right_token_opens_a_gated_repository_and_never_leaves_for_another_host(make_cache):
    with FakeHub({NAME: Repo(one_file(), gated=True)}, token="hf_right") as hub:
        cache = make_cache(hub)
        cache.more = {"HF_TOKEN": "hf_right"}
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        hosts = {host for _, host, _, _ in hub.requests}
        assert hosts == {f"127.0.0.1:{hub.port}", f"localhost:{hub.port}"}  # redirects were followed
        for _, host, path, headers in hub.requests:
            assert ("authorization" in headers) == host.startswith("127.0.0.1"), (host, path)


def test_the_token_of_a_file_is_used_where_no_variable_has_one(make_cache, tmp_path):
    with FakeHub({NAME: Repo(one_file(), gated=True)}, token="hf_right") as hub:
        cache = make_cache(hub)
        cache.more = {"HF_HOME": str(tmp_path / "home")}
        (tmp_path / "home").mkdir()
        (tmp_path / "home/token").write_text("hf_right\n")
        assert cache.pull(NAME)[0] == 0
        (tmp_path / "home/token").write_text("two words")
        status, _, said = cache.pull(NAME)
        assert status == 2 and "home/token holds no token" in said


def test_settings_that_are_refused_cost_no_weights(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME, "--refuse", "no such family")
        assert status == 2 and said == "no such family\n"
        assert hub.file_requests("model.safetensors") == [] and cache.ref(NAME) is None


# ---- names of files

HOSTILE = ["../config.json", "a/../../config.json", "/etc/passwd", "a\\b.json", "a//b.json", "./config.json", "a/./b", "a\nb", "x" * 300]


def test_files_whose_names_leave_their_directory_are_not_there(make_cache, tmp_path):
    with FakeHub({NAME: Repo({**one_file(), **{path: b"{}" for path in HOSTILE}})}) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        assert set(cache.files_of(NAME, cache.ref(NAME))) == WANTED
        assert {path.name for path in tmp_path.iterdir()} == {"hub"}
    index = {"weight_map": {"a": "../../x.safetensors"}}
    with FakeHub({NAME: Repo({**sharded(), "model.safetensors.index.json": json.dumps(index).encode(), "../../x.safetensors": b"1"})}) as hub:
        status, _, said = make_cache(hub, "other").pull(NAME)
        assert status == 2 and "does not name the safetensors" in said


@pytest.mark.parametrize("name", ["org", "org/", "/name", "org/na me", "../name", "org/..", "org/a--b", "org/name.git", "org/-x", "a/b/c", "org/name@", "org/name@a..b",
                                  "org/name@/x", "org/name:", "org/name:a/b", "org/name@a@b", "o" * 90 + "/nnnnnnn"])
def test_names_that_are_none_are_refused_without_a_request(make_cache, name):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        status, _, said = make_cache(hub).pull(name)
        assert status == 2 and "expected" in said
        assert hub.requests == []


def test_shards_outside_the_repository_are_refused(make_cache):
    for bad in ("../x.safetensors", "model-00007-of-00007.safetensors", "pytorch_model.bin", "modeling.py"):
        files = sharded()
        files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": bad}}).encode()
        with FakeHub({NAME: Repo(files)}) as hub:
            status, _, said = make_cache(hub, "other" + str(len(bad))).pull(NAME)
            assert status == 2 and "model.safetensors.index.json" in said
            assert not {path.rsplit("/", 1)[1] for _, _, path, _ in hub.file_requests()} & {"pytorch_model.bin", "modeling.py"}


# ---- faults

PASSING = ["cut", "close", "reset", "garbage", "500", "502", "503", "504", "429", "408", "no_ranges", "wrong_range", "flip", "longer", "shorter", "chunked"]


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_leaves_the_right_files(make_cache, fault):
    times = 1 if fault == "flip" else 2  # a file that arrives whole and wrong twice is given up
    left = {"file": times, "cdn": times, "api": times}

    def once(kind, _path, _headers):
        if left[kind] == 0:
            return None
        left[kind] -= 1
        return fault

    with FakeHub({NAME: Repo(one_file())}, once) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME, "--workers", 1)
        assert status == 0, said
        assert cache.files_of(NAME, cache.ref(NAME)) == {path: one_file()[path] for path in WANTED}
        cache.expect_sound(NAME)


@pytest.mark.parametrize("fault, expected", [
    ("500", "fails (HTTP 500): try again later"), ("429", "takes no more requests for now (429)"), ("flip", "has another hash than"),
    ("longer", "sent more than"), ("shorter", "the answer ended after"), ("close", "the connection to"), ("redirect_loop", "redirects more than 10 times"),
    ("redirect_to_ftp", "only https is followed"), ("400", "answered HTTP 400")])
def test_a_fault_that_stays_is_said_and_leaves_no_reference(make_cache, fault, expected):
    with FakeHub({NAME: Repo(one_file())}, lambda kind, *_: None if kind == "api" else fault) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME)
        assert status == 2 and expected in said, said
        assert cache.ref(NAME) is None
        cache.expect_sound(NAME)


def test_two_hundred_drawn_faults_leave_the_cache_right_or_without_the_revision(make_cache, tmp_path):
    """Each seed: files, faults on any request, and whether they ever end. What a reader can find is always right."""
    outcomes = {0: 0, 2: 0}
    for seed in range(200):
        draw = random.Random(seed)
        sizes = [0, 1, 9_999, 10_000, 10_001, 65_536, 200_000]
        files = {"config.json": CONFIG, "tokenizer.json": noise(seed, draw.choice(sizes)), "generation_config.json": noise(seed + 1, draw.choice(sizes[:3]))}
        if draw.random() < 0.5:
            files["model.safetensors"] = noise(seed + 2, draw.choice(sizes))
        else:
            shards = {f"model-0000{i}-of-00003.safetensors": noise(seed + 3 + i, draw.choice(sizes)) for i in (1, 2, 3)}
            files |= shards | {"model.safetensors.index.json": json.dumps({"weight_map": {name: name for name in shards}}).encode()}
        share, lasting = draw.choice([0.05, 0.3, 0.6, 0.95]), draw.choice([3, 30, 10_000])
        count = iter(range(10**9))

        def faults(_kind, _path, _headers):
            return draw.choice(PASSING) if next(count) < lasting and draw.random() < share else None

        with FakeHub({NAME: Repo(files)}, faults) as hub:
            cache = make_cache(hub, f"seed{seed}")
            status, _, said = cache.pull(NAME, "--delay-us", 10, "--attempts", draw.choice([1, 3, 6]), "--workers", draw.choice([1, 2, 8]))
            outcomes[status] += 1
            commit = hub.repos[NAME].refs["main"]
            cache.expect_sound(NAME)
            if status == 0:
                assert cache.ref(NAME) == commit and cache.files_of(NAME, commit) == files, seed
            else:
                assert cache.ref(NAME) is None, (seed, said)
                assert all(files[path] == data for path, data in cache.files_of(NAME, commit).items()), seed
            hub.faults = lambda *_: None
            status, _, said = cache.pull(NAME)
            assert status == 0, (seed, said)
            assert cache.files_of(NAME, commit) == files and cache.ref(NAME) == commit, seed
            assert not list((cache.folder(NAME) / "blobs").glob("*.incomplete")), seed
            cache.expect_sound(NAME)
    assert outcomes[0] > 50 and outcomes[2] > 50, outcomes


def test_a_server_without_ranges_that_breaks_off_is_given_up(make_cache):
    """The same bytes again and again are no progress."""
    def faults(kind, *_):
        return None if kind == "api" else "cut"

    with FakeHub({NAME: Repo(one_file())}, faults) as hub:
        send_file = hub.send_file
        hub.send_file = lambda handler, data, headers, fault: (handler.headers.__delitem__("Range"), send_file(handler, data, headers, fault))
        status, _, said = make_cache(hub).pull(NAME, "--attempts", 4, "--workers", 1)
        assert status == 2 and "the answer ended after" in said or "broke" in said
        assert len(hub.file_requests("config.json")) <= 5  # the first one, and as many as may bring nothing new


@pytest.mark.parametrize("size, expected", [(2**64 - 1, "files of more than 1024 TiB"), (2**51, "files of more than 1024 TiB"), (2**47, "more on the disk of"),
                                            (2**63 + 100, "files of more than 1024 TiB")])
def test_sizes_that_cannot_be_are_refused_before_weights(make_cache, size, expected):
    def alter(entries):
        for entry in entries:
            if entry["path"].startswith("model-"):
                entry["lfs"]["size"] = size

    with FakeHub({NAME: Repo(sharded())}) as hub:
        hub.alter = alter
        status, _, said = make_cache(hub).pull(NAME)
        assert status == 2 and expected in said
        assert not any("model-0" in path for _, _, path, _ in hub.file_requests())


def test_settings_are_small(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        hub.alter = lambda entries: next(entry for entry in entries if entry["path"] == "config.json").update(size=2**29)
        status, _, said = make_cache(hub).pull(NAME)
        assert status == 2 and "config.json has 512.0 MiB; at most 256.0 MiB are read" in said
        assert hub.file_requests() == []


def test_an_empty_file_with_the_hash_of_another_is_given_up(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        hub.alter = lambda entries: next(entry for entry in entries if entry["path"] == "tokenizer_config.json").update(size=0)
        status, _, said = make_cache(hub).pull(NAME)
        assert status == 2 and "another hash" in said


def test_pages_without_end_and_errors_without_end_are_left(make_cache):
    class Endless(FakeHub):
        def send_tree(self, handler, name, files, commit, cursor, fault):
            self.send_json(handler, [], {"Link": f'<{self.url}/api/models/{name}/tree/{commit}?cursor={cursor + 1}>; rel="next"'}, fault)

    with Endless({NAME: Repo(one_file())}) as hub:
        status, _, said = make_cache(hub).pull(NAME)
        assert status == 2 and "the next page of its list" in said

    class Talker(FakeHub):
        def refuse(self, handler, status, code, message, headers=()):
            handler.send_response(404), handler.send_header("Transfer-Encoding", "chunked"), handler.send_header("X-Error-Code", code), handler.end_headers()
            while True:
                handler.wfile.write(b"5\r\nhello\r\n")

    with Talker({}) as hub:
        status, _, said = make_cache(hub, "other").pull(NAME)
        assert status == 2 and "is not on http" in said


def test_a_commit_is_the_one_that_was_asked_for(make_cache):
    repo = Repo(one_file())
    wrong = repo.commit({**one_file(), "tokenizer.json": b"{}"}, "other")
    asked = "1234567890" * 4
    repo.commit_of = lambda revision: wrong if revision in (asked, wrong) else None
    with FakeHub({NAME: repo}) as hub:
        status, _, said = make_cache(hub).pull(f"{NAME}@{asked}")
        assert status == 2 and "another commit than the one that was asked for" in said


def test_a_pull_meanwhile_of_a_removal_ends_with_the_whole_model(make_cache):
    """rm waits for the lock of a blob; a pull links another blob of the same snapshot before rm goes on."""
    import filelock

    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        cache.pull(NAME)
        blobs = sorted(path.name for path in (cache.folder(NAME) / "blobs").iterdir())
        with filelock.FileLock(cache.root / ".locks/models--org--tiny-model" / f"{blobs[0]}.lock"):
            removal = subprocess.Popen([BUILD / "quire", "rm", NAME, "--yes"], env=cache.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while cache.ref(NAME):
                time.sleep(0.01)
            time.sleep(0.1)
            pull = cache.start(NAME)
            time.sleep(0.5)
        ends = removal.wait(30), pull.wait(30)
        pull.communicate()
        assert ends == (0, 0)
        cache.expect_sound(NAME)
        assert cache.files_of(NAME, cache.ref(NAME)) == {path: one_file()[path] for path in WANTED}


# ---- resuming

def wait_for_part(cache, bytes_there, process):
    for _ in range(2000):
        if cache.has_part_of(NAME, bytes_there):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError("nothing arrived")


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_download_goes_on_where_it_ended(make_cache, way):
    files = {**one_file(), "model.safetensors": noise(5, 3_000_000)}
    with FakeHub({NAME: Repo(files)}) as hub:
        hub.slow_s = 0.03
        cache = make_cache(hub)
        process = cache.start(NAME)
        wait_for_part(cache, 500_000, process)
        process.send_signal(way)
        assert process.wait(30) == (-signal.SIGKILL if way == signal.SIGKILL else 3)
        process.communicate()
        assert cache.ref(NAME) is None
        cache.expect_sound(NAME)
        there = max(path.stat().st_size for path in cache.folder(NAME).glob("blobs/*.incomplete"))
        hub.slow_s = 0
        hub.resumed.clear()
        assert cache.pull(NAME)[0] == 0
        assert [first for path, first in hub.resumed if path.startswith("/cdn/")] == [there]
        assert cache.files_of(NAME, cache.ref(NAME))["model.safetensors"] == files["model.safetensors"]


def test_bytes_of_an_earlier_try_that_are_wrong_are_fetched_anew(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        blobs = cache.folder(NAME) / "blobs"
        blobs.mkdir(parents=True)
        for length in (100_000, 700_000, 900_000):  # a part, as long as the whole, longer
            part = blobs / (blob_of(one_file()["model.safetensors"]) + ".incomplete")
            part.write_bytes(noise(123, length))
            assert cache.pull(NAME)[0] == 0
            assert cache.files_of(NAME, cache.ref(NAME))["model.safetensors"] == one_file()["model.safetensors"]
            (blobs / blob_of(one_file()["model.safetensors"])).unlink()


def test_two_processes_pull_at_once_and_each_byte_comes_once(make_cache):
    files = {**sharded(4), "tokenizer.json": noise(8, 100_000)}
    with FakeHub({NAME: Repo(files)}) as hub:
        hub.slow_s = 0.02
        cache = make_cache(hub)
        processes = [cache.start(NAME, "--workers", workers) for workers in (4, 4, 1)]
        ends = [process.communicate(timeout=60) + (process.returncode,) for process in processes]
        assert [end[2] for end in ends] == [0, 0, 0], ends
        assert len({end[0] for end in ends}) == 1
        cache.expect_sound(NAME)
        assert all(files[path] == data for path, data in cache.files_of(NAME, cache.ref(NAME)).items())
        for path, count in hub.sent.items():
            if path.startswith("/cdn/"):
                assert count == len(hub.content(path.removeprefix("/cdn/"))), path


def test_a_server_that_says_nothing_is_left_after_the_silence(make_cache):
    with FakeHub({NAME: Repo(one_file())}, lambda *_: "hang") as hub:
        began = time.monotonic()
        status, _, said = make_cache(hub).pull(NAME, "--silence", 1, "--attempts", 2)
        assert status == 2 and "sent nothing for 1 s" in said
        assert time.monotonic() - began < 20


def test_no_server_is_said_with_what_may_help(make_cache):
    with FakeHub({}) as hub:
        cache = make_cache(hub)
    status, _, said = cache.pull(NAME, "--attempts", 2)
    assert status == 2 and "does not answer" in said and "HTTPS_PROXY" in said
    cache.more = {"HF_ENDPOINT": "https://hub.invalid"}
    status, _, said = cache.pull(NAME, "--attempts", 1)
    assert status == 2 and "hub.invalid cannot be found" in said


def test_a_cache_that_cannot_be_written_is_named(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        cache.root.mkdir()
        (cache.root / "models--org--tiny-model").write_text("a file")
        status, _, said = cache.pull(NAME)
        assert status == 2 and str(cache.root) in said and "--download-dir" in said


# ---- transport

def test_plain_http_is_for_this_machine_alone(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        for endpoint in ("http://example.com", "http://10.0.0.1:80", "ftp://localhost", "localhost:80", "http://user@localhost"):
            cache.more = {"HF_ENDPOINT": endpoint}
            status, _, said = cache.pull(NAME)
            assert status == 2 and "HF_ENDPOINT" in said, endpoint
        assert hub.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    os.system(f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,DNS:hub.test,IP:127.0.0.1 "
              f"-keyout {folder}/key.pem -out {folder}/cert.pem 2> {folder}/log")
    return folder / "cert.pem", folder / "key.pem"


def test_certificates_are_verified(make_cache, certificate):
    with FakeHub({NAME: Repo(one_file())}, certificate=certificate) as hub:
        cache = make_cache(hub)
        status, _, said = cache.pull(NAME)
        assert status == 2 and "is not trusted" in said and "SSL_CERT_FILE" in said
        assert hub.requests == []
        cache.more = {"SSL_CERT_FILE": str(certificate[0])}
        status, _, said = cache.pull(NAME)
        assert status == 0, said


def test_https_is_never_left_for_http(make_cache, certificate):
    with FakeHub({NAME: Repo(one_file())}) as plain, FakeHub({NAME: Repo(one_file())}, certificate=certificate) as hub:
        hub.scheme, secure_port = "http", hub.port  # what it redirects to
        hub.url = f"https://127.0.0.1:{secure_port}"
        hub.port, hub.cdn_host = plain.port, "example.com"
        cache = make_cache(hub)
        cache.more = {"SSL_CERT_FILE": str(certificate[0])}
        status, _, said = cache.pull(NAME)
        assert status == 2 and "only https is followed" in said, said
        assert plain.requests == []


class Proxy:
    """A proxy on loopback for plain requests and for tunnels; everything that it could read of a request is in `seen`."""

    def __init__(self):
        self.seen = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client:
            self.pass_on(client)

    def pass_on(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = client.recv(4096)
            if not piece:
                return
            head += piece
        self.seen.append(head.decode())
        method, target = head.decode().split(" ")[:2]
        place = target if method == "CONNECT" else urllib.parse.urlsplit(target).netloc
        host, port = place.rsplit(":", 1)
        upstream = socket.create_connection(("127.0.0.1" if host == "hub.test" else host, int(port)))
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            upstream.sendall(head.replace(target.encode(), urllib.parse.urlsplit(target).path.encode(), 1).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        there = threading.Thread(target=self.copy, args=(client, upstream), daemon=True)
        there.start()
        self.copy(upstream, client)

    @staticmethod
    def copy(source, to):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                to.sendall(piece)
            to.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_proxies_are_those_of_the_environment_and_a_tunnel_shows_them_no_token(make_cache, certificate):
    with Proxy() as proxy, FakeHub({NAME: Repo(one_file(), gated=True)}, certificate=certificate, token="hf_right") as hub:
        hub.cdn_host = "hub.test"  # names that only the proxy knows
        cache = make_cache(hub)
        cache.more = {"SSL_CERT_FILE": str(certificate[0]), "HF_TOKEN": "hf_right", "HTTPS_PROXY": proxy.url, "HF_ENDPOINT": f"https://hub.test:{hub.port}"}
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        assert proxy.seen and all(head.startswith("CONNECT hub.test:") and "hf_right" not in head for head in proxy.seen)
        proxy.seen.clear()
        cache.more |= {"NO_PROXY": "hub.test"}
        assert cache.pull(NAME, "--attempts", 1)[0] == 2 and proxy.seen == []
    cache.more = {"SSL_CERT_FILE": str(certificate[0]), "HTTPS_PROXY": proxy.url, "HF_ENDPOINT": "https://hub.invalid"}  # the proxy is gone
    status, _, said = cache.pull(NAME, "--attempts", 1)
    assert status == 2 and "HTTPS_PROXY" in said


def test_what_is_asked_of_this_machine_goes_through_no_proxy(make_cache):
    """Plain HTTP would show a proxy the token."""
    with Proxy() as proxy, FakeHub({NAME: Repo(one_file(), gated=True)}, token="hf_right") as hub:
        cache = make_cache(hub)
        cache.more = {"http_proxy": proxy.url, "ALL_PROXY": proxy.url, "HF_TOKEN": "hf_right"}
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        assert proxy.seen == []


# ---- disks

def on_a_disk_of(size, folder):
    """The beginning of a command that mounts an empty file system there, for itself alone; none where that is not allowed."""
    mount = ["unshare", "--mount", "--map-root-user", "sh", "-c", f'mount -t tmpfs -o size={size} x "$0" && exec "$@"', folder]
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system of its own")
    return mount


def test_room_on_the_disk_is_asked_for_before_weights(make_cache, tmp_path):
    files = {**one_file(), "model.safetensors": noise(5, 3_000_000)}
    with FakeHub({NAME: Repo(files)}) as hub:
        cache = make_cache(hub)
        cache.root.mkdir()
        done = subprocess.run([*on_a_disk_of("16m", cache.root), BUILD / "pull_tool", NAME], env=cache.environment, capture_output=True, text=True)
        assert done.returncode == 2
        assert re.search(r"needs 66\.9 MiB more on the disk of .*, which has 1[56]\.\d MiB left: free some, or choose another directory with --download-dir", done.stderr)
        assert hub.file_requests("model.safetensors") == []


def test_a_disk_that_fills_up_meanwhile_is_said_and_what_arrived_is_kept(make_cache):
    """Another program takes the room that there was."""
    files = {**one_file(), "model.safetensors": noise(5, 9_000_000)}
    with FakeHub({NAME: Repo(files)}) as hub:
        cache = make_cache(hub)
        cache.root.mkdir()
        hub.faults = lambda _, path, *__: time.sleep(1.5) if path.endswith("model.safetensors") else None
        script = 'cd "$1"; ("$2" "$3"; echo status $?; ls -l models--org--tiny-model/blobs models--org--tiny-model/refs) 2>&1 & sleep 0.5; head -c 90m /dev/zero > filler; wait'
        done = subprocess.run([*on_a_disk_of("96m", cache.root), "sh", "-c", script, "sh", cache.root, BUILD / "pull_tool", NAME], env=cache.environment,
                              capture_output=True, text=True, timeout=60)
        assert "status 2" in done.stdout and "No space left on device; free some space and start again: what has arrived is kept" in done.stdout
        assert ".incomplete" in done.stdout and "refs'" in done.stdout


# ---- other programs' caches

def hf(cache, code, **more):
    """Runs Python with huggingface_hub on the same cache."""
    done = subprocess.run([sys.executable, "-c", "import huggingface_hub as hf\n" + code], env={**cache.environment, "HF_HUB_DISABLE_XET": "1", **more},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_huggingface_hub_reads_what_was_pulled_without_the_network(make_cache):
    with FakeHub({NAME: Repo(sharded())}) as hub:
        cache = make_cache(hub)
        snapshot = cache.pull(NAME)[1]
    assert hf(cache, f"print(hf.snapshot_download('{NAME}'))", HF_HUB_OFFLINE="1") == str(snapshot)
    assert hf(cache, f"print(hf.hf_hub_download('{NAME}', 'config.json'))", HF_HUB_OFFLINE="1") == str(snapshot / "config.json")
    assert hf(cache, f"print(hf.try_to_load_from_cache('{NAME}', 'chat_template.jinja') is hf._CACHED_NO_EXIST)") == "True"
    scanned = "i = hf.scan_cache_dir(); r, = i.repos; v, = r.revisions; print(r.repo_id, v.commit_hash, sorted(v.refs), len(v.files), len(i.warnings))"
    assert hf(cache, scanned) == f"{NAME} {cache.ref(NAME)} ['main'] 6 0"


def test_what_huggingface_hub_downloaded_is_not_fetched_again(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        theirs = hf(cache, f"print(hf.snapshot_download('{NAME}'))")
        hub.requests.clear()
        status, ours, said = cache.pull(NAME)
        assert status == 0, said
        assert str(ours) == theirs and hub.file_requests() == []


def test_huggingface_hub_goes_on_with_what_was_pulled(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        snapshot = cache.pull(NAME)[1]
        hub.requests.clear()
        assert hf(cache, f"print(hf.snapshot_download('{NAME}'))") == str(snapshot)
        fetched = {path.rsplit("/", 1)[1] for method, _, path, _ in hub.file_requests() if method == "GET"}
        assert not fetched & WANTED and "README.md" in fetched
        assert cache.files_of(NAME, cache.ref(NAME)) == one_file()


def test_both_programs_download_one_model_at_once(make_cache):
    files = {**sharded(4), "tokenizer.json": noise(8, 100_000)}
    with FakeHub({NAME: Repo(files)}) as hub:
        hub.slow_s = 0.03
        cache = make_cache(hub)
        theirs = subprocess.Popen([sys.executable, "-c", f"import huggingface_hub as hf; hf.snapshot_download('{NAME}')"],
                                  env={**cache.environment, "HF_HUB_DISABLE_XET": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(1000):  # until it downloads
            if hub.file_requests():
                break
            time.sleep(0.01)
        status, _, said = cache.pull(NAME)
        assert status == 0, said
        assert theirs.wait(60) == 0, theirs.stderr.read()
        theirs.stderr.close()
        cache.expect_sound(NAME)
        assert cache.files_of(NAME, cache.ref(NAME)) == files


def test_blobs_in_a_store_shared_by_repositories_are_followed(make_cache):
    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        cache.pull(NAME)
        blob = cache.folder(NAME) / "blobs" / blob_of(one_file()["model.safetensors"])
        store = cache.root / "blobs" / "ab"
        store.mkdir(parents=True)
        blob.rename(store / "abcdef")
        blob.symlink_to(os.path.relpath(store / "abcdef", blob.parent))
        hub.requests.clear()
        assert cache.pull(NAME)[0] == 0
        assert hub.file_requests() == []
        assert cache.files_of(NAME, cache.ref(NAME))["model.safetensors"] == one_file()["model.safetensors"]


def test_a_lock_of_another_program_is_waited_for(make_cache):
    import filelock

    with FakeHub({NAME: Repo(one_file())}) as hub:
        cache = make_cache(hub)
        blob = blob_of(one_file()["model.safetensors"])
        folder = cache.root / ".locks" / "models--org--tiny-model"
        folder.mkdir(parents=True)
        with filelock.FileLock(folder / f"{blob}.lock"):
            process = cache.start(NAME)
            time.sleep(1)
            assert process.poll() is None and hub.file_requests("model.safetensors") == []
        assert process.wait(30) == 0
        process.communicate()
        cache.expect_sound(NAME)
