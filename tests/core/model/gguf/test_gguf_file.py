"""Files written by the package gguf, and the real one, read as its own reader reads them."""

import hashlib
import json
import os
import pathlib
import subprocess

import gguf
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
TOOL = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "gguf_tool"


def ours(path):
    """({key: value}, [(name, dtype, shape, sha256)])"""
    done = subprocess.run([TOOL, path], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    values = {line["key"]: line["value"] for line in lines if "key" in line}
    return values, [(line["tensor"], line["dtype"], line["shape"], line["sha256"]) for line in lines if "tensor" in line]


def theirs(path):
    reader = gguf.GGUFReader(path)
    values = {}
    for key, field in reader.fields.items():
        if not key.startswith("GGUF."):
            values[key] = field.contents()
    tensors = [(tensor.name, tensor.tensor_type.name, [int(extent) for extent in reversed(tensor.shape)], hashlib.sha256(tensor.data.tobytes()).hexdigest())
               for tensor in reader.tensors]
    return values, tensors


def as_read(value):
    """A value as a JSON line gives it back; an empty array has no type that would show."""
    if isinstance(value, list):
        return [as_read(one) for one in value]
    return float(value) if isinstance(value, float) else value


@pytest.mark.parametrize("alignment", [None, 64, 4096])
def test_a_written_file_has_the_same_values_and_bytes(tmp_path, alignment):
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    writer.add_uint8("a.u8", 255), writer.add_int8("a.i8", -128), writer.add_uint16("a.u16", 65535), writer.add_int16("a.i16", -32768)
    writer.add_uint32("a.u32", 2**32 - 1), writer.add_int32("a.i32", -2**31), writer.add_uint64("a.u64", 2**63 - 1), writer.add_int64("a.i64", -2**63)
    writer.add_float32("a.f32", 0.1), writer.add_float64("a.f64", 0.1), writer.add_bool("a.no", False), writer.add_string("a.text", "ä\n\"\\")
    writer.add_array("a.words", ["", "b", "ü" * 300]), writer.add_array("a.numbers", [1, -2, 3]), writer.add_array("a.floats", [0.5, -1.5])
    draw = np.random.default_rng(1)
    for name, dtype in (("f32", np.float32), ("f16", np.float16)):
        writer.add_tensor(name, draw.standard_normal((5, 64)).astype(dtype))
    for kind in ("Q4_0", "Q8_0", "Q4_1", "Q5_0", "Q5_1", "BF16", "MXFP4"):
        data = gguf.quants.quantize(draw.standard_normal((3, 2, 64)).astype(np.float32), gguf.GGMLQuantizationType[kind])
        writer.add_tensor(kind.lower(), data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    values, tensors = ours(tmp_path / "a.gguf")
    expected_values, expected_tensors = theirs(tmp_path / "a.gguf")
    assert values == {key: as_read(value) for key, value in expected_values.items()}
    assert tensors == expected_tensors


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4")
    done = subprocess.run([TOOL, tmp_path / "x.gguf"], capture_output=True, text=True)
    assert done.returncode == 2 and "is no GGUF file" in done.stderr
