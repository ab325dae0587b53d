"""Scales of K and V that a checkpoint stores for a cache in FP8: its numbers are the codes of k / k_scale and v / v_scale, times the scale.

The reference is transformers with K and V of every attention rounded in this way. A number that is rounded is either the same or a step of FP8
away, so that there is no tolerance to derive: what is allowed is a small part of what the rounding changes at all. Other scales, or none,
change as much as the rounding itself.
"""

import json
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from family_checkpoints import CONFIGURATIONS, write_checkpoint  # noqa: E402
from golden_support import Reference, Run, random_prompt, supported_isas  # noqa: E402

torch.set_num_threads(1)  # as in test_families.py
SCHEME = {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True, "dynamic": False}
# The names of a layer's scales, as compressed-tensors, ModelOpt and AutoFP8 write them.
NAMES = [("self_attn.k_scale", "self_attn.v_scale"), ("self_attn.k_proj.k_scale", "self_attn.v_proj.v_scale"),
         ("self_attn.k_proj.output_scale", "self_attn.v_proj.output_scale"), ("self_attn.attn.k_scale", "self_attn.attn.v_scale")]  # fmt: skip
# Norms of k by head and of whole rows, of v; soft caps; windows; K and V of another layer.
FAMILIES = ["llama-control", "llama-control-tied-bf16", "gemma2", "gemma3", "gemma3n", "gemma4", "olmo2"]


def rounded(x, scale):
    return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale


def layer_of_kv(module):
    """The layer whose K and V this one attends to."""
    if not getattr(module, "is_kv_shared_layer", False):
        return module.layer_idx
    kinds, modes = module.config.layer_types, module.config.kv_sharing_modes
    return max(layer for layer in range(module.layer_idx) if modes[layer] != "reuse" and kinds[layer] == kinds[module.layer_idx])


def attend_in_fp8(module, query, key, value, mask, scaling=None, dropout=0.0, **more):
    k, v = module.config.kv_scales[layer_of_kv(module)]
    eager = sys.modules[type(module).__module__].eager_attention_forward
    return eager(module, query, rounded(key, k), rounded(value, v), mask, scaling=scaling, dropout=dropout, **more)


transformers.AttentionInterface.register("kv_in_fp8", attend_in_fp8)
transformers.AttentionMaskInterface.register("kv_in_fp8", transformers.masking_utils.eager_mask)


def with_scales(folder, names, scales, scheme=SCHEME):
    """The checkpoint in `folder` with scales of its layers; no matrix is quantised."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    prefix = next(name for name in tensors if name.endswith("layers.0.self_attn.q_proj.weight")).removesuffix("0.self_attn.q_proj.weight")
    for layer, (k, v) in enumerate(scales):
        for name, scale in zip(names, (k, v)):
            tensors[f"{prefix}{layer}.{name}"] = torch.tensor([scale], dtype=torch.float32)
    save_file(tensors, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "compressed-tensors", "config_groups": {}, "kv_cache_scheme": scheme}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("index,family", list(enumerate(FAMILIES)))
def test_logits_are_those_of_rounding_k_and_v_with_the_scales(index, family, tmp_path):
    write_checkpoint(tmp_path / "model", CONFIGURATIONS[family])
    reference = Reference(tmp_path / "model")
    num_layers = len(reference.layers)
    draw = np.random.default_rng(index)
    # K and V of about 1: scales that leave FP8's smallest numbers and its largest ones to round.
    scales = [tuple(float(np.float32(2.0**power)) for power in draw.uniform(-9, 3, 2)) for _ in range(num_layers)]
    prompt = random_prompt(40, reference.vocab)
    exact, tolerance = reference(prompt)
    reference.config.kv_scales = scales
    reference.model.set_attn_implementation("kv_in_fp8")
    expected, _ = reference(prompt)
    with_scales(tmp_path / "model", NAMES[index % len(NAMES)], scales)

    plain = Run(tmp_path / "model", prompt, reference.vocab, tmp_path, kv="f32")
    run = Run(tmp_path / "model", prompt, reference.vocab, tmp_path, kv="fp8")
    changed, off = np.abs(expected - exact).max(), np.abs(run.logits - expected).max()
    print(f"FP8 changes logits by {changed:.3g}; ours are off by {off:.3g}")
    assert np.abs(plain.logits - exact).max() <= tolerance.max(), "a cache in f32 has no scales"
    assert changed > 100 * tolerance.max(), "the scales say little"
    assert off < 0.05 * changed
    for isa, chunk, threads in ((supported_isas()[0], 7, 1), (supported_isas()[-1], 40, 2)):
        again = Run(tmp_path / "model", prompt, reference.vocab, tmp_path, kv="fp8", isa=isa, chunk=chunk, threads=threads)
        assert np.array_equal(again.logits, run.logits), (isa, chunk, threads)
