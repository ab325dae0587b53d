"""GGUF files that llama.cpp's converter makes of tiny random checkpoints: quire's logits and tokens are those of transformers."""

import dataclasses
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from family_checkpoints import CONFIGURATIONS, FULL, GEMMA3N, LONGROPE, MINISTRAL3_ROPE, SLIDING, Tiny, write_checkpoint  # noqa: E402
from file_lock import file_lock  # noqa: E402
from golden_support import Reference, Run, check_greedy, random_prompt  # noqa: E402
from gguf_converter import sources  # noqa: E402
from packages import PLACE, install  # noqa: E402
from test_mxfp4 import write_in_mxfp4  # noqa: E402

pytestmark = pytest.mark.full
HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 128}
CASES = {
    "llama": Tiny("llama", dict(rms_norm_eps=1e-2), {}),
    "llama3-rope-tied": Tiny("llama", dict(tie_word_embeddings=True, rope_parameters=LLAMA3), {}),
    "llama-linear-rope": Tiny("llama", dict(rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}), {}),
    "llama-head-dim": Tiny("llama", dict(head_dim=24, num_key_value_heads=1), {}),
    "mistral": Tiny("mistral", dict(sliding_window=None), {}),
    "qwen2": Tiny("qwen2", dict(rms_norm_eps=1e-2), {}),
    "qwen2-yarn": Tiny("qwen2", dict(rope_parameters=YARN, tie_word_embeddings=True), {}),
    "qwen3": Tiny("qwen3", dict(head_dim=24), {}),
    "qwen2vl": Tiny("qwen2", dict(rms_norm_eps=1e-2), {}),
    "qwen3vl": Tiny("qwen3", dict(head_dim=24), {}),
    "gemma": Tiny("gemma", dict(head_dim=24), {}),
    **{name: CONFIGURATIONS[name] for name in ("gemma4", "gemma4-embeddings-per-layer")},
    "gemma3n": Tiny("gemma3n_text", dict(GEMMA3N, altup_num_inputs=4, vocab_size_per_layer_input=320), {}),  # the converter pads that table with zeros
    "gemma4-k-is-v": CONFIGURATIONS["gemma4-hub-k-is-v-bf16"],
    "gemma2": Tiny("gemma2", dict(head_dim=24, query_pre_attn_scalar=24, sliding_window=24, attn_logit_softcapping=3.0, final_logit_softcapping=8.0), {}),
    "gemma3": Tiny("gemma3_text", dict(head_dim=24, query_pre_attn_scalar=24, sliding_window=24, num_hidden_layers=7,
                                       layer_types=[SLIDING] * 5 + [FULL] + [SLIDING]), {}),
    "phi3": Tiny("phi3", dict(sliding_window=24), {}),
    "phi3-longrope": Tiny("phi3", dict(original_max_position_embeddings=32, rope_parameters=LONGROPE, sliding_window=100), {}, lengths=(40, 300)),
    "granite": Tiny("granite", dict(embedding_multiplier=3.0, logits_scaling=0.5, residual_multiplier=0.7, attention_multiplier=0.2), {}),
    "olmo2": Tiny("olmo2", dict(rms_norm_eps=1e-2), {}),
    "smollm3": Tiny("smollm3", dict(num_hidden_layers=5), {}),
    "starcoder2": Tiny("starcoder2", dict(sliding_window=None), {}),  # GGUF has no window of it
    "stablelm": Tiny("stablelm", dict(use_qkv_bias=True), {}),
    **{name: CONFIGURATIONS[name] for name in ("stablelm-norms-of-heads", "stablelm-parallel")},
    "cohere": Tiny("cohere", dict(logit_scale=0.25), {}),
    "cohere2": Tiny("cohere2", dict(head_dim=16, sliding_window=24, num_hidden_layers=5, logit_scale=0.25), {}, spelling={"rotary_pct": 1.0}),
    "glm4": Tiny("glm4", dict(head_dim=16), {}),
    "glm": Tiny("glm", dict(head_dim=16, rms_norm_eps=1e-5), {}, spelling={"seq_length": 1024}),  # GGUF always has this epsilon of it
    "arcee": Tiny("arcee", dict(rms_norm_eps=1e-2, attention_bias=True, mlp_bias=True), {}),
    "apertus": Tiny("apertus", dict(rms_norm_eps=1e-2, rope_parameters={"rope_type": "default", "rope_theta": 1e4}), {}),
    "apertus-llama3-rope": Tiny("apertus", dict(rope_parameters=LLAMA3), {}),
    "seed_oss": Tiny("seed_oss", dict(head_dim=24, attention_out_bias=True, mlp_bias=True), {}),
    "exaone4-windows": Tiny("exaone4", dict(head_dim=24, sliding_window=24, num_hidden_layers=5), {}),
    "exaone4-llama3-rope": Tiny("exaone4", dict(sliding_window=None, layer_types=[FULL] * 4, rope_parameters=LLAMA3), {}),
    "ernie4_5": Tiny("ernie4_5", dict(head_dim=24, tie_word_embeddings=True), {}),
    "hunyuan": Tiny("hunyuan_v1_dense", dict(head_dim=24, attention_bias=True), {}),
    "nemotron": Tiny("nemotron", dict(norm_eps=1e-2, attention_bias=True, mlp_bias=True), {}),
    "olmo": Tiny("olmo", dict(), {}),
    "olmo-clipped": Tiny("olmo", dict(clip_qkv=0.9), {}),
    "olmo3": Tiny("olmo3", dict(sliding_window=24, num_hidden_layers=5), {}),
    "mistral3": Tiny("mistral", dict(sliding_window=None), {}),
    "ministral3": Tiny("ministral3", dict(head_dim=16, rope_parameters=MINISTRAL3_ROPE), {}),
    "phi2": Tiny("phi", dict(layer_norm_eps=1e-2, intermediate_size=256, num_key_value_heads=4), {}),
    "gpt2": Tiny("gpt2", dict(max_position_embeddings=512, layer_norm_epsilon=1e-2, n_inner=None), {}, spelling={"n_ctx": 512}),
    "starcoder": Tiny("gpt_bigcode", dict(max_position_embeddings=512, n_inner=None), {}),
    "gpt_neox": Tiny("gpt_neox", dict(layer_norm_eps=1e-2), {}, spelling={"rotary_pct": 0.25}),
    "gpt_neox-sequential": Tiny("gpt_neox", dict(use_parallel_residual=False), {}, spelling={"rotary_pct": 0.25}),
    "bloom": Tiny("bloom", dict(layer_norm_epsilon=1e-2), {}, spelling={"seq_length": 1024}),
    "mpt": Tiny("mpt", dict(), {}),
    "mpt-clipped": Tiny("mpt", dict(attn_config={"clip_qkv": 0.9}), {}),
    "falcon": Tiny("falcon", dict(bias=False), {}, spelling={"num_kv_heads": 1}),
    "falcon-two-norms": Tiny("falcon", dict(new_decoder_architecture=True, num_kv_heads=2), {}),
    "falcon-new-one-norm": Tiny("falcon", dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1), {}),
}
MIXTURES = {
    "mixtral": Tiny("mixtral", dict(num_local_experts=5, num_experts_per_tok=2, head_dim=24, sliding_window=None), {}),
    "qwen2_moe": CONFIGURATIONS["qwen2_moe"],
    "qwen3_moe": Tiny("qwen3_moe", dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, head_dim=24,
                                        norm_topk_prob=True), {}),
    "qwen3vl_moe": Tiny("qwen3_moe", dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=24, head_dim=24, norm_topk_prob=True), {}),
    "olmoe": CONFIGURATIONS["olmoe"],
    "granitemoe": CONFIGURATIONS["granitemoe"],
    "granitemoeshared": CONFIGURATIONS["granitemoeshared-bf16"],
    "phimoe": Tiny("phimoe", dict(num_local_experts=5, intermediate_size=40, attention_bias=True, lm_head_bias=True,
                                  original_max_position_embeddings=4096, sliding_window=None), {}),
    "phimoe-longrope": Tiny("phimoe", dict(num_local_experts=5, intermediate_size=40, max_position_embeddings=512, original_max_position_embeddings=512,
                                           sliding_window=None, rope_parameters={**LONGROPE, "original_max_position_embeddings": 512,
                                                                                 "short_mscale": 1.0, "long_mscale": 1.0}), {}),
    "ernie4_5_moe": CONFIGURATIONS["ernie4_5_moe"],
    "glm4_moe": CONFIGURATIONS["glm4_moe"],
    "glm4_moe-groups": CONFIGURATIONS["glm4_moe-groups-bf16"],
    "dots1": Tiny("dots1", dict(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=2, head_dim=24,
                                first_k_dense_replace=1, sliding_window=None), {}),
    "minimax_m2": CONFIGURATIONS["minimax_m2"],
    "gpt_oss": Tiny("gpt_oss", dict(head_dim=24, num_local_experts=8, num_experts_per_tok=3, intermediate_size=40, sliding_window=24,
                                    rope_parameters={"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 1e4,
                                                     "truncate": False}), {}),
    "gpt_oss-square": CONFIGURATIONS["gpt_oss-hub-square-bf16"],
    "hunyuan_moe": Tiny("hunyuan_v1_moe", dict(head_dim=16, num_experts=6, moe_topk=3, intermediate_size=40), {},
                        spelling={"moe_topk": [3] * 4, "moe_intermediate_size": [40] * 4, "num_shared_expert": [1] * 4}),
    "hy_v3": CONFIGURATIONS["hy_v3"],
    "gemma4-with-experts": CONFIGURATIONS["gemma4-with-experts"],
    "deepseek_v2": CONFIGURATIONS["deepseek_v2"],
    "deepseek_v2-lite": CONFIGURATIONS["deepseek_v2-lite-yarn-bf16"],
    "deepseek_v3": dataclasses.replace(CONFIGURATIONS["deepseek_v3"], spelling={"scoring_func": "sigmoid"}),
    "glm4_moe_lite": dataclasses.replace(CONFIGURATIONS["glm4_moe_lite"], spelling={"scoring_func": "sigmoid", "first_k_dense_replace": 1}),
}
CASES.update(MIXTURES)
# Names that the converter knows instead of transformers' class.
ARCHITECTURES = {"phimoe": "PhiMoEForCausalLM", "phimoe-longrope": "PhiMoEForCausalLM", "mpt": "MPTForCausalLM", "mpt-clipped": "MPTForCausalLM", "mistral3": "Mistral3ForConditionalGeneration",
                 "qwen2vl": "Qwen2VLForConditionalGeneration", "qwen3vl": "Qwen3VLForConditionalGeneration"}


@pytest.fixture(scope="session")
def converter():
    folder = PLACE / "gguf_converter"
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(PLACE / "gguf_converter.lock"):
        return sources(folder, install)


@pytest.mark.parametrize("name", CASES)
def test_logits_and_greedy_tokens_are_those_of_the_source(name, converter, tmp_path):
    tiny = CASES[name]
    write_checkpoint(tmp_path / "model", tiny)
    command = [sys.executable, HERE / "gguf_converter.py", converter, tmp_path / "model", tmp_path / "model.gguf"]
    done = subprocess.run(command + ([ARCHITECTURES[name]] if name in ARCHITECTURES else []), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    reference = Reference(tmp_path / "model")
    for length in tiny.lengths:
        prompt = random_prompt(length, reference.vocab)
        run = Run(tmp_path / "model.gguf", prompt, reference.vocab, tmp_path, greedy=32)
        reference(prompt)
        reference.check_rope(run)
        expected, tolerance = reference(prompt)
        difference = np.abs(run.logits - expected).max(axis=-1)
        print(f"{length} tokens: {(difference / tolerance).max():.3g} of the tolerance {tolerance.max():.3g}")
        assert (difference <= tolerance).all()
        check_greedy(reference, prompt, run.greedy)


def test_gpt_oss_in_mxfp4_has_the_bits_of_its_safetensors(converter, tmp_path):
    blocks = write_in_mxfp4(tmp_path)[0]
    command = [sys.executable, HERE / "gguf_converter.py", converter, blocks, tmp_path / "model.gguf"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    prompt = random_prompt(70, 320)
    for activations in ("f32", "int8"):
        ours = Run(tmp_path / "model.gguf", prompt, 320, tmp_path, greedy=16, activations=activations)
        theirs = Run(blocks, prompt, 320, tmp_path, greedy=16, activations=activations)
        assert np.array_equal(ours.logits.view(np.int32), theirs.logits.view(np.int32))
        assert np.array_equal(ours.experts, theirs.experts) and ours.greedy == theirs.greedy
