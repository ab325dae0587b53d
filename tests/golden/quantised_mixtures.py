"""Tiny mixtures and models with latent attention in the quantised formats of safetensors, with modules for each expert as the hub has them.

make() writes one and gives the numbers that its matrices stand for; KINDS has all of them. Weights are drawn as family_checkpoints.py draws
them. compressed-tensors and bitsandbytes are the real ones. Routers and norms stay plain, as publishers leave them.
"""

import dataclasses
import functools
import json

import numpy as np
import torch

import quantised_by_hand as by_hand
import quantised_numbers as numbers
from family_checkpoints import YARN, Tiny, draw_model
from quantised_by_library import calibrate
from quantised_models import integers

# Blocks of 128 divide none of these sizes. Inputs are multiples of 64, as NVFP4 wants them, but for DEEPSEEK's, which are multiples of 32.
COMMON = dict(hidden_size=192, intermediate_size=320, num_hidden_layers=3)
QWEN = Tiny("qwen3_moe", dict(COMMON, head_dim=48, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64, norm_topk_prob=True, mlp_only_layers=[1]))
QWEN2 = Tiny("qwen2_moe", dict(COMMON, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=192))
MIXTRAL = Tiny("mixtral", dict(COMMON, head_dim=32, num_local_experts=5, num_experts_per_tok=2, sliding_window=24))
# kv_a_proj_with_mqa has 40 rows. A block of kv_b_proj's rows ends amid the keys of the last head.
DEEPSEEK = Tiny("deepseek_v3", dict(COMMON, num_key_value_heads=4, q_lora_rank=160, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24,
                                    n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=96, n_shared_experts=1, first_k_dense_replace=1,
                                    n_group=4, topk_group=2, num_mtp_layers=0, rope_parameters={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}))
# Blocks cut the latent, too; queries have one matrix.
DEEPSEEK_WIDE = dataclasses.replace(DEEPSEEK, changes=dict(DEEPSEEK.changes, q_lora_rank=None, kv_lora_rank=192, v_head_dim=48, moe_intermediate_size=64))
ROUTERS = (".mlp.gate", ".block_sparse_moe.gate", ".shared_expert_gate")
UNQUANTISED = ("lm_head", "model.embed_tokens")


@dataclasses.dataclass(frozen=True)
class Kind:
    tiny: Tiny
    quantise: object  # (tensors, modules): replaces the modules' matrices, and gives the quantization_config
    formula: object  # (tensors, module): f32 [N, K]
    dtype: torch.dtype = torch.bfloat16  # of the rest
    needs: tuple = ()  # packages


def matrix_modules(tensors):
    names = (name.removesuffix(".weight") for name, tensor in tensors.items() if name.endswith(".weight") and tensor.dim() == 2)
    return [name for name in names if name not in UNQUANTISED]


def routers(tensors):
    return [name for name in matrix_modules(tensors) if name.endswith(ROUTERS)]


def with_keys(quantise, keys, **options):
    """`keys` of (tensors): those of the quantization_config that publishers of mixtures set otherwise."""
    return lambda tensors, modules: {**quantise(tensors, modules, **options), **keys(tensors)}


def gptq(tiny, bits=4, **options):
    return Kind(tiny, functools.partial(by_hand.gptq, bits=bits, **options), functools.partial(numbers.gptq, bits=bits), torch.float16)


def awq(tiny, *plain, group):
    return Kind(tiny, with_keys(by_hand.awq, lambda _: {"modules_to_not_convert": list(plain)}, group=group), numbers.awq, torch.float16)


def fp8(tiny, keys):
    return Kind(tiny, with_keys(by_hand.fp8, keys), functools.partial(numbers.scaled, scale="weight_scale_inv", block=(128, 128)))


def qwen_fp8(tensors):
    """As Qwen3-30B-A3B-FP8, which names what stays plain."""
    return {"modules_to_not_convert": ["lm_head", *routers(tensors), *(name.removesuffix(".weight") for name in tensors if "norm" in name)]}


def deepseek_fp8(tensors):
    """As DeepSeek-V3, which names nothing, and whose last layer proposes drafts and is read by neither side."""
    layers = DEEPSEEK.changes["num_hidden_layers"]
    last, drafting = f"model.layers.{layers - 1}.", f"model.layers.{layers}."
    tensors.update({drafting + name.removeprefix(last): tensor.clone() for name, tensor in tensors.items() if name.startswith(last)})
    tensors[drafting + "eh_proj.weight"] = torch.zeros(COMMON["hidden_size"], 2 * COMMON["hidden_size"], dtype=torch.bfloat16)
    for name in tensors:
        if name.endswith("e_score_correction_bias"):
            tensors[name] = tensors[name].float()
    return {"modules_to_not_convert": None}


def modelopt_nvfp4(tensors, modules):
    settings = by_hand.modelopt(tensors, modules, "NVFP4")
    settings["quantization"]["exclude_modules"] = ["lm_head", *routers(tensors)]
    return by_hand.modelopt_config(settings)


def bitsandbytes_nf4(tensors, modules):
    """As transformers wrote it while experts were modules of their own."""
    import bitsandbytes.functional

    for module in modules:
        codes, state = bitsandbytes.functional.quantize_4bit(tensors[f"{module}.weight"], blocksize=64, compress_statistics=True, quant_type="nf4")
        by_hand.put(tensors, module, weight=codes, **{f"weight.{name}": part for name, part in state.as_dict(packed=True).items()})
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
            "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_storage": "uint8", "llm_int8_skip_modules": ["lm_head", *routers(tensors)]}


def module_tree(tensors):
    """Linear modules with the file's names: transformers has the experts of a layer in one tensor, which compressed-tensors passes over."""
    root = torch.nn.Module()
    for name in [*matrix_modules(tensors), "lm_head"]:
        place = root
        *outer, last = name.split(".")
        for part in outer:
            if not hasattr(place, part):
                place.add_module(part, torch.nn.Module())
            place = getattr(place, part)
        weights = tensors[f"{name}.weight"]
        place.add_module(last, torch.nn.Linear(weights.shape[1], weights.shape[0], bias=False, dtype=weights.dtype))
        getattr(place, last).weight = torch.nn.Parameter(weights, requires_grad=False)
    return root


def compressed_tensors(tensors, modules, groups):
    import compressed_tensors as library
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config

    tree = module_tree(tensors)
    apply_quantization_config(tree, QuantizationConfig(config_groups=groups, ignore=["lm_head", *routers(tensors)]), show_progress=False)
    for module in tree.modules():
        if getattr(module, "quantization_scheme", None) is not None:
            calibrate(module)
    compressor = ModelCompressor.from_pretrained_model(tree)
    compressor.compress_model(tree)
    for module in modules:
        del tensors[f"{module}.weight"]
    tensors.update(tree.state_dict())
    return {"version": library.__version__, **compressor.quantization_config.model_dump(mode="json")}


def compressed(tiny, groups, formula):
    return Kind(tiny, functools.partial(compressed_tensors, groups=groups), formula, needs=("compressed_tensors",))


W4A16 = {"group_0": {"targets": ["Linear"], "weights": integers(4, 64)}}  # the ready scheme's groups have 128 inputs

KINDS = {
    "qwen3_moe-gptq": gptq(QWEN, group=64),
    "qwen3_moe-gptq-act-order": gptq(QWEN, group=32, in_order=False),
    "qwen3_moe-gptq-3bit": gptq(QWEN, bits=3, group=32, symmetric=False),
    "qwen3_moe-awq": awq(QWEN, group=64),
    "qwen3_moe-ct-w4a16": compressed(QWEN, W4A16, numbers.packed_integers),
    "qwen3_moe-ct-fp8-dynamic": compressed(QWEN, {"FP8_DYNAMIC": ["Linear"]}, numbers.scaled),
    "qwen3_moe-ct-w8a8": compressed(QWEN, {"W8A8": ["Linear"]}, numbers.scaled),
    "qwen3_moe-ct-nvfp4": compressed(QWEN, {"NVFP4": ["Linear"]}, numbers.nvfp4),
    "qwen3_moe-fp8": fp8(QWEN, qwen_fp8),
    "qwen3_moe-modelopt-nvfp4": Kind(QWEN, modelopt_nvfp4, numbers.modelopt_nvfp4),
    "qwen3_moe-bnb-nf4": Kind(QWEN, bitsandbytes_nf4, functools.partial(numbers.bitsandbytes_4bit, kind="nf4"), needs=("bitsandbytes",)),
    "qwen2_moe-gptq": gptq(QWEN2, group=64),
    "mixtral-gptq": gptq(MIXTRAL, group=64, old=True),
    "mixtral-awq": awq(MIXTRAL, "gate", group=64),
    "deepseek_v3-fp8": fp8(DEEPSEEK, deepseek_fp8),
    "deepseek_v3-fp8-wide": fp8(DEEPSEEK_WIDE, deepseek_fp8),
    "deepseek_v3-gptq-act-order": gptq(DEEPSEEK, group=32, in_order=False),
    "deepseek_v3-awq": awq(DEEPSEEK, group=32),
    "deepseek_v3-modelopt-nvfp4": Kind(DEEPSEEK_WIDE, modelopt_nvfp4, numbers.modelopt_nvfp4),
}


def save(directory, tensors, config):
    from safetensors.torch import save_file

    directory.mkdir()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, directory / "model.safetensors", {"format": "pt"})
    (directory / "config.json").write_text(json.dumps(config))


def make(kind, folder):
    """Writes the checkpoint into "model" and its numbers in f32 into "plain", and gives {name of a quantised matrix: f32 [N, K]}."""
    from safetensors.torch import load_file

    draw_model(kind.tiny).to(kind.dtype).save_pretrained(folder / "drawn")
    tensors, config = load_file(folder / "drawn" / "model.safetensors"), json.loads((folder / "drawn" / "config.json").read_text())
    drawn = dict(tensors)
    modules = [name for name in matrix_modules(tensors) if not name.endswith(ROUTERS)]
    settings = kind.quantise(tensors, modules)
    save(folder / "model", tensors, {**config, "quantization_config": settings})
    matrices = {f"{module}.weight": kind.formula(tensors, module) for module in modules}
    plain = {name: torch.from_numpy(np.ascontiguousarray(matrices[name])) if name in matrices else tensor.float() for name, tensor in drawn.items()}
    save(folder / "plain", plain, config)
    return matrices
