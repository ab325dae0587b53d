"""Writers of quantised checkpoints whose programs do not run here (GPTQ, AWQ, AutoRound, ModelOpt, fp8 with blocks), in numpy.

Each takes the tensors of a plain checkpoint and the names of the modules to quantise, replaces their matrices by the tensors of the
format, and gives the quantization_config. Numbers are rounded to the nearest; nothing is calibrated.
"""

import zlib

import numpy as np
import torch

from quantised_numbers import AWQ_ORDER, E2M1, packed

IGNORED = ["lm_head"]


def levels(weights, bits, group, symmetric):
    """(codes [N, K], scales f16 [N, G], zero points [N, G])"""
    blocks, most = weights.reshape(len(weights), -1, group), (1 << bits) - 1
    if symmetric:
        scales = (2 * np.abs(blocks).max(axis=-1) / most).astype(np.float16)
        zeros = np.full(scales.shape, 1 << bits - 1)
    else:
        low, high = np.minimum(blocks.min(axis=-1), 0), np.maximum(blocks.max(axis=-1), 0)
        scales = ((high - low) / most).astype(np.float16)
        zeros = np.clip(np.round(-low / scales.astype(np.float32)), 0, most)
    codes = np.round(blocks / scales[..., None].astype(np.float32)) + zeros[..., None]
    return np.clip(codes, 0, most).astype(np.int32).reshape(weights.shape), scales, zeros.astype(np.int32)


def take(tensors, module):
    return tensors.pop(f"{module}.weight").float().numpy()


def put(tensors, module, **parts):
    for name, part in parts.items():
        tensors[f"{module}.{name}"] = part if isinstance(part, torch.Tensor) else torch.from_numpy(np.array(part, order="C"))


def put_gptq(tensors, module, bits, group, symmetric, in_order=True, stored_less=1, has_index=True):
    """Codes packed along K, zero points along N. Not in order: groups are of inputs in an order of the matrix's own."""
    weights = take(tensors, module)
    inputs = weights.shape[1]
    group = inputs if group == -1 else group
    order = np.arange(inputs) if in_order else np.random.default_rng(zlib.crc32(module.encode())).permutation(inputs)
    codes, scales, zeros = levels(weights[:, order], bits, group, symmetric)
    codes = codes[:, np.argsort(order)]
    if bits == 3:
        stored = packed(zeros.T - stored_less & 7, bits)
    else:
        stored = (packed(zeros.T, bits).view(np.uint32) - np.uint32(sum(stored_less << place for place in range(0, 32, bits)))).view(np.int32)
    put(tensors, module, qweight=packed(codes, bits).T, qzeros=stored, scales=scales.T)
    if has_index:
        put(tensors, module, g_idx=(np.argsort(order) // group).astype(np.int32))


def gptq(tensors, modules, bits, group, symmetric=True, in_order=True, version=1, old=False):
    """As gptqmodel 7 has it, or AutoGPTQ before it, which wrote no format."""
    for module in modules:
        put_gptq(tensors, module, bits, group, symmetric, in_order, stored_less=2 - version)
    config = {"bits": bits, "group_size": group, "desc_act": not in_order, "sym": symmetric, "quant_method": "gptq"}
    if old:
        return {**config, "damp_percent": 0.01, "static_groups": False, "true_sequential": True, "model_name_or_path": None, "model_file_base_name": "model"}
    name = "gptq" if version == 1 else "gptq_v2"
    return {**config, "lm_head": "lm_head" in modules, "method": "gptq", "format": name, "checkpoint_format": name, "pack_dtype": "int32",
            "meta": {"quantizer": ["gptqmodel:7.7.0"], "damp_percent": 0.05, "static_groups": False, "true_sequential": True}}


def put_awq(tensors, module, group, symmetric=False):
    """Codes packed along N, 8 of them in an order of AWQ's own in each word."""
    codes, scales, zeros = levels(take(tensors, module), 4, group, symmetric)

    def words(rows):
        return packed(rows.reshape(len(rows), -1, 8)[..., AWQ_ORDER].reshape(len(rows), -1), 4)

    put(tensors, module, qweight=words(codes.T), qzeros=words(zeros.T), scales=scales.T)


def awq(tensors, modules, group):
    for module in modules:
        put_awq(tensors, module, group)
    return {"bits": 4, "group_size": group, "modules_to_not_convert": None, "quant_method": "awq", "version": "gemm", "zero_point": True}


def auto_round(tensors, modules, packing, symmetric, group=128, more=None):
    """`more`: {module: bits} of those with bits of their own."""
    more = more or {}
    for module in modules:
        if packing == "auto_round:auto_awq":
            put_awq(tensors, module, group, symmetric)
        else:
            put_gptq(tensors, module, more.get(module, 4), group, symmetric, has_index=False)
    config = {"bits": 4, "data_type": "int", "group_size": group, "sym": symmetric, "enable_quanted_input": False, "autoround_version": "0.16.1",
              "block_name_to_quantize": "model.layers", "quant_method": "auto-round", "packing_format": packing}
    return {**config, "extra_config": {module: {"bits": bits} for module, bits in more.items()}} if more else config


def fp8(tensors, modules, block=(128, 128), scale=torch.float32):
    """As DeepSeek's and Qwen's: weight_scale_inv is what to multiply by. Without blocks, as Mistral's: one number, and one for the input."""
    for module in modules:
        weights = tensors[f"{module}.weight"].float()
        rows, inputs = block or weights.shape
        grid = [-(-weights.shape[0] // rows), -(-weights.shape[1] // inputs)]
        padded = torch.zeros(grid[0] * rows, grid[1] * inputs)
        padded[:weights.shape[0], :weights.shape[1]] = weights
        scales = (padded.view(grid[0], rows, grid[1], inputs).abs().amax((1, 3)) / 448).to(scale)
        spread = scales.float().repeat_interleave(rows, 0).repeat_interleave(inputs, 1)[:weights.shape[0], :weights.shape[1]]
        codes = (weights / spread).clamp(-448, 448).to(torch.float8_e4m3fn)
        put(tensors, module, weight=codes, weight_scale_inv=scales if block else scales.reshape(()))
        if block is None:
            put(tensors, module, activation_scale=torch.tensor(0.02, dtype=scale))
    config = {"quant_method": "fp8", "fmt": "e4m3", "modules_to_not_convert": IGNORED}
    return {**config, "activation_scheme": "dynamic" if block else "static", "weight_block_size": list(block) if block else None}


def put_cache_scales(tensors, modules):
    for number, module in enumerate(name for name in modules if name.endswith(("k_proj", "v_proj"))):
        put(tensors, module, **{module[-6] + "_scale": torch.tensor(0.5 + number)})


def modelopt(tensors, modules, algorithm, cache=False):
    """What hf_quant_config.json holds; modelopt_config() is the same for config.json."""
    for module in modules:
        weights = take(tensors, module)
        if algorithm == "FP8":
            scale = np.float32(np.abs(weights).max() / 448)
            put(tensors, module, weight=torch.from_numpy(weights / scale).to(torch.float8_e4m3fn), weight_scale=scale)
        else:
            put_nvfp4(tensors, module, weights)
        put(tensors, module, input_scale=np.float32(0.02))
    if cache:
        put_cache_scales(tensors, modules)
    settings = {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8" if cache else None, "exclude_modules": IGNORED}
    return {"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": settings | ({} if algorithm == "FP8" else {"group_size": 16})}


def put_nvfp4(tensors, module, weights):
    factor = np.float32(np.abs(weights).max() / (448 * 6))
    blocks = weights.reshape(len(weights), -1, 16)
    scales = torch.from_numpy(np.abs(blocks).max(axis=-1) / 6 / factor).to(torch.float8_e4m3fn)
    with np.errstate(all="ignore"):
        sized = np.nan_to_num(blocks / (scales.float().numpy()[..., None] * factor))
    codes = np.abs(sized[..., None] - E2M1).argmin(axis=-1).astype(np.uint8).reshape(weights.shape)
    put(tensors, module, weight=codes[:, 0::2] | codes[:, 1::2] << 4, weight_scale=scales, weight_scale_2=factor)


def modelopt_config(settings):
    """The newer way: quantization_config in config.json (modelopt/torch/export/convert_hf_config.py)."""
    quantization = settings["quantization"]
    parts = {"num_bits": 8} if quantization["quant_algo"] == "FP8" else {"num_bits": 4}
    parts = {"dynamic": False, **parts, "type": "float"} | ({"group_size": 16} if "group_size" in quantization else {})
    config = {"config_groups": {"group_0": {"input_activations": parts, "weights": parts, "targets": ["Linear"]}},
              "ignore": quantization["exclude_modules"], "quant_algo": quantization["quant_algo"]}
    if quantization["kv_cache_quant_algo"]:
        config["kv_cache_scheme"] = {"dynamic": False, "num_bits": 8, "type": "float"}
    return {**config, "producer": settings["producer"], "quant_method": "modelopt"}
