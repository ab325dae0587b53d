"""`quire doctor`: its facts against what Python reads of the same machine."""

import json
import os
import re
import resource
import shutil
import socket

import pytest
from test_cli import ENVIRONMENT, ROOT, quire

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
WITHOUT_PROXIES = {name: "" for one in PROXIES for name in (one, one.upper())}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def doctor(*args, env=None):
    done = quire("doctor", "--json", *map(str, args), env=WITHOUT_PROXIES | (env or {}))
    assert done.returncode in (0, 1), done.stderr
    seen = json.loads(done.stdout)
    assert (done.returncode == 1) == (seen["verdict"] == "wrong") == any(one["verdict"] == "wrong" for one in seen["checks"])
    return {one["name"]: one for one in seen["checks"]}


@pytest.fixture(scope="module")
def seen():
    return doctor("--port", free_port())


def meminfo(key):
    with open("/proc/meminfo") as file:
        found = re.search(rf"^{key}:\s+(\d+) kB", file.read(), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def test_it_covers_what_decides_speed(seen):
    assert list(seen)[:10] == ["cpu", "load", "kernels", "numa", "memory", "bandwidth", "huge pages", "swap", "gpu", "open files"]
    assert {"port 8000", "model cache", "proxies"} <= set(seen) and "model" not in seen


def test_cpus_are_those_that_python_may_use(seen):
    facts = seen["cpu"]["facts"]
    assert facts["affinity"] == len(os.sched_getaffinity(0))
    assert facts["threads"] == min(facts["affinity"], facts["quota"] or facts["affinity"])
    assert doctor("--threads", 1)["cpu"]["facts"]["threads"] == 1


def test_cpus_follow_the_affinity_of_the_process():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        check = doctor()["cpu"]
    finally:
        os.sched_setaffinity(0, before)
    assert check["facts"]["affinity"] == check["facts"]["threads"] == 1 and check["verdict"] == "slow"


def test_instruction_sets_are_flags_of_the_cpu_and_the_kernels_need_them(seen):
    with open("/proc/cpuinfo") as file:
        flags = re.search(r"^flags\s*: (.*)$", file.read(), re.MULTILINE).group(1).split()
    facts = seen["kernels"]["facts"]
    assert set(facts["instruction_sets"]) <= set(flags)
    for known in ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16"):
        assert (known in facts["instruction_sets"]) == (known in flags), known
    assert facts["taken"] == facts["supported"][-1]
    assert ("avx2" in facts["supported"]) == ({"avx2", "fma", "f16c"} <= set(flags))
    slower = doctor("--isa", "scalar")["kernels"]
    assert slower["verdict"] == ("slow" if len(facts["supported"]) > 1 else "ok")


def test_memory_is_that_of_the_kernel(seen):
    facts = seen["memory"]["facts"]
    assert facts["total_bytes"] == meminfo("MemTotal")
    assert facts["available_bytes"] == pytest.approx(meminfo("MemAvailable"), rel=0.25)
    assert seen["swap"]["facts"]["total_bytes"] == meminfo("SwapTotal")


def test_bandwidth_is_that_of_a_memory(seen):
    assert 1e8 < seen["bandwidth"]["facts"]["read_bytes_per_s"] < 1e13


def test_open_files_are_those_of_the_process(seen):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert seen["open files"]["facts"]["soft_limit"] == soft and seen["open files"]["facts"]["hard_limit"] == hard
    wanted = doctor("--max-connections", 1000)["open files"]["facts"]["wanted"]
    assert 1000 < wanted < 2000


def test_a_busy_port_is_wrong_and_named_with_its_process():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        busy = doctor("--port", port)[f"port {port}"]
        assert busy["verdict"] == "wrong" and f"(pid {os.getpid()})" in busy["facts"]["holder"], busy
        assert busy["facts"]["free"] is False and "--port" in busy["advice"]
    free = doctor("--port", port)[f"port {port}"]
    assert free["verdict"] == "ok" and free["facts"]["free"] is True


def test_port_8000_matters_only_if_it_is_to_be_served_on(seen):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", 8000))
            one.listen()
            held = True
        except OSError:
            held = False  # by somebody else, and so busy as well
        assert doctor("--port", free_port())["port 8000"]["verdict"] == "ok"
        assert doctor()["port 8000"]["verdict"] == "wrong", held


def test_the_model_cache_is_where_downloads_go(tmp_path):
    place = tmp_path / "not" / "there" / "yet"
    facts = doctor("--download-dir", place)["model cache"]["facts"]
    assert facts["path"] == str(place) and facts["writable"] is True
    assert facts["free_bytes"] == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.25)


def test_a_proxy_is_shown_without_its_password_and_must_leave_this_machine_out():
    proxy = {"http_proxy": "http://somebody:secret@proxy.example:3128"}
    wrong = doctor(env=proxy)["proxies"]
    assert wrong["verdict"] == "wrong" and "NO_PROXY" in wrong["advice"]
    assert wrong["facts"]["variables"] == {"http_proxy": "http://proxy.example:3128"}
    assert doctor(env=proxy | {"NO_PROXY": "127.0.0.1"})["proxies"]["verdict"] == "ok"
    assert "secret" not in quire("doctor", env=WITHOUT_PROXIES | proxy).stdout


def test_a_model_is_weighed_against_this_machine(tmp_path):
    check = doctor(ROOT / "models" / "stories")["model"]
    assert check["verdict"] == "ok" and check["facts"]["tokens_per_s"] > 0
    inspected = json.loads(quire("inspect", "--json", str(ROOT / "models" / "stories")).stdout)
    assert check["facts"]["weight_bytes"] == inspected["packed_bytes"]
    missing = doctor(tmp_path)["model"]
    assert missing["verdict"] == "wrong" and missing["advice"]


def test_text_has_a_line_for_each_check_and_ends_with_the_count(seen):
    done = quire("doctor", env=WITHOUT_PROXIES | {"QUIRE_PORT": str(free_port())})
    lines = done.stdout.splitlines()
    names = [match.group(2) for line in lines if (match := re.match(r"(ok|slow|wrong) +(.+?)  ", line))]
    assert [name for name in names if not name.startswith("port ")] == [name for name in seen if not name.startswith("port ")]
    counts = {word: sum(line.startswith(word + " ") for line in lines) for word in ("ok", "slow", "wrong")}
    assert lines[-1] == f"{counts['ok']} ok, {counts['slow']} slow, {counts['wrong']} wrong"
    assert done.returncode == (1 if counts["wrong"] else 0)
    assert ENVIRONMENT.get("QUIRE_PORT") is None
