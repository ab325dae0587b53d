"""quire's grammar_tool, asked whether texts match patterns."""

import os
import pathlib
import struct
import subprocess

BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))


def packed(text):
    return struct.pack("<I", len(text)) + text


def ours(cases, seed):
    """For every (what, pattern, texts): a string of y, n and d, one for each text, or ('e', why)."""
    path = BUILD / "grammar_tool"
    assert path.exists(), f"{path} is not built; QUIRE_BUILD_DIR says where to look"
    requests = b""
    for what, pattern, texts in cases:
        requests += what.encode() + packed(pattern.encode()) + struct.pack("<I", len(texts))
        requests += b"".join(packed(text.encode()) for text in texts)
    done = subprocess.run([path, str(seed)], input=requests, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stderr.decode()
    answers, at = [], 0
    for _, _, texts in cases:
        kind, at = done.stdout[at : at + 1], at + 1
        if kind == b"e":
            (size,) = struct.unpack_from("<I", done.stdout, at)
            answers.append(("e", done.stdout[at + 4 : at + 4 + size].decode()))
            at += 4 + size
        else:
            answers.append(done.stdout[at : at + len(texts)].decode())
            at += len(texts)
    assert at == len(done.stdout)
    return answers
