"""InternLM 2, which transformers does not have: a Llama whose tensors are packed and named as InternLM 2's has Llama's bits."""
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from family_checkpoints import CONFIGURATIONS, write_checkpoint  # noqa: E402
from golden_support import Run, random_prompt  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

NAMES = {"model.embed_tokens": "model.tok_embeddings", "lm_head": "output", "model.norm": "model.norm"}
OF_LAYERS = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.o_proj": "attention.wo",
             "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2"}


def regroup(llama, internlm2):
    """Writes the checkpoint in `llama` as InternLM 2's: for each kv head its query heads, k and v."""
    config = json.loads((llama / "config.json").read_text())
    tensors = load_file(llama / "model.safetensors")
    kv_heads = config["num_key_value_heads"]
    out = {new + ".weight": tensors[old + ".weight"] for old, new in NAMES.items() if old + ".weight" in tensors}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        q, k, v = (tensors[f"{prefix}self_attn.{name}_proj.weight"].chunk(kv_heads) for name in "qkv")
        out[prefix + "attention.wqkv.weight"] = torch.cat([rows for group in zip(q, k, v, strict=True) for rows in group])
        for old, new in OF_LAYERS.items():
            out[f"{prefix}{new}.weight"] = tensors[f"{prefix}{old}.weight"]
    internlm2.mkdir()
    save_file(out, internlm2 / "model.safetensors")
    theta = config["rope_parameters"]["rope_theta"]
    for key in ("architectures", "model_type", "rope_parameters", "head_dim", "attention_bias", "mlp_bias"):
        config.pop(key, None)
    config.update(model_type="internlm2", architectures=["InternLM2ForCausalLM"], bias=False, rope_theta=theta,
                  rope_scaling=None)
    (internlm2 / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("name", ["llama-control", "llama-control-tied-bf16"])
def test_a_regrouped_llama_has_llamas_bits(name, tmp_path):
    write_checkpoint(tmp_path / "llama", CONFIGURATIONS[name])
    regroup(tmp_path / "llama", tmp_path / "internlm2")
    prompt = random_prompt(40, 320)
    llama, internlm2 = (Run(tmp_path / kind, prompt, 320, tmp_path, greedy=32) for kind in ("llama", "internlm2"))
    assert np.array_equal(llama.logits.view(np.int32), internlm2.logits.view(np.int32))
    assert llama.greedy == internlm2.greedy
