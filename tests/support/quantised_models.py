"""Tiny Llama checkpoints in the quantised formats of safetensors, as the programs that publish them write them.

make() writes one and gives the numbers that its matrices stand for; KINDS has all of them. compressed-tensors and bitsandbytes are the real
ones; the rest is written by quantised_by_hand.py. Matrices are [64..384, 128..384]: no kind has only sizes that a block of 128 divides.
"""

import dataclasses
import functools
import json

import numpy as np
import torch

import quantised_by_hand as by_hand
import quantised_by_library as by_library
import quantised_numbers as numbers
from tiny_model import byte_tokenizer

SHAPE = dict(vocab_size=320, hidden_size=256, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
             max_position_embeddings=1024, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
OF_A_LAYER = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
MODULES = [f"model.layers.{layer}.{part}" for layer in range(SHAPE["num_hidden_layers"]) for part in OF_A_LAYER]
ALL = [*MODULES, "lm_head"]


@dataclasses.dataclass(frozen=True)
class Kind:
    write: object  # (model, directory): config.json, model.safetensors
    formula: object  # (tensors, module): f32 [N, K]
    cannot_load: str = ""  # why transformers cannot read it on a CPU, or reads something else
    shape: dict = dataclasses.field(default_factory=dict)  # of the model, beside SHAPE
    needs: tuple = ()  # packages


GPTQMODEL = "it reads this with gptqmodel, which builds kernels for a GPU"


def integers(bits, group=None, symmetric=True, **more):
    strategy = {"strategy": "group", "group_size": group} if group else {"strategy": "channel"}
    return {"num_bits": bits, "type": "int", **strategy, "symmetric": symmetric, **more}


def compressed(groups, formula, cannot_load="", shape=None, **more):
    if isinstance(groups, dict) and "weights" in groups:
        groups = {"group_0": {"targets": ["Linear"], **groups}}
    return Kind(functools.partial(by_library.compressed, groups=groups, **more), formula, cannot_load, shape or {}, needs=("compressed_tensors",))


def by_numpy(quantise, formula, *cannot_load, dtype=torch.bfloat16, shape=None, **more):
    def write(model, directory):
        by_library.rewritten(model, directory, lambda tensors: quantise(tensors, **more), dtype)

    return Kind(write, formula, *cannot_load, shape=shape or {})


def gptq(bits, group, version=1, modules=MODULES, **more):
    formula = functools.partial(numbers.gptq, bits=bits, stored_less=2 - version)
    return by_numpy(by_hand.gptq, formula, GPTQMODEL, modules=modules, bits=bits, group=group, version=version, **more)


def auto_round(packing, formula, **more):
    return by_numpy(by_hand.auto_round, formula, "it reads this with auto-round, which is not here", modules=MODULES, packing=f"auto_round:{packing}", **more)


def fp8(cannot_load="", shape=None, **more):
    formula = functools.partial(numbers.scaled, scale="weight_scale_inv", block=more.get("block", (128, 128)))
    return by_numpy(by_hand.fp8, formula, cannot_load, shape=shape, modules=MODULES, **more)


def modelopt(algorithm, formula, cache=False, older=False):
    def write(model, directory):
        def quantise(tensors):
            settings = by_hand.modelopt(tensors, MODULES, algorithm, cache)
            return settings if older else by_hand.modelopt_config(settings)

        by_library.rewritten(model, directory, quantise, place="hf_quant_config.json" if older else "config.json")

    return Kind(write, formula, "it has no reader of ModelOpt's files")


def bitsandbytes(formula, **settings):
    return Kind(functools.partial(by_library.bitsandbytes, **settings), formula, needs=("bitsandbytes", "accelerate"))


def four_bits(kind, double, **more):
    formula = functools.partial(numbers.bitsandbytes_4bit, kind=kind)
    return bitsandbytes(formula, load_in_4bit=True, bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=double, bnb_4bit_compute_dtype=torch.bfloat16,
                        **more)


def mixed(tensors, module):
    """AutoRound's with more bits for some modules."""
    return numbers.gptq(tensors, module, 8 if module in MORE_BITS else 4)


EDGES = dict(intermediate_size=320)  # in blocks of 128 the last one is short
MORE_BITS = {f"model.layers.{layer}.mlp.down_proj": 8 for layer in range(SHAPE["num_hidden_layers"])}
BY_PLACE = {"group_0": {"targets": ["re:.*self_attn.*"], "weights": integers(4, 128)}, "group_1": {"targets": ["re:.*mlp.*"], "weights": integers(8)}}
PER_TENSOR_INPUT = {"num_bits": 8, "type": "int", "strategy": "tensor", "symmetric": True, "dynamic": False}
BLOCKS = functools.partial(numbers.scaled, block=(128, 128))
MX_BLOCKS = functools.partial(numbers.scaled, block=(1, 32))

KINDS = {
    "ct-w4a16": compressed("W4A16", numbers.packed_integers),
    "ct-w4a16-g32-asym": compressed({"weights": integers(4, 32, symmetric=False)}, numbers.packed_integers),
    "ct-w4a16-channel": compressed({"weights": integers(4)}, numbers.packed_integers),
    "ct-w8a16-channel-head": compressed({"weights": integers(8)}, numbers.packed_integers, ignore=()),
    "ct-w4a16-actorder": Kind(by_library.compressed_out_of_order, numbers.packed_integers, "compressed-tensors 0.20 does not read weight_g_idx",
                              needs=("compressed_tensors",)),
    "ct-two-groups": compressed(BY_PLACE, numbers.packed_integers),
    "ct-w8a8": compressed("W8A8", numbers.scaled),
    "ct-w8a8-static": compressed({"weights": integers(8), "input_activations": PER_TENSOR_INPUT}, numbers.scaled),
    "ct-fp8": compressed("FP8", numbers.scaled),
    "ct-fp8-cache": Kind(functools.partial(by_library.compressed_with_cache, groups="FP8"), numbers.scaled, needs=("compressed_tensors",)),
    "ct-fp8-dynamic": compressed("FP8_DYNAMIC", numbers.scaled),
    "ct-fp8-block": compressed("FP8_BLOCK", BLOCKS),
    "ct-fp8-block-edges": compressed("FP8_BLOCK", BLOCKS, shape=EDGES),
    "ct-nvfp4": compressed("NVFP4", numbers.nvfp4),
    "ct-nvfp4a16": compressed("NVFP4A16", numbers.nvfp4),
    "ct-mxfp4": compressed("MXFP4A16", numbers.mxfp4),
    "ct-mxfp8": compressed("MXFP8", MX_BLOCKS),
    "fp8": fp8(),
    "fp8-bf16-scales": fp8(scale=torch.bfloat16),
    "fp8-edges": fp8("it refuses matrices whose last block is short", shape=EDGES),
    "fp8-tensor": fp8(block=None),
    "gptq": gptq(4, 128),
    "gptq-g32-asym": gptq(4, 32, symmetric=False),
    "gptq-act-order": gptq(4, 64, in_order=False, old=True),
    "gptq-8bit-head": gptq(8, 128, modules=ALL),
    "gptq-3bit": gptq(3, 32, symmetric=False),
    "gptq-2bit": gptq(2, 64, symmetric=False),
    "gptq-v2": gptq(4, 64, version=2, symmetric=False),
    "gptq-one-group": gptq(4, -1),
    "awq": by_numpy(by_hand.awq, numbers.awq, GPTQMODEL, modules=MODULES, group=128, dtype=torch.float16),
    "awq-g64": by_numpy(by_hand.awq, numbers.awq, GPTQMODEL, modules=MODULES, group=64),
    "auto-round-gptq": auto_round("auto_gptq", functools.partial(numbers.gptq, bits=4), symmetric=True),
    "auto-round-mixed": auto_round("auto_gptq", mixed, symmetric=True, more=MORE_BITS),
    "auto-round-awq": auto_round("auto_awq", numbers.awq, symmetric=False, dtype=torch.float16),
    "modelopt-fp8": modelopt("FP8", numbers.scaled),
    "modelopt-fp8-older": modelopt("FP8", numbers.scaled, cache=True, older=True),
    "modelopt-nvfp4": modelopt("NVFP4", numbers.modelopt_nvfp4, cache=True),
    "modelopt-nvfp4-older": modelopt("NVFP4", numbers.modelopt_nvfp4, older=True),
    "bnb-nf4": four_bits("nf4", double=True),
    "bnb-nf4-plain": four_bits("nf4", double=False),
    "bnb-nf4-stored-as-bf16": four_bits("nf4", double=True, bnb_4bit_quant_storage=torch.bfloat16),
    "bnb-fp4": four_bits("fp4", double=False),
    "bnb-int8": bitsandbytes(numbers.bitsandbytes_8bit, load_in_8bit=True),
}


def draw(seed, **shape):
    """A model whose greedy tokens do not repeat: family_checkpoints.py says why these sizes."""
    import transformers

    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SHAPE, **shape}))
    factors = {"q_proj": 1.5, "o_proj": 5.0, "down_proj": 5.0, "lm_head": 3.0}
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.dim() == 1:
                tensor.normal_(1.0, 0.3)
            else:
                factor = next((factors[part] for part in name.split(".") if part in factors), 1.0)
                tensor.normal_(0.0, 1.0 if "embed_tokens" in name else factor * tensor.shape[1] ** -0.5)
    return model.to(torch.bfloat16).eval()


def make(kind, directory, seed=0):
    """Writes the checkpoint, and gives {name of a quantised matrix: f32 [N, K]}."""
    directory.mkdir(parents=True, exist_ok=True)
    KINDS[kind].write(draw(seed, **KINDS[kind].shape), directory)
    (directory / "tokenizer.json").write_text(json.dumps(byte_tokenizer(SHAPE["vocab_size"])))
    return matrices(kind, directory)


def tensors_of(directory):
    from safetensors.torch import load_file

    return load_file(directory / "model.safetensors")


def is_quantised(tensors, module):
    weight = tensors.get(f"{module}.weight")
    plain = (torch.bfloat16, torch.float16, torch.float32)
    return weight is None or weight.dtype not in plain or f"{module}.weight.absmax" in tensors


def matrices(kind, directory):
    """{name of a quantised matrix: f32 [N, K]} of the checkpoint as it is."""
    tensors = tensors_of(directory)
    return {f"{module}.weight": KINDS[kind].formula(tensors, module) for module in ALL if is_quantised(tensors, module)}


def write_plain(kind, source, directory, dtype=torch.float32):
    """The checkpoint that has those numbers themselves, and the rest of the tensors, in `dtype`."""
    from safetensors.torch import save_file

    directory.mkdir()
    plain = {name: torch.from_numpy(np.ascontiguousarray(matrix)) for name, matrix in matrices(kind, source).items()}
    for name, tensor in tensors_of(source).items():
        if name.endswith((".weight", ".bias")) and tensor.dtype in (torch.bfloat16, torch.float16, torch.float32):
            plain.setdefault(name, tensor)
    save_file({name: tensor.to(dtype) for name, tensor in plain.items()}, directory / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config.pop("quantization_config", None)
    (directory / "config.json").write_text(json.dumps(config))


# Numbers at the ends of each type of scale: no infinity, and no number that is none.
EXTREME_BITS = {torch.float16: (np.int16, [0x0000, -0x8000, 0x0001, -0x7FFF, 0x03FF, 0x0400, 0x7BFF, -0x0401, 0x3C00, 0x2E66]),
                torch.bfloat16: (np.int16, [0x0000, -0x8000, 0x0001, -0x7FFF, 0x007F, 0x0080, 0x7F7F, -0x0081, 0x3F80, 0x3DCD]),
                torch.float32: (np.int32, [0x00000000, -0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, -0x00800001, 0x3F8CCCCD, 0x3DCCCCCD])}
KEPT = ("g_idx", "weight_shape", "quant_map", "quant_state", "weight_format", ".input_", ".k_scale", ".v_scale", ".activation_scale")
FACTORS = ("weight_global_scale", "weight_scale_2")  # of a matrix; normal numbers: the first of them is divided by
LARGEST_BYTE = {torch.uint8: 254, torch.float8_e4m3fn: 126}  # of scales: E8M0's 255 and E4M3's 127 are no numbers, and NVFP4's have no sign


def extreme(name, tensor, generator):
    if tensor.dtype in EXTREME_BITS:
        stored, choices = EXTREME_BITS[tensor.dtype]
        drawn = generator.choice(np.array(choices[4:] if name.endswith(FACTORS) else choices, stored), tensor.numel())
    else:
        largest = LARGEST_BYTE.get(tensor.dtype, 255) if name.endswith("weight_scale") else 255
        drawn = generator.integers(0, largest, tensor.numel() * tensor.element_size(), dtype=np.uint8, endpoint=True)
    return torch.from_numpy(drawn).view(tensor.dtype).view(tensor.shape)


def make_extreme(kind, directory, seed=0):
    """make() with random codes, and scales at the ends of their types: subnormal, huge, zero, negative. Zero points stay where all are one
    number: a file that is said to be symmetric has no others."""
    from safetensors.torch import save_file

    make(kind, directory, seed)
    tensors, generator = tensors_of(directory), np.random.default_rng(seed)
    quantised = tuple(f"{module}." for module in ALL if is_quantised(tensors, module))
    for name, tensor in tensors.items():
        is_symmetric = name.endswith("qzeros") and len(tensor.unique()) == 1
        if name.startswith(quantised) and not is_symmetric and not any(part in name for part in KEPT):
            tensors[name] = extreme(name, tensor, generator)
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    return matrices(kind, directory)
