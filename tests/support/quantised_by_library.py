"""Writers of quantised checkpoints by the programs that publish them: compressed-tensors and bitsandbytes, on a CPU.

Each takes a transformers model and a folder, and writes config.json and model.safetensors there.
"""

import json

import numpy as np
import torch

from quantised_numbers import packed, unpacked


def extremes(weights, args):
    """Smallest and largest weight of each part that has a scale of its own, in the shape of the scales."""
    if args.strategy == "block":
        rows, inputs = args.block_structure
        grid = [-(-weights.shape[0] // rows), -(-weights.shape[1] // inputs)]
        padded = torch.zeros(grid[0] * rows, grid[1] * inputs)
        padded[:weights.shape[0], :weights.shape[1]] = weights
        blocks = padded.view(grid[0], rows, grid[1], inputs)
        return blocks.amin((1, 3)), blocks.amax((1, 3))
    if args.strategy in ("group", "tensor_group"):
        blocks = weights.view(len(weights), -1, args.group_size)
        return blocks.amin(-1), blocks.amax(-1)
    if args.strategy == "channel":
        return weights.amin(-1, keepdim=True), weights.amax(-1, keepdim=True)
    return weights.amin().reshape(1), weights.amax().reshape(1)


def calibrate(module):
    """Sets the scales of a module to those of its weights, and those of its input to a number that no loader should use."""
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    args, weights = module.quantization_scheme.weights, module.weight.data.float()
    factor = None
    if hasattr(module, "weight_global_scale"):
        factor = generate_gparam(weights.min(), weights.max())
        module.weight_global_scale.data = factor
    scales, zeros = calculate_qparams(*extremes(weights, args), args, global_scale=factor)
    module.weight_scale.data = scales.to(module.weight_scale.dtype)
    if hasattr(module, "weight_zero_point"):
        module.weight_zero_point.data = zeros.to(module.weight_zero_point.dtype)
    for name, number in (("input_global_scale", 7.0), ("input_scale", 0.02)):
        if getattr(module, name, None) is not None:
            getattr(module, name).data.fill_(number)


def compressed(model, directory, groups, ignore=("lm_head",)):
    """`groups` as in QuantizationConfig: {name: scheme}, or the name of a ready scheme that all linear layers get."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config

    if isinstance(groups, str):
        groups = {groups: ["Linear"]}
    apply_quantization_config(model, QuantizationConfig(config_groups=groups, ignore=list(ignore)), show_progress=False)
    for module in model.modules():
        if getattr(module, "quantization_scheme", None) is not None:
            calibrate(module)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(directory)
    compressor.update_config(str(directory))


def edit(directory, change):
    """`change` edits the tensors and the quantization_config of a checkpoint."""
    from safetensors.torch import load_file, save_file

    path = directory / "config.json"
    tensors, config = load_file(directory / "model.safetensors"), json.loads(path.read_text())
    change(tensors, config["quantization_config"])
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    path.write_text(json.dumps(config))


def compressed_with_cache(model, directory, groups):
    """With scales for the cache. compressed-tensors 0.20 does not find the attention of transformers 5.24: they are added here."""
    compressed(model, directory, groups)

    def add(tensors, config):
        config["kv_cache_scheme"] = {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True, "dynamic": False}
        for layer in range(model.config.num_hidden_layers):
            for part, scale in (("k_scale", 0.5), ("v_scale", 0.25)):
                tensors[f"model.layers.{layer}.self_attn.{part}"] = torch.tensor([scale], dtype=torch.bfloat16)

    edit(directory, add)


def compressed_out_of_order(model, directory, group=128):
    """Groups of inputs in an order that weight_g_idx tells, as llm-compressor wrote actorder=group before it permuted the activations.
    compressed-tensors 0.20 neither writes nor reads that tensor: the file is made of a permuted model's."""
    orders = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            orders[name] = torch.randperm(module.in_features, generator=torch.Generator().manual_seed(len(orders)))
            module.weight.data = module.weight.data[:, orders[name]].contiguous()
    weights = dict(num_bits=4, type="int", strategy="group", group_size=group, symmetric=True)
    compressed(model, directory, {"group_0": {"targets": ["Linear"], "weights": weights}})

    def permute(tensors, config):
        config["config_groups"]["group_0"]["weights"]["actorder"] = "group"
        for name, order in orders.items():
            back = np.argsort(order.numpy())
            codes = unpacked(tensors[f"{name}.weight_packed"].numpy().view(np.uint32), 4, len(order))[:, back]
            tensors[f"{name}.weight_packed"] = torch.from_numpy(packed(codes, 4))
            tensors[f"{name}.weight_g_idx"] = torch.from_numpy((back // group).astype(np.int32))

    edit(directory, permute)


def bitsandbytes(model, directory, **settings):
    """transformers quantises while it loads a plain checkpoint, and saves what it has."""
    import transformers

    plain = directory / "plain"
    model.save_pretrained(plain)
    config = transformers.BitsAndBytesConfig(**settings)
    quantised = transformers.AutoModelForCausalLM.from_pretrained(plain, quantization_config=config, dtype=torch.bfloat16, device_map={"": "cpu"})
    quantised.save_pretrained(directory)
    for path in plain.iterdir():
        path.unlink()
    plain.rmdir()


def rewritten(model, directory, quantise, dtype=torch.bfloat16, place="config.json"):
    """A plain checkpoint whose tensors `quantise` replaces; it gives the quantization_config, or what that other file holds."""
    from safetensors.torch import load_file, save_file

    model.to(dtype).save_pretrained(directory)
    tensors = load_file(directory / "model.safetensors")
    settings = quantise(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, directory / "model.safetensors", {"format": "pt"})
    if place != "config.json":
        (directory / place).write_text(json.dumps(settings))
        return
    config = json.loads((directory / place).read_text())
    (directory / place).write_text(json.dumps({**config, "quantization_config": settings}))
