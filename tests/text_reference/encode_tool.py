"""Talks to encode_tool, the C++ side of the comparison (its head comment has the protocol)."""

import array
import os
import pathlib
import struct
import subprocess


def tool_path():
    return pathlib.Path(os.environ["QUIRE_BUILD_DIR"]) / "encode_tool"


def ask(tokenizer_json, requests):
    """requests: [(kind, payload)], kind one of 'eEdDsSt', payload text, bytes or ids. The answers, decoded by kind."""
    stream = b"".join(_framed(kind, payload) for kind, payload in requests)
    done = subprocess.run([tool_path(), tokenizer_json], input=stream, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    answers, at = [], 0
    for kind, _ in requests:
        (size,) = struct.unpack_from("<I", done.stdout, at)
        body = done.stdout[at + 4 : at + 4 + size]
        at += 4 + size
        answers.append(_decoded(kind, body))
    return answers


def _framed(kind, payload):
    if isinstance(payload, str):
        payload = payload.encode()
    elif not isinstance(payload, bytes):
        payload = array.array("i", payload).tobytes()
    return kind.encode() + struct.pack("<I", len(payload)) + payload


def _decoded(kind, body):
    if kind in "eE":
        return array.array("i", body).tolist()
    if kind == "t":
        return struct.unpack("<d", body)[0]
    return body.decode()
