"""Everything invalid is answered with a status, an OpenAI error object and the name of the field; nothing ends the server."""

import json
import socket

import openai
import pytest

from conftest import idle

REFUSED = [
    ({}, "prompt"),
    ({"prompt": None}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [[]]}, "prompt"),
    ({"prompt": 5}, "prompt"),
    ({"prompt": ["a", 1]}, "prompt"),
    ({"prompt": [1, "a"]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [4096]}, "prompt"),
    ({"prompt": [10**30]}, None),
    ({"prompt": ["a"] * 129}, "prompt"),
    ({"prompt": ["a"] * 100000}, "prompt"),
    ({"prompt": [1] * 512}, "prompt"),
    ({"prompt": "word " * 600}, "prompt"),
    ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
    ({"prompt": "a", "max_tokens": -1}, "max_tokens"),
    ({"prompt": "a", "max_tokens": 512}, "max_tokens"),
    ({"prompt": "a", "max_tokens": 10**9}, "max_tokens"),
    ({"prompt": "a", "max_tokens": "16"}, "max_tokens"),
    ({"prompt": "a", "max_tokens": 1.5}, "max_tokens"),
    ({"prompt": "a", "temperature": -0.1}, "temperature"),
    ({"prompt": "a", "temperature": 2.1}, "temperature"),
    ({"prompt": "a", "temperature": "hot"}, "temperature"),
    ({"prompt": "a", "temperature": True}, "temperature"),
    ({"prompt": "a", "top_p": 0}, "top_p"),
    ({"prompt": "a", "top_p": 1.1}, "top_p"),
    ({"prompt": "a", "min_p": -0.1}, "min_p"),
    ({"prompt": "a", "min_p": 1.1}, "min_p"),
    ({"prompt": "a", "top_k": -2}, "top_k"),
    ({"prompt": "a", "top_k": 1.5}, "top_k"),
    ({"prompt": "a", "seed": "x"}, "seed"),
    ({"prompt": "a", "seed": 2**64}, None),
    ({"prompt": "a", "stop": ""}, "stop"),
    ({"prompt": "a", "stop": [1]}, "stop"),
    ({"prompt": "a", "stop": ["x"] * 17}, "stop"),
    ({"prompt": "a", "stop": "x" * 513}, "stop"),
    ({"prompt": "a", "stream": "yes"}, "stream"),
    ({"prompt": "a", "stream_options": {"include_usage": True}}, "stream_options"),
    ({"prompt": "a", "ignore_eos": 1}, "ignore_eos"),
    ({"prompt": "a", "user": 5}, "user"),
    ({"prompt": "a", "user": "x" * 300}, "user"),
    ({"prompt": "a", "n": 0}, "n"),
    ({"prompt": "a", "n": 10**9}, "n"),
    ({"prompt": "a", "n": "2"}, "n"),
    ({"prompt": ["a"] * 65, "n": 2}, "n"),
    ({"prompt": "a", "n": 2, "best_of": 1}, "best_of"),
    ({"prompt": "a", "best_of": 10**9}, "best_of"),
    ({"prompt": "a", "use_beam_search": 1}, "use_beam_search"),
    ({"prompt": "a", "length_penalty": 2}, "length_penalty"),
    ({"prompt": "a", "cache_salt": ""}, "cache_salt"),
    ({"prompt": "a", "priority": "high"}, "priority"),
    ({"prompt": "a", "deadline_ms": 0}, "deadline_ms"),
    ({"prompt": "a", "kv_policy": {"type": "sink_window", "sinks": 16, "window": 100}}, "kv_policy.window"),
    ({"prompt": "a", "echo": "yes"}, "echo"),
    ({"prompt": "a", "logprobs": 21}, "logprobs"),
    ({"prompt": "a", "logprobs": -1}, "logprobs"),
    ({"prompt": "a", "logprobs": "1"}, "logprobs"),
    ({"prompt": "a", "suffix": "x"}, "suffix"),
    ({"prompt": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
    ({"prompt": "a", "request_id": ""}, "request_id"),
    ({"prompt": "a", "skip_special_tokens": 1}, "skip_special_tokens"),
    ({"prompt": "a", "spaces_between_special_tokens": False}, "spaces_between_special_tokens"),
    ({"prompt": "a", "prompt_logprobs": -1}, "prompt_logprobs"),
    ({"prompt": "a", "prompt_embeds": "AAAA"}, "prompt_embeds"),
    ({"prompt": "a", "response_format": {"type": "xml"}}, "response_format.type"),
    ({"prompt": "a", "guided_choice": []}, "guided_choice"),
    ({"prompt": "a", "logits_processors": ["os.system"]}, "logits_processors"),
    ('{"prompt": "a", "temperature": NaN}', None),
    ('{"prompt": "a", "temperature": Infinity}', None),
    ('{"prompt": "a", "temperature": 1e400}', None),
    ('{"prompt": "a", "prompt": "b"}', "prompt"),
    ('{"prompt": "a"', None),
    ("", None),
    ("null", None),
    ("[]", None),
    ("[" * 100000, None),
    (b'{"prompt": "\xff"}', None),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body,param", REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_invalid_is_named(server, body, param, stream):
    if stream and isinstance(body, dict) and "stream" not in body and "stream_options" not in body:
        body = {**body, "stream": True}
    answer = server.post(body)
    assert answer.status == 400, answer.text[:500]
    assert answer.error["type"] == "invalid_request_error" and answer.error["code"] in (400, "context_length_exceeded")
    assert answer.error["param"] == param
    assert answer.error["message"] and len(answer.text) < 2000
    if param:
        assert param in answer.error["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_unknown_is_passed_over_and_listed(server, stream):
    answer = server.post({"prompt": "a", "max_tokens": 1, "stream": stream, "surprise": 1, "a\r\nX-Evil: b": 2})
    assert answer.status == 200
    assert answer.headers["x-quire-warnings"] == "unknown fields: surprise, a??X-Evil:?b"
    assert "x-evil" not in answer.headers
    assert "x-quire-warnings" not in server.post({"prompt": "a", "max_tokens": 1, "stream": stream}).headers
    many = server.post({"prompt": "a", "max_tokens": 1, **{f"x{i}": i for i in range(5000)}})
    assert many.status == 200 and len(many.headers["x-quire-warnings"]) < 1200


def test_both_numbers_are_named_when_the_model_is_too_small(server):
    answer = server.post({"prompt": [5] * 500, "max_tokens": 13})
    assert answer.error["param"] == "max_tokens"
    for number in ("13", "500", "512"):
        assert number in answer.error["message"]
    assert server.post({"prompt": [5] * 500, "max_tokens": 12}).status == 200


def test_a_model_that_is_not_served_is_not_found(server):
    with pytest.raises(openai.NotFoundError) as caught:
        server.client().completions.create(model="gpt-4", prompt="a")
    assert "model_not_found" in str(caught.value)


@pytest.mark.parametrize("method,path,status,allow", [
    ("GET", "/v1/completions", 405, "POST"),
    ("DELETE", "/v1/completions", 405, "POST"),
    ("POST", "/live", 405, "GET, HEAD"),
    ("GET", "/nowhere", 404, None),
    ("GET", "/v1/chat/completions", 405, "POST"),
    ("GET", "/v1/chat/completions/render", 405, "POST"),
    ("POST", "/v1/chat", 404, None),
])
def test_paths_and_methods(server, method, path, status, allow):
    answer = server.request(method, path, b"{}" if method == "POST" else None)
    assert answer.status == status and answer.headers.get("allow") == allow
    assert answer.error["code"] == status


def test_only_plain_json_is_read(server):
    assert server.post({"prompt": "a", "max_tokens": 1}, {"Content-Type": "text/plain"}).status == 415
    assert server.post({"prompt": "a", "max_tokens": 1}, {"Content-Encoding": "gzip"}).status == 415


def test_a_body_past_the_limit_is_413(server):
    assert server.post('{"prompt": "' + "x" * (9 << 20) + '"}').status == 413


INNER = b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("request_bytes", [
    POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + INNER,
    POST + b"Transfer-Encoding: identity\r\n\r\n" + INNER,
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" + INNER,
    POST + b"Content-Length: 0\r\nContent-Length: 36\r\n\r\n" + INNER,
    POST + b"Transfer-Encoding: chunked\r\n\r\n0;a=\"\n\"\r\n\r\n" + INNER,
    POST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n" + INNER,
    b"GET /live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + INNER,
    b"GET /live HTTP/1.1\nHost: a\n\n" + INNER,
], ids=lambda value: value[:100].decode("latin-1").split("\r\n", 2)[-1][:40])
def test_nothing_is_smuggled(server, request_bytes):
    with server.socket() as raw:
        raw.sendall(request_bytes)
        raw.shutdown(socket.SHUT_WR)
        received = b""
        while part := raw.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"\r\nDate: ") == 1, received


def test_errors_leave_nothing_behind(server):
    server.wait_until(idle, "an idle engine")
    assert server.post({"prompt": "Once", "max_tokens": 4, "temperature": 0}).status == 200
