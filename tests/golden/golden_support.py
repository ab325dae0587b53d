"""What the golden tests share: where the built programs are, and running logits_tool.

The programs come from QUIRE_BUILD_DIR (default: build/release of this checkout); tests skip, saying why, where one is absent.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))


def program(name):
    for path in (BUILD / name, BUILD / "tests" / name):
        if path.is_file():
            return path
    pytest.skip(f"no {name} in {BUILD}: build it, or set QUIRE_BUILD_DIR")


def supported_isas():
    flags = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    isas = ["scalar"]
    if " avx2 " in flags:
        isas.append("avx2")
    if " avx512f " in flags and " avx512bw " in flags and " avx512vl " in flags:
        isas.append("avx512")
        if " avx512_vnni " in flags:
            isas.append("avx512vnni")
    return isas


class Run:
    """Logits [T, V] of the prompt, its greedy continuation, rope frequencies and numeric mode, as logits_tool gives them."""

    def __init__(self, model, prompt, vocab, tmp_path, **options):
        tokens, logits = tmp_path / "tokens.bin", tmp_path / "logits.bin"
        np.asarray(prompt, dtype=np.int32).tofile(tokens)
        command = [program("logits_tool"), model, "--tokens", tokens, "--logits", logits]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        self.mode, self.greedy = answer["mode"], answer["greedy"]
        self.frequencies = np.asarray(answer["frequencies"], dtype=np.float32)
        self.attention_factor = np.float32(answer["attention_factor"])
        self.logits = np.fromfile(logits, dtype=np.float32).reshape(len(prompt), vocab)
