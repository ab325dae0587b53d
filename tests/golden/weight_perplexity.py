"""Measures what storing weights in fewer bits costs: the table of docs/quantization.md. Not a test.

    python tests/golden/weight_perplexity.py --corpus DIR [--model models/stories] [--tokens N]

Tokens and windows are those of kv_perplexity.py. perplexity_tool measures what quire serves; the model of models/train.py, its
matrices rounded by the few lines below, and what is multiplied by them where the kind says so, says the same of the types served
(a check of both) and of others, which are not.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from golden_support import ROOT, program
from kv_perplexity import bf16_towards, windows_of

sys.path.insert(0, str(ROOT / "models"))
import train  # noqa: E402

TABLE = "embed_tokens.weight"  # tied: the output matrix too


def bf16(x):
    return x.bfloat16().float()


def int8(w):
    scale = w.abs().amax(1, keepdim=True) / 127
    return torch.where(scale > 0, (w / scale).round(), torch.zeros_like(w)) * scale


def fp8(w):
    scale = w.abs().amax(1, keepdim=True) / 448
    return torch.where(scale > 0, (w / scale).to(torch.float8_e4m3fn).float(), torch.zeros_like(w)) * scale


def symmetric(group, steps=8, tries=(1.0,)):
    """-8 .. 7 times a bf16 such that the largest number is -8, or -7 .. 7; of several scales the one with the least squares."""

    def rounded(w):
        groups = w.unflatten(1, (-1, group))
        largest = groups.gather(2, groups.abs().argmax(2, keepdim=True))
        best, least = None, None
        for factor in tries:
            scale = bf16((largest / -8 if steps == 8 else largest.abs() / 7) * factor)
            codes = torch.where(scale != 0, (groups / scale).round(), torch.zeros_like(groups)).clamp(-steps, 7)
            error = (codes * scale - groups).square().sum(2, keepdim=True)
            best = codes * scale if best is None else torch.where(error < least, codes * scale, best)
            least = error if least is None else torch.minimum(error, least)
        return best.flatten(1)

    return rounded


def with_lowest(group):
    """0 .. 15 steps above a lowest, both bf16 and rounded outwards."""

    def rounded(w):
        groups = w.unflatten(1, (-1, group))
        lowest = bf16_towards(groups.amin(2, keepdim=True).contiguous(), up=False)
        step = bf16_towards(((groups.amax(2, keepdim=True) - lowest) / 15).contiguous(), up=True)
        codes = torch.where(step > 0, ((groups - lowest) / step).round().clamp(0, 15), torch.zeros_like(groups))
        return (codes * step + lowest).flatten(1)

    return rounded


def inputs(group):
    """Rows in 8 bits, a scale for each `group` of a row's numbers, the last one what is left; None: for the whole row."""

    def rounded(x):
        return torch.cat([int8(part.flatten(0, -2)).view(part.shape) for part in x.split(group or x.shape[-1], -1)], -1)

    return rounded


def same(w):
    return w


TRIES = [1 - 0.02 * i for i in range(-4, 16)]
KINDS = {  # bits of a number, the matrices of the layers, the table, what is multiplied by them
    "bf16": (16, same, same, same),
    "int8": (8, int8, int8, same),
    "int8, table bf16": (8, int8, same, same),
    "fp8": (8, fp8, fp8, same),
    "int4": (4.5, symmetric(32), int8, same),
    "int4, table int4": (4.5, symmetric(32), symmetric(32), same),
    "-7 .. 7": (4.5, symmetric(32, 7), int8, same),
    "least squares": (4.5, symmetric(32, tries=TRIES), int8, same),
    "groups of 64": (4.25, symmetric(64), int8, same),
    "a lowest, 64": (4.5, with_lowest(64), int8, same),
    "a lowest, 32": (5, with_lowest(32), int8, same),
    "w16a16": (16, same, same, bf16),
    "w8a8": (8, int8, int8, inputs(256)),
    "w8a8, inputs by 32": (8, int8, int8, inputs(32)),
    "w8a8, inputs by row": (8, int8, int8, inputs(None)),
    "w4a8": (4.5, symmetric(32), int8, inputs(256)),
    "w4a8, inputs by 32": (4.5, symmetric(32), int8, inputs(32)),
    "w4a8, inputs by row": (4.5, symmetric(32), int8, inputs(None)),
}


def simulated(folder, windows, kind):
    _, layers, table, activations = KINDS[kind]
    model = train.Llama(train.Shape(), bf16=False)
    weights = {name.removeprefix("model."): value.float() for name, value in load_file(folder / "model.safetensors").items()}
    for name, value in weights.items():
        if value.dim() == 2:
            weights[name] = (table if name == TABLE else layers)(value)
    model.load_state_dict(weights)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, args: (activations(args[0]),))
    model.norm.register_forward_hook(lambda _, args, out: activations(out))  # what the tied output matrix is multiplied by
    losses = []
    with torch.no_grad():
        for ids in windows.split(4):
            logits = model(ids)[:, :-1]
            losses.append(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none"))
    return torch.cat(losses).double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "stories")
    parser.add_argument("--tokens", type=int, default=65536)
    args = parser.parse_args()
    windows = windows_of(args)
    print(f"{len(windows)} windows of {windows.shape[1]} tokens")

    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        windows.numpy().astype(np.int32).tofile(file.name)
        command = [program("perplexity_tool"), args.model, "--tokens", file.name, "--weights", "--window", windows.shape[1]]
        out = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    served = [json.loads(line) for line in out.splitlines()]
    for row in served:
        print(f"{row['weights']:<20} {row['packed_bytes']:>9} {row['packed_bytes'] / served[0]['packed_bytes']:>7.1%} "
              f"{math.exp(row['loss']):>9.4f} {math.expm1(row['loss'] - served[0]['loss']):>+8.3%}", flush=True)
    print("simulated: bits of a number in the layers, perplexity")
    first = None
    for kind in KINDS:
        loss = simulated(args.model, windows, kind)
        first = first or loss
        print(f"{kind:<20} {KINDS[kind][0]:>17} {math.exp(loss):>9.4f} {math.expm1(loss - first):>+8.3%}", flush=True)


if __name__ == "__main__":
    main()
