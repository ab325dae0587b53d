"""A server on a unix socket: the same answers, and a file that comes and goes with it."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

import httpx2
import pytest

from conftest import BINARY, PACED, PATIENCE_S, choices_of

ADMIN_URL = re.compile(r"probes, metrics and /admin: http://127\.0\.0\.1:(\d+)")
JOB = {"prompt": "Once upon a time", "max_tokens": 30, "seed": 5}


class Listening:
    """`quire serve --uds PATH --admin-port 0`, ready."""

    def __init__(self, path, *args):
        self.path = path
        self.process = subprocess.Popen([BINARY, "serve", "--uds", path, "--admin-port", "0", *args],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = next((line for line in self.process.stdout if line.startswith("ready in")), None)
        assert said and said.strip().endswith(f": unix:{path}"), said
        self.admin = int(ADMIN_URL.search(self.process.stdout.readline())[1])

    def client(self):
        return httpx2.Client(transport=httpx2.HTTPTransport(uds=str(self.path)), base_url="http://localhost", timeout=PATIENCE_S)

    def metric(self, pattern):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=PATIENCE_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(rf"^{pattern} (\S+)$", text, re.MULTILINE)[1])

    def wait_running(self, count):
        end = time.monotonic() + PATIENCE_S
        while self.metric(r"vllm:num_requests_running\S*") != count:
            assert time.monotonic() < end, f"never {count} running"
            time.sleep(0.01)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


@pytest.fixture
def start_listening(tmp_path):
    started = []

    def start(*args):
        started.append(Listening(tmp_path / "quire.sock", "--max-num-seqs", "4", *args))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def listening(start_listening):
    return start_listening()


def test_answers_are_those_of_tcp(listening, server):
    assert stat.S_IMODE(os.stat(listening.path).st_mode) == 0o660
    expected = server.text(**JOB)
    with listening.client() as client:
        assert client.get("/health").status_code == 200
        assert client.post("/v1/completions", json=JOB).json()["choices"][0]["text"] == expected
        with client.stream("POST", "/v1/completions", json={**JOB, "stream": True}) as response:
            events = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    choices, _ = choices_of(events)
    assert choices[0][0] == expected
    assert listening.stop() == 0
    assert not listening.path.exists(), "the file goes with the server"


def test_a_client_that_leaves_takes_its_sequence_with_it(start_listening):
    listening = start_listening(*PACED)
    text = json.dumps({"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True}).encode()
    for _ in range(3):
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(listening.path))
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        listening.wait_running(1)
        raw.close()
        listening.wait_running(0)
    assert listening.metric(r'vllm:request_success_total\{\S*finished_reason="abort"\S*\}') == 3
    assert listening.stop() == 0


def test_one_that_listens_keeps_its_file_and_one_that_was_killed_gives_it_up(listening):
    second = subprocess.run([BINARY, "serve", "--uds", listening.path], capture_output=True, text=True, timeout=PATIENCE_S)
    assert second.returncode == 2 and "a process listens there" in second.stderr
    listening.stop(signal.SIGKILL)
    assert listening.path.exists()
    third = Listening(listening.path)
    with third.client() as client:
        assert client.get("/health").status_code == 200
    assert third.stop() == 0
