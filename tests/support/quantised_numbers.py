"""The numbers that the matrices of quantised checkpoints stand for, in f32, by the formulas of the formats.

Each formula takes the tensors of a file, {name: torch tensor}, and the name of a module, and gives its matrix [N, K]. Products are
rounded once for each factor, in the order in which the docstring writes them.
"""

import json

import numpy as np
import torch

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the output that each nibble of a word is of, from the low end


def words(tensor):
    return tensor.numpy().view(np.uint32)


def unpacked(rows, bits, count):
    """`count` codes of each row of 32-bit words, the lowest bits first; codes run on across words. [R, count]"""
    stream = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=-1, bitorder="little")
    return stream[:, :count * bits].reshape(len(rows), count, bits).astype(np.int32) @ (1 << np.arange(bits, dtype=np.int32))


def packed(codes, bits):
    """The words of rows of codes: the inverse of unpacked(). The last word is filled up with zeros."""
    stream = (codes[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(len(codes), -1)
    stream = np.pad(stream, ((0, 0), (0, -stream.shape[1] % 32)))
    return np.packbits(stream, axis=-1, bitorder="little").view(np.int32)


def power_of_e8m0(exponents):
    """2^(e - 127); 255 is no number (OCP Microscaling Formats 1.0)."""
    return np.where(exponents == 255, np.float32("nan"), np.ldexp(np.float32(1), exponents.astype(np.int32) - 127))


def product(*factors):
    """From left to right, each product rounded to f32."""
    out = np.float32(1)
    with np.errstate(all="ignore"):
        for factor in factors:
            out = out * factor.astype(np.float32)
    return out


def f32(tensor):
    return tensor.float().numpy()


def gptq_zeros(stored, bits, stored_less):
    """Zero points [G, N]. Files of version 1 store one less: 1 is added to all fields of a word at once, as gptqmodel does it, with a
    carry into the next field; fields of 3 bits cross words and are added to one by one."""
    if bits == 3:
        return unpacked(stored, bits, stored.shape[1] * 32 // bits) + stored_less & 7
    ones = sum(stored_less << place for place in range(0, 32, bits))
    return unpacked(stored + np.uint32(ones), bits, stored.shape[1] * 32 // bits)


def gptq(tensors, module, bits, stored_less=1):
    """(q - z) * s; input k is of group g_idx[k], or k / g."""
    codes, scales = words(tensors[f"{module}.qweight"]), f32(tensors[f"{module}.scales"])
    inputs = codes.shape[0] * 32 // bits
    group = tensors.get(f"{module}.g_idx")
    group = np.arange(inputs) // (inputs // len(scales)) if group is None else group.numpy()
    zeros = gptq_zeros(words(tensors[f"{module}.qzeros"]), bits, stored_less)
    return product(unpacked(codes.T, bits, inputs) - zeros.T[:, group], scales.T[:, group])


def awq(tensors, module):
    """(q - z) * s"""
    def codes(name):
        stored = words(tensors[f"{module}.{name}"])
        out = np.empty((*stored.shape, 8), np.int32)
        out[..., AWQ_ORDER] = stored[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
        return out.reshape(len(stored), -1).T  # [N, K] or [N, G]

    weights, zeros, scales = codes("qweight"), codes("qzeros"), f32(tensors[f"{module}.scales"]).T
    times = weights.shape[1] // scales.shape[1]
    return product(weights - np.repeat(zeros, times, axis=1), np.repeat(scales, times, axis=1))


def packed_integers(tensors, module):
    """compressed-tensors' pack-quantized: (q - z) * s, q and z stored with 2^(bits - 1) added, z packed along N."""
    outputs, inputs = tensors[f"{module}.weight_shape"].tolist()
    stored, scales = words(tensors[f"{module}.weight_packed"]), f32(tensors[f"{module}.weight_scale"])
    bits = stored.shape[1] * 32 // inputs
    codes = unpacked(stored, bits, inputs) - (1 << bits - 1)
    group = tensors.get(f"{module}.weight_g_idx")
    group = np.arange(inputs) // (inputs // scales.shape[1]) if group is None else group.numpy()
    if f"{module}.weight_zero_point" in tensors:
        zeros = unpacked(words(tensors[f"{module}.weight_zero_point"]).T, bits, outputs).T - (1 << bits - 1)
        codes = codes - zeros[:, group]
    return product(codes, scales[:, group])


def scaled(tensors, module, scale="weight_scale", block=None):
    """q * s: a scale for the matrix, for each output, or for each block [rows, inputs], the last of which may be short."""
    codes, scales = f32(tensors[f"{module}.weight"]), tensors[f"{module}.{scale}"]
    scales = power_of_e8m0(scales.numpy()) if str(scales.dtype) == "torch.uint8" else f32(scales)
    if block:
        scales = np.repeat(np.repeat(scales, block[0], axis=0), block[1], axis=1)[:codes.shape[0], :codes.shape[1]]
    return product(codes, scales)


def nibbles(stored):
    """Codes of 4 bits, the low nibble first. [N, K]"""
    return np.stack([stored & 15, stored >> 4], axis=-1).reshape(len(stored), -1)


def nvfp4(tensors, module):
    """compressed-tensors' nvfp4-pack-quantized: (e2m1 * e4m3) * (1 / global)"""
    scales = np.repeat(f32(tensors[f"{module}.weight_scale"]), 16, axis=1)
    with np.errstate(all="ignore"):
        factor = np.float32(1) / f32(tensors[f"{module}.weight_global_scale"])
    return product(E2M1[nibbles(tensors[f"{module}.weight_packed"].numpy())], scales, factor)


def mxfp4(tensors, module):
    """e2m1 * 2^(s - 127)"""
    scales = np.repeat(power_of_e8m0(tensors[f"{module}.weight_scale"].numpy()), 32, axis=1)
    return product(E2M1[nibbles(tensors[f"{module}.weight_packed"].numpy())], scales)


def modelopt_nvfp4(tensors, module):
    """(e2m1 * e4m3) * weight_scale_2"""
    scales = np.repeat(f32(tensors[f"{module}.weight_scale"]), 16, axis=1)
    return product(E2M1[nibbles(tensors[f"{module}.weight"].numpy())], scales, f32(tensors[f"{module}.weight_scale_2"]))


def bitsandbytes_4bit(tensors, module, kind):
    """map[q] * absmax; of a double quantisation absmax is nested_map[a] * nested_absmax + offset. Blocks are of the flattened matrix."""
    def part(name):
        return tensors[f"{module}.weight.{name}"].numpy()

    state = json.loads(part(f"quant_state.bitsandbytes__{kind}").tobytes())
    largest = part("absmax")
    if "nested_offset" in state:
        nested = np.repeat(part("nested_absmax"), state["nested_blocksize"])[:largest.size]
        with np.errstate(all="ignore"):
            largest = product(part("nested_quant_map")[largest], nested) + np.float32(state["nested_offset"])
    stored = tensors[f"{module}.weight"].view(torch.uint8).numpy().ravel()
    codes = np.stack([stored >> 4, stored & 15], axis=-1).ravel()  # the high nibble is the first
    return product(part("quant_map")[codes], np.repeat(largest, state["blocksize"])[:codes.size]).reshape(state["shape"])


def bitsandbytes_8bit(tensors, module):
    """q * (SCB / 127)"""
    scales = f32(tensors[f"{module}.SCB"])[:, None] / np.float32(127)
    return product(tensors[f"{module}.weight"].numpy(), scales)
