"""Block-quantised numbers against gguf's own dequantisation, bit for bit, on random and extreme bytes."""

import os
import pathlib
import subprocess

import gguf
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
TOOL = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "blocks_tool"
TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"]
# Where a block has halves: scales and minima.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}
EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3C00, 0x7C00, 0xFC00]


def ours(name, blocks):
    done = subprocess.run([TOOL, name], input=blocks.tobytes(), capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.float32).reshape(len(blocks), -1)


def theirs(name, blocks):
    with np.errstate(all="ignore"):
        return gguf.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)


def same(name, blocks):
    mine, reference = ours(name, blocks), theirs(name, blocks)
    equal = (mine.view(np.uint32) == reference.view(np.uint32)) | (np.isnan(mine) & np.isnan(reference))
    assert equal.all(), (name, np.argwhere(~equal)[:3])


def test_the_types_and_their_sizes_are_ggufs():
    lines = subprocess.run([TOOL], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert lines == [f"{name} {elements} {size}" for name in TYPES for elements, size in [gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]]]


@pytest.mark.parametrize("name", TYPES)
def test_random_bytes_are_the_same_numbers(name):
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    same(name, np.random.default_rng(len(name)).integers(0, 256, (4000, size), dtype=np.uint8))


@pytest.mark.parametrize("name", TYPES)
def test_extreme_scales_and_codes_are_the_same_numbers(name):
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    draw = np.random.default_rng(1)
    for fill in (0x00, 0xFF, 0x0F, 0xF0, 0x80, 0x7F):
        blocks = np.full((len(EXTREME_HALVES) ** 2, size), fill, np.uint8)
        blocks[::3] = draw.integers(0, 256, (len(blocks[::3]), size), dtype=np.uint8)
        for place, offset in enumerate(HALVES.get(name, [])):
            values = [EXTREME_HALVES[i // len(EXTREME_HALVES) ** place % len(EXTREME_HALVES)] for i in range(len(blocks))]
            blocks[:, offset] = [value & 255 for value in values]
            blocks[:, offset + 1] = [value >> 8 for value in values]
        same(name, blocks)


@pytest.mark.parametrize("name, places", [("MXFP4", [0]), ("NVFP4", [0, 1, 2, 3])])
def test_every_scale_of_one_byte_gives_the_same_numbers(name, places):
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = np.random.default_rng(2).integers(0, 256, (256, size), dtype=np.uint8)
    for place in places:
        blocks[:, place] = np.arange(256)
    same(name, blocks)
