"""Real servers in the states that probes tell apart: one that waits for its model, one that is ready, one that drains."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time

from deploy_tools import BINARY, on_a_free_port

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("QUIRE_", "HF_"))}
PATIENCE_S = 120


def answer_of(port, path, body=None, method=None):
    """(status, text)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, text, {"Content-Type": "application/json"} if text else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def status_of(port, path):
    return answer_of(port, path)[0]


@contextlib.contextmanager
def started(*words, is_up, **variables):
    """(process, port) of a server once is_up(port)."""

    def start(port):
        return subprocess.Popen([BINARY, "serve", *words, "--port", str(port), "--threads", "1"], env=PLAIN | variables, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    process, port = on_a_free_port(start, is_up, lambda: "the server does not start")
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def downloading(folder):
    """The port of a server whose model never arrives: the hub accepts connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as hub:
        where = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.getsockname()[1]}", "HF_HUB_CACHE": str(folder), "HOME": str(folder)}
        with started("acme/held", is_up=lambda port: status_of(port, "/live") == 200, **where) as (_, port):
            yield port


@contextlib.contextmanager
def ready(*words):
    with started(*words, is_up=lambda port: status_of(port, "/ready") == 200) as server:
        yield server


@contextlib.contextmanager
def draining(process, port):
    """Tells a server to stop while a stream keeps it from ending."""
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    body = {"prompt": "Once upon a time", "n": 32, "max_tokens": 400, "ignore_eos": True, "stream": True}
    stream.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    stream.getresponse().readline()
    process.send_signal(signal.SIGTERM)
    end = time.monotonic() + PATIENCE_S
    while status_of(port, "/ready") != 503:
        assert time.monotonic() < end
        time.sleep(0.01)
    try:
        yield
    finally:
        stream.close()
