"""Measures what the formats of quantised safetensors cost: the table of docs/quantization.md. Not a test.

    python tests/real_model/checkpoint_perplexity.py (--text FILE | --corpus DIR) [--windows 16]

SmolLM2-135M-Instruct with the numbers of a package's GGUF file, on a text; or the embedded model, on stories of the corpus that it has not
seen (kv_perplexity.py's). Matrices are rounded to the nearest number of each format: what a format itself costs. The programs that publish
such checkpoints choose better than the nearest. As gguf_perplexity.py counts it.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("support", "golden")]

import kv_perplexity  # noqa: E402
import numpy as np  # noqa: E402
import quantised_by_hand as by_hand  # noqa: E402
import quantised_by_library as by_library  # noqa: E402
import smollm2  # noqa: E402
import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

WINDOW = 512
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


def by_quire(original, folder, form):
    shutil.rmtree(folder)
    subprocess.run([BUILD / "quire", "quantize", original, "--to", form, "--out", folder], check=True, capture_output=True)


def model_of(original):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(original, dtype=torch.float32)


def by_numpy(original, folder, quantise):
    model = model_of(original)
    modules = [f"model.layers.{layer}.{part}" for layer in range(model.config.num_hidden_layers) for part in PARTS]
    by_library.rewritten(model, folder, lambda tensors: quantise(tensors, modules), torch.float32)


def by_program(original, folder, write, **settings):
    write(model_of(original), folder, **settings)


KINDS = {
    "F32": None,
    "int8 for each output (w8a8)": functools.partial(by_quire, form="w8a8"),
    "FP8 for each output (fp8)": functools.partial(by_quire, form="fp8"),
    "FP8 in blocks of 128 x 128": functools.partial(by_numpy, quantise=by_hand.fp8),
    "int4 by 64 (w4a16)": functools.partial(by_quire, form="w4a16"),
    "GPTQ, 4 bits by 64, symmetric": functools.partial(by_numpy, quantise=functools.partial(by_hand.gptq, bits=4, group=64)),
    "GPTQ, 4 bits by 32, zeros": functools.partial(by_numpy, quantise=functools.partial(by_hand.gptq, bits=4, group=32, symmetric=False)),
    "GPTQ, 3 bits by 32, zeros": functools.partial(by_numpy, quantise=functools.partial(by_hand.gptq, bits=3, group=32, symmetric=False)),
    "AWQ, 4 bits by 64, zeros": functools.partial(by_numpy, quantise=functools.partial(by_hand.awq, group=64)),
    "NVFP4 (ModelOpt)": functools.partial(by_numpy, quantise=lambda tensors, modules: by_hand.modelopt_config(by_hand.modelopt(tensors, modules, "NVFP4", False))),
    "MXFP4 (compressed-tensors)": functools.partial(by_program, write=by_library.compressed, groups="MXFP4A16"),
    "NF4 (bitsandbytes)": functools.partial(by_program, write=by_library.bitsandbytes, load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                            bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16),
}  # fmt: skip


def perplexity(folder, tokens, activations):
    command = [BUILD / "perplexity_tool", folder, "--tokens", tokens, "--window", WINDOW, "--early", WINDOW // 2, "--kv", "f32",
               "--activations", activations]  # fmt: skip
    said = json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout)
    return math.exp(said["late_loss"]), said["packed_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", type=pathlib.Path)
    source.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--windows", type=int, default=16)
    args = parser.parse_args()
    if args.text:
        original = smollm2.checkpoint("float32")
        ids = Tokenizer.from_file(str(original / "tokenizer.json")).encode(args.text.read_text(), add_special_tokens=False).ids
    else:
        original = ROOT / "models" / "stories"
        ids = kv_perplexity.windows_of(argparse.Namespace(model=original, corpus=args.corpus, tokens=args.windows * WINDOW)).flatten().tolist()
    ids = ids[: args.windows * WINDOW]
    assert len(ids) == args.windows * WINDOW, f"the text has {len(ids)} tokens"
    print("| format | packed | times f32 | against F32 | times int8 | as declared |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        tokens = pathlib.Path(scratch) / "tokens.bin"
        np.asarray(ids, dtype=np.int32).tofile(tokens)
        first = None
        for name, write in KINDS.items():
            folder = original
            if write is not None:
                folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
                write(original, folder)
            plain, packed = perplexity(folder, tokens, "f32")
            in_integers, _ = perplexity(folder, tokens, "int8")
            declared, _ = perplexity(folder, tokens, "auto")
            first = first or plain
            print(f"| {name} | {packed / 2**20:.1f} MiB | {plain:.3f} | {100 * (plain / first - 1):+.2f} % | "
                  f"{'' if in_integers == plain else f'{in_integers:.3f}'} | {'' if declared == in_integers else f'{declared:.3f}'} |", flush=True)  # fmt: skip
            if folder != original:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
