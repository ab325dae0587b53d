"""Measures what storing K and V in fewer bits costs: the tables of docs/kv-cache.md. Not a test.

    python tests/golden/kv_perplexity.py --corpus DIR [--model models/stories] [--tokens N]

DIR holds tinystories.txt or tinystories.txt.zst. Held-out stories, one behind the other with <|endoftext|> before each, are cut
into windows of the model's whole context. perplexity_tool measures what quire serves; the model of models/train.py, its K and V
rounded by the few lines below, says the same of the types served (a check of both) and of two bits, which are not.
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
from tokenizers import Tokenizer
from torch.nn import functional as F

from golden_support import ROOT, program

sys.path.insert(0, str(ROOT / "models"))
import train  # noqa: E402

GROUP = 16


def bf16_towards(x, up):
    down = (x.view(torch.int32) & ~0xFFFF).view(torch.float32)  # towards zero
    away = (down.view(torch.int32) + 0x10000).view(torch.float32)
    wrong = down < x if up else down > x
    return torch.where(wrong, away, down)


def steps(x, dim, bits):
    """x with 2^bits values between its lowest and highest along dim; both rounded outwards to bf16."""
    lowest = bf16_towards(x.amin(dim, keepdim=True).contiguous(), up=False)
    step = bf16_towards(((x.amax(dim, keepdim=True) - lowest) / (2**bits - 1)).contiguous(), up=True)
    code = torch.where(step > 0, ((x - lowest) / step).round().clamp(0, 2**bits - 1), torch.zeros_like(x))
    return code * step + lowest


def kivi(bits, group=GROUP):
    """Keys by channel over groups of tokens, values by token [B, heads, T, D]; a row's own group stays as it is."""

    def keys(k):
        whole = k.shape[2] // group * group
        groups = k[:, :, :whole].unflatten(2, (-1, group))
        return torch.cat([steps(groups, 3, bits).flatten(2, 3), k[:, :, whole:]], dim=2)

    return keys, lambda v: steps(v, 3, bits), group


def int8(x):
    scale = x.abs().amax(-1, keepdim=True) / 127
    return torch.where(scale > 0, (x / scale).round(), torch.zeros_like(x)) * scale


def by_token(rounded):
    return rounded, rounded, 0


KINDS = {
    "f32": by_token(lambda x: x),
    "bf16": by_token(lambda x: x.bfloat16().float()),
    "fp8": by_token(lambda x: x.clamp(-448, 448).to(torch.float8_e4m3fn).float()),
    "int8": by_token(int8),
    "int4": kivi(4),
    "int3": kivi(3),
    "int2": kivi(2),
    "int2, groups of 32": kivi(2, 32),
}


def attention(kind):
    keys, values, own = KINDS[kind]

    def forward(self, x, cos, sin):
        rows, length, _ = x.shape
        heads = lambda y: y.view(rows, length, -1, self.shape.head_dim).transpose(1, 2)  # noqa: E731
        q = train.rotate(heads(self.q_proj(x)), cos, sin)
        k = train.rotate(heads(self.k_proj(x)), cos, sin)
        v = heads(self.v_proj(x))
        share = self.shape.heads // self.shape.kv_heads
        wide = lambda y: y.repeat_interleave(share, dim=1)  # noqa: E731
        position = torch.arange(length)
        seen = position[:, None] >= position
        is_own = (position[:, None] // own == position // own) if own else torch.zeros_like(seen)
        scores = torch.where(is_own, q @ wide(k).mT, q @ wide(keys(k)).mT) / math.sqrt(self.shape.head_dim)
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        y = (weights * is_own) @ wide(v) + (weights * ~is_own) @ wide(values(v))
        return self.o_proj(y.transpose(1, 2).reshape(rows, length, -1))

    return forward


def simulated(folder, windows, kind):
    shape = train.Shape()
    model = train.Llama(shape, bf16=False)
    weights = {name.removeprefix("model."): value.float() for name, value in load_file(folder / "model.safetensors").items()}
    model.load_state_dict(weights)
    train.Attention.forward = attention(kind)
    losses = []
    with torch.no_grad():
        for ids in windows.split(4):
            logits = model(ids)[:, :-1]
            losses.append(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(len(ids), -1))
    losses = torch.cat(losses).double()
    return losses.mean().item(), losses[:, losses.shape[1] // 2 :].mean().item()


def windows_of(args):
    """Held-out stories as tokens [windows, the model's context]."""
    context = json.loads((args.model / "config.json").read_text())["max_position_embeddings"]
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    _, held_out = train.split_held_out(train.read_stories(args.corpus, train.STYLE))
    ids = [train.END_ID] + [i for document in train.encode(tokenizer, held_out) for i in document]
    return torch.tensor(ids[: min(args.tokens, len(ids)) // context * context]).view(-1, context)


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
        command = [program("perplexity_tool"), args.model, "--tokens", file.name, "--window", windows.shape[1]]
        out = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    served = [json.loads(line) for line in out.splitlines()]
    print(f"{'':<20} {'bytes/token':>12} {'of f32':>8} {'perplexity':>11} {'change':>9} {'second half':>12} {'change':>9}")
    for row in served:
        loss, late = row["loss"] - served[0]["loss"], row["late_loss"] - served[0]["late_loss"]
        print(f"{row['kv']:<20} {row['bytes_per_token']:>12} {row['bytes_per_token'] / served[0]['bytes_per_token']:>8.1%} "
              f"{math.exp(row['loss']):>11.4f} {math.expm1(loss):>+9.3%} {math.exp(row['late_loss']):>12.4f} "
              f"{math.expm1(late):>+9.3%}", flush=True)
    print("simulated")
    first = None
    for kind in KINDS:
        loss, late = simulated(args.model, windows, kind)
        first = first or (loss, late)
        print(f"{kind:<20} {'':>12} {'':>8} {math.exp(loss):>11.4f} {math.expm1(loss - first[0]):>+9.3%} "
              f"{math.exp(late):>12.4f} {math.expm1(late - first[1]):>+9.3%}", flush=True)


if __name__ == "__main__":
    main()
