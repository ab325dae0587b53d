"""SmolLM2's file with its layers' matrices in types that llama.cpp's quantiser keeps for experts: MXFP4 by the package gguf, NVFP4 by the
rule of NVIDIA's ModelOpt (a factor of the matrix of amax / (6 · 448), and for each 16 numbers an E4M3 of amax / 6 / factor)."""

import gguf
import numpy as np

KINDS = ("MXFP4", "NVFP4")
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
# Of the bits of a positive E4M3 below NaN.
E4M3 = np.array([fraction / 512 if exponent == 0 else 2.0 ** (exponent - 7) * (1 + fraction / 8) for exponent in range(16) for fraction in range(8)][:127], np.float32)


def nearest(table, values):
    """Indices into an ascending table."""
    above = np.clip(np.searchsorted(table, values), 1, len(table) - 1)
    return np.where(values - table[above - 1] <= table[above] - values, above - 1, above)


def in_nvfp4(values):
    """(blocks, factor) of a matrix [N, K]."""
    factor = np.float32(np.abs(values).max() / (6 * 448))
    groups = values.reshape(-1, 16) / factor
    scales = nearest(E4M3, np.abs(groups).max(axis=1) / 6)
    steps = np.where(scales == 0, 1, E4M3[scales])[:, None]
    codes = (nearest(E2M1, np.abs(groups) / steps) | np.signbit(groups) * 8).astype(np.uint8)
    packed = codes[:, :8] | codes[:, 8:] << 4  # low halves: the first eight
    blocks = np.concatenate([scales.astype(np.uint8).reshape(-1, 4), packed.reshape(-1, 32)], axis=1)
    return blocks.reshape(values.shape[0], -1), factor


def requantised(source, kind, path):
    """The file `source`, of plain types, with that type in its layers and Q8_0 in its table."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if values.ndim == 1:
            writer.add_tensor(tensor.name, values)
        elif not tensor.name.startswith("blk."):
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        elif kind == "MXFP4":
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, gguf.GGMLQuantizationType.MXFP4), raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        else:
            blocks, factor = in_nvfp4(values)
            writer.add_tensor(tensor.name, blocks, raw_dtype=gguf.GGMLQuantizationType.NVFP4)
            writer.add_tensor(tensor.name.removesuffix("weight") + "scale", np.array([factor], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
