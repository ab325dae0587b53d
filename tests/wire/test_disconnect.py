"""A client that goes away takes its sequences with it, in every state."""

import json
import re
import socket
import struct

import pytest

from conftest import PACED, aborted, busy, idle

LONG = {"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True}


def send(server, body):
    text = json.dumps(body).encode()
    raw = server.socket()
    raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    return raw


def leave(raw, reset):
    if reset:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def freed_within_a_step(server):
    """How many sequences had their blocks back after one step at most since their clients had left; all had."""
    found = dict(re.findall(r'^quire:disconnect_to_free_steps_bucket\{.*le="([^"]+)"\} (\S+)$', server.get("/metrics").text, re.MULTILINE))
    assert found["1.0"] == found["+Inf"], found
    return float(found["1.0"])


@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_running_requests_end_with_their_clients(start_server, stream, reset):
    server = start_server("--max-num-seqs", 4, *PACED)
    clients = [send(server, {**LONG, "stream": stream}) for _ in range(8)]
    server.wait_until(lambda m: m["vllm:num_requests_running"] == m["vllm:num_requests_waiting"] == 4, "all eight in the engine")
    for raw in clients:
        leave(raw, reset)
    metrics = server.wait_until(lambda m: idle(m) and m["quire:client_disconnects_total"] == 8, "an idle engine and eight clients that left")
    assert aborted(metrics) == 8, "they ran to their ends instead"
    assert metrics["vllm:generation_tokens_total"] < 4 * 500
    assert freed_within_a_step(server) == 8


def test_a_list_of_prompts_ends_with_its_client(start_server):
    server = start_server("--max-num-seqs", 4, *PACED)
    raw = send(server, {**LONG, "prompt": ["Once upon a time"] * 16})
    server.wait_until(lambda m: m["vllm:num_requests_running"] == 4 and m["vllm:num_requests_waiting"] == 12, "work")
    raw.close()
    metrics = server.wait_until(lambda m: idle(m) and m["quire:client_disconnects_total"] == 1, "an idle engine and one client that left")
    assert aborted(metrics) == 16
    assert freed_within_a_step(server) == 16


def test_a_half_closed_client_gets_its_answer(server):
    for stream in (False, True):
        with send(server, {**LONG, "max_tokens": 100, "stream": stream}) as raw:
            raw.shutdown(socket.SHUT_WR)
            received = b""
            while part := raw.recv(65536):
                received += part
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'"finish_reason":"length"' in received
        assert received.count(b"HTTP/1.1") == 1


def test_an_idle_server_holds_no_blocks(server):
    assert not any(busy(server.wait_until(idle, "an idle engine")).values())
