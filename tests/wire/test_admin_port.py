"""The admin port answers whatever the main one does, and is the only one that takes orders."""

import concurrent.futures
import fcntl
import http.client
import json
import re
import socket
import subprocess
import time

from conftest import BINARY, PATIENCE_S, Answer

TELLING = ("/live", "/ready", "/startup", "/health", "/metrics", "/version")
ADMIN_URL = re.compile(r"probes, metrics and orders: http://127\.0\.0\.1:(\d+)")
PIPE_BYTES = 4096


def ask(port, method, path, body=None, seconds=PATIENCE_S):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_both_ports_tell_and_each_takes_its_own_orders(start_server, tmp_path):
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


def test_it_answers_while_the_main_io_thread_stands_still():
    """Nobody takes the log away: a thread that writes a line of it stands still once the pipe is full."""
    process = subprocess.Popen([BINARY, "serve", "--port", "0", "--admin-port", "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        port = admin = None
        for line in process.stdout:
            port = port or next(iter(re.findall(r"ready in .*: http://127\.0\.0\.1:(\d+)", line)), None)
            if found := ADMIN_URL.search(line):
                admin = int(found[1])
                break

        def stands_still(_):
            try:
                ask(int(port), "GET", "/" + "x" * 150, seconds=2)
                return False
            except (socket.timeout, TimeoutError):
                return True

        assert any(stands_still(i) for i in range(PIPE_BYTES)), "the main port went on"
        for path in TELLING:
            assert ask(admin, "GET", path).status == 200, path
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert {answer.status for answer in pool.map(lambda _: ask(admin, "GET", "/metrics"), range(64))} == {200}
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def test_the_settings_of_the_admin_port_are_said_when_they_are_wrong(server):
    for flags, said in ((["--admin-port", "65536"], "0..65535"), (["--admin-port", "0", "--admin-host", "nowhere"], "--admin-host"),
                        (["--admin-port", str(server.port)], "--admin-port")):
        done = subprocess.run([BINARY, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and said in done.stderr, (flags, done.stderr)
