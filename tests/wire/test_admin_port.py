"""The admin port answers whatever the main one does, and is the only one that takes orders."""

import concurrent.futures
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest
from conftest import BINARY, PATIENCE_S, Answer

TELLING = ("/live", "/ready", "/startup", "/health", "/metrics", "/version")
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_DETACH = 16, 17  # <sys/ptrace.h>
WALL = 0x40000000  # <sys/wait.h>: threads, too


def ask(port, method, path, body=None, seconds=PATIENCE_S):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_both_ports_report_the_state_and_each_takes_its_own_orders(start_server, tmp_path):
    server = start_server("--admin-port", 0, "--cache-dir", tmp_path)
    admin = server.metrics_port
    for path in TELLING:
        assert server.get(path).status == 200, path
        assert ask(admin, "GET", path).status == 200, path
    save = json.dumps({"path": "a.kv"})
    refused = server.request("POST", "/admin/cache/save", save, {"Content-Type": "application/json"})
    assert refused.status == 404 and "admin port" in refused.error["message"]
    assert ask(admin, "POST", "/admin/cache/save", save).status == 200
    assert (tmp_path / "a.kv").exists()
    assert ask(admin, "POST", "/v1/completions", '{"prompt": "a"}').status == 404
    assert server.stop() == 0


def test_it_answers_while_the_main_port_is_full(start_server):
    server = start_server("--admin-port", 0, "--max-connections", 4, "--max-num-seqs", 2)
    admin = server.metrics_port
    held = [server.socket() for _ in range(8)]
    end = time.monotonic() + PATIENCE_S
    while server.get("/live").status != 503:
        assert time.monotonic() < end, "the main port never was full"
    for path in TELLING:
        assert ask(admin, "GET", path).status == 200, path
    for raw in held:
        raw.close()
    assert server.stop() == 0


@contextlib.contextmanager
def threads_stopped(pid, name):
    """Its threads of that name stand still, as a debugger would have them."""
    tasks = [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() if (task / "comm").read_text().strip() == name]
    assert tasks, f"no thread is called {name}"
    stopped = []
    try:
        for task in tasks:
            if LIBC.ptrace(PTRACE_ATTACH, task, 0, 0) != 0:
                pytest.skip(f"this machine lets nobody stop a thread: {os.strerror(ctypes.get_errno())}")
            stopped.append(task)
            os.waitpid(task, WALL)
        yield
    finally:
        for task in stopped:
            LIBC.ptrace(PTRACE_DETACH, task, 0, 0)


def test_it_answers_while_the_main_io_threads_stand_still(start_server):
    server = start_server("--admin-port", 0)
    admin = server.metrics_port
    with threads_stopped(server.process.pid, "quire-io"):
        with pytest.raises((socket.timeout, TimeoutError)):
            ask(server.port, "GET", "/live", seconds=2)
        for path in TELLING:
            assert ask(admin, "GET", path).status == 200, path
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert {answer.status for answer in pool.map(lambda _: ask(admin, "GET", "/metrics"), range(64))} == {200}
    assert ask(server.port, "GET", "/live").status == 200
    assert server.stop() == 0


def test_the_settings_of_the_admin_port_are_named_when_they_are_wrong(server):
    for flags, said in ((["--admin-port", "65536"], "0..65535"), (["--admin-port", "0", "--admin-host", "nowhere"], "--admin-host"),
                        (["--admin-port", str(server.port)], "--admin-port")):
        done = subprocess.run([BINARY, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and said in done.stderr, (flags, done.stderr)
