"""Writes a checkpoint of loadtest/checkpoints.py with random weights.

They are made on the GPU if there is one: for 8B a CPU takes minutes.
"""

import argparse
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest"))
import checkpoints  # noqa: E402

SPREAD = 0.02


def save(name, folder):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)

    def drawn(_, sides):
        if len(sides) == 1:
            weights = torch.ones(sides, dtype=torch.bfloat16)
        else:
            weights = torch.empty(sides, dtype=torch.bfloat16, device=device).normal_(0, SPREAD).cpu()
        return memoryview(weights.view(torch.uint8).numpy()).cast("B")

    checkpoints.write_directory(checkpoints.SHAPES[name], folder, drawn)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=[*checkpoints.SHAPES])
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    save(args.shape, args.folder)
    print(json.dumps({"rows": [], "folder": str(args.folder)}))


if __name__ == "__main__":
    main()
