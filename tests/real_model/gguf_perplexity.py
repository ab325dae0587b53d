"""Measures what GGUF's block types cost: the table of docs/quantization.md. Not a test.

    python tests/real_model/gguf_perplexity.py --text FILE [--windows 32]

SmolLM2-135M-Instruct as the GGUF file of a package has it, brought into each type by llama.cpp's quantiser, or by
requantised.py. In windows of 512 tokens
the later half is predicted, as llama-perplexity does it; K and V are in f32 for quire, in f16, its own choice, for llama.cpp.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

import llama_cpp  # noqa: E402
import numpy as np  # noqa: E402
import requantised  # noqa: E402
import smollm2  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

KINDS = ["F32", "Q8_0", "Q6_K", "Q5_K_M", "Q5_1", "Q5_0", "Q4_K_M", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "Q3_K_M", "Q2_K"]
WINDOW = 512
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))


def file_of(kind):
    if kind in requantised.KINDS:
        plain = llama_cpp.quantised("F32")
        return requantised.requantised(plain, kind, plain.with_name(f"in-{kind}.gguf"))
    return smollm2.gguf_file() if kind == "Q4_1" else llama_cpp.quantised(kind)


def ours(file, tokens, activations):
    command = [BUILD / "perplexity_tool", file, "--tokens", tokens, "--window", WINDOW, "--early", WINDOW // 2, "--kv", "f32",
               "--activations", activations]  # fmt: skip
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    said = json.loads(done.stdout)
    return math.exp(said["late_loss"]), said["packed_bytes"]


def theirs(file, text, windows, threads):
    command = [llama_cpp.built() / "llama-perplexity", "-m", file, "-f", text, "-c", WINDOW, "-b", WINDOW, "--chunks", windows, "-t", threads]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    found = re.search(r"Final estimate: PPL = ([\d.]+)", done.stdout + done.stderr)
    return float(found[1]) if found else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(smollm2.checkpoint("float32") / "tokenizer.json"))
    ids = tokenizer.encode(args.text.read_text(), add_special_tokens=False).ids[: args.windows * WINDOW]
    assert len(ids) == args.windows * WINDOW, f"the text has {len(ids)} tokens"
    print("| file | its size | packed | times f32 | times int8 | against f32 | llama.cpp |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.NamedTemporaryFile(suffix=".bin") as tokens:
        np.asarray(ids, dtype=np.int32).tofile(tokens.name)
        for kind in args.kinds:
            file = file_of(kind)
            plain, _ = ours(file, tokens.name, "f32")
            in_integers, packed = ours(file, tokens.name, "int8")
            other = theirs(file, args.text, args.windows, os.cpu_count())
            print(f"| {kind} | {file.stat().st_size / 2**20:.1f} MiB | {packed / 2**20:.1f} MiB | {plain:.3f} | {in_integers:.3f} | "
                  f"{100 * (in_integers / plain - 1):+.2f} % | {other:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
