"""`quire inspect` and `quire serve --plan` of a config.json without weights: what a model would take, counted by its published shape."""

import json
import re

import pytest
from test_cli import ROOT, quire

SLIDING, FULL = "sliding_attention", "full_attention"
# Shapes as their publishers give them.
GPT_OSS_20B = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": True, "hidden_act": "silu", "hidden_size": 2880, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 24, "intermediate_size": 2880, "num_local_experts": 32,
    "num_experts_per_tok": 4, "vocab_size": 201088, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 150000,
    "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": False, "eos_token_id": 200002, "layer_types": [SLIDING, FULL] * 12,
    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False},
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]},
}  # fmt: skip
QWEN3_30B_A3B = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": False, "hidden_act": "silu", "hidden_size": 2048, "head_dim": 128,
    "num_attention_heads": 32, "num_key_value_heads": 4, "num_hidden_layers": 48, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
    "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "rope_scaling": None, "sliding_window": None,
    "use_sliding_window": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA_2_7B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 32, "num_hidden_layers": 32, "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK_V2 = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_act": "silu", "hidden_size": 5120, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_hidden_layers": 60, "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160,
    "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "group_limited_greedy",
    "n_group": 8, "topk_group": 3, "norm_topk_prob": False, "routed_scaling_factor": 16.0, "scoring_func": "softmax", "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840,
    "rms_norm_eps": 1e-6, "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
                     "mscale_all_dim": 0.707},
}  # fmt: skip
DEEPSEEK_V3 = {
    **DEEPSEEK_V2, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "topk_method": "noaux_tc", "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid", "vocab_size": 129280,
}  # fmt: skip
LLAMA_2_70B = {**LLAMA_2_7B, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "intermediate_size": 28672}


@pytest.fixture
def write(tmp_path):
    def write(config, **changes):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
        return tmp_path

    return write


def inspected(folder, *args):
    done = quire("inspect", "--json", *args, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kv_bytes(seen, dtype, tokens):
    (row,) = (row for row in seen["kv"] if row["dtype"] == dtype)
    (context,) = (context for context in row["contexts"] if context["tokens"] == tokens)
    return context["bytes"]


def test_gpt_oss_20b_fits_into_16_gib_and_reads_the_experts_of_a_token(write):
    seen = inspected(write(GPT_OSS_20B), "--tensors")
    assert seen["parameters"] == 20_914_757_184 and not seen["has_weights"]
    assert seen["packed_bytes"] < 14 * 2**30
    # Of a token: 4 of 32 experts in MXFP4 (17 bytes for 32 numbers), the rest but the embedding in bf16.
    layers, experts, hidden, q, kv, vocab = 24, 32, 2880, 64 * 64, 2 * 8 * 64, 201088
    of_experts = layers * 4 * 3 * hidden * hidden * 17 / 32
    rest = layers * (hidden * (2 * q + kv) + experts * hidden) * 2 + vocab * hidden * 2
    assert seen["estimated_speed"]["step_bytes"] == pytest.approx(of_experts + rest, rel=0.05)
    assert {tensor["dtype"] for tensor in seen["tensors"]} == {"MXFP4", "BF16"}
    assert sum(tensor["bytes"] for tensor in seen["tensors"]) == seen["bytes"]


def test_qwen3_30b_a3b_reads_three_billion_of_its_parameters(write):
    seen = inspected(write(QWEN3_30B_A3B))
    assert seen["parameters"] == 30_532_122_624 and seen["bytes"] == 2 * seen["parameters"]
    layers, hidden, width, q, kv, vocab = 48, 2048, 768, 32 * 128, 2 * 4 * 128, 151936
    active = layers * (8 * 3 * hidden * width + hidden * (2 * q + kv) + 128 * hidden) + vocab * hidden
    assert seen["estimated_speed"]["step_bytes"] == pytest.approx(2 * active, rel=0.01)
    quantised = inspected(write(QWEN3_30B_A3B), "--quantize", "w4a8")
    assert quantised["packed_bytes"] < 0.32 * seen["packed_bytes"]


def test_tokens_a_second_are_the_bandwidth_over_what_a_token_reads(write):
    for config in (GPT_OSS_20B, QWEN3_30B_A3B):
        seen = inspected(write(config))
        speed = seen["estimated_speed"]
        assert speed["tokens_per_s"] == pytest.approx(speed["read_bytes_per_s"] / speed["step_bytes"], rel=1e-3)
        longest = kv_bytes(seen, seen["kv_dtype"], config["max_position_embeddings"])
        assert speed["tokens_per_s_at_max_model_len"] == pytest.approx(speed["read_bytes_per_s"] / (speed["step_bytes"] + longest), rel=1e-3)


# 4,096 tokens in bf16, by the kind of attention: docs/kv-cache.md has these numbers.
CACHES = [
    ("Llama 2 7B, MHA", LLAMA_2_7B, 2 * 2**30),
    ("Llama 2 70B, if it were MHA", {**LLAMA_2_70B, "num_key_value_heads": 64}, 10 * 2**30),
    ("Llama 2 70B, GQA", LLAMA_2_70B, 5 * 2**28),
    ("Llama 2 70B, if it were MQA", {**LLAMA_2_70B, "num_key_value_heads": 1}, 5 * 2**25),
    ("DeepSeek-V2, MLA", DEEPSEEK_V2, 283_115_520),
    ("DeepSeek-V3, MLA", DEEPSEEK_V3, 4096 * 61 * 576 * 2),
]


@pytest.mark.parametrize(("name", "config", "expected"), CACHES)
def test_caches_of_every_kind_of_attention_are_counted_to_the_byte(write, name, config, expected):
    seen = inspected(write(config), "--max-model-len", "4096")
    assert kv_bytes(seen, "bf16", 4096) == expected
    page = (ROOT / "docs" / "kv-cache.md").read_text()
    assert re.search(rf"^\| {re.escape(name)} \| .* \| {expected:,} \|", page, re.M), expected


def test_a_latent_cache_of_deepseek_v3_holds_seventy_times_the_tokens_of_its_heads(write):
    def tokens(config):
        text = quire("serve", write(config), "--plan", "--kv-cache-memory", "64GiB", "--max-num-seqs", "1024").stdout
        return int(re.search(r"KV cache: \d+ blocks of 16 tokens, (\d+) tokens", text).group(1))

    # As many numbers as K [192] and V [128] of 128 heads have, as a Llama of so many heads of 160.
    heads = {**LLAMA_2_7B, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "head_dim": 160,
             "max_position_embeddings": 163840}
    assert tokens(DEEPSEEK_V3) >= 70 * tokens(heads)


def test_a_latent_is_one_row_in_the_table_of_the_cache(write):
    done = quire("inspect", write(DEEPSEEK_V3))
    assert "KV cache: 61 layers x 512 + 64 of a latent x bytes" in done.stdout
    assert {row["dtype"] for row in inspected(write(DEEPSEEK_V3))["kv"]} == {"f32", "bf16", "fp8", "int8"}
    assert inspected(write(DEEPSEEK_V3))["parameters"] == 671_026_419_200


def test_a_plan_of_a_config_says_what_serving_would_take(write):
    folder = write(GPT_OSS_20B)
    done = quire("serve", folder, "--plan", "--kv-cache-memory", "4GiB")
    assert done.returncode == 0, done.stderr
    assert "GptOssForCausalLM, 20914.8 M parameters" in done.stdout
    assert "as stored, " in done.stdout and ", by config.json: there are no weights here" in done.stdout
    assert "experts of a token: 4 of 32 in each of 24 layers; " in done.stdout
    assert re.search(r"^decoding speed: about [\d.]+ tokens/s for one stream on the CPU, [\d.]+ at 131072 tokens of context \(an estimate: ", done.stdout, re.M)
    assert re.search(r"^ *131072 +1 +1$", done.stdout, re.M)


def test_other_commands_need_the_weights(write):
    folder = write(LLAMA_2_7B)
    for command in (("serve", folder, "--port", "0"), ("generate", folder, "--prompt", "a")):
        done = quire(*command)
        assert done.returncode == 2 and "model.safetensors is missing" in done.stderr, command
    done = quire("doctor", folder)
    assert "has a config.json and no weights" in done.stdout


@pytest.mark.parametrize(("changes", "why"), [
    ({"torch_dtype": "float8_e4m3fn"}, "key 'torch_dtype' is \"float8_e4m3fn\""),
    ({"torch_dtype": 16}, "key 'torch_dtype' is 16"),
    ({"quantization_config": {"quant_method": "aqlm", "bits": 2}}, "key 'quantization_config' is set"),
])  # fmt: skip
def test_a_config_that_cannot_be_read_is_refused_by_key(write, changes, why):
    done = quire("inspect", write(LLAMA_2_7B, **changes))
    assert done.returncode == 2 and why in done.stderr, done.stderr


@pytest.mark.parametrize("width", [2879, 2880, 2881])
def test_mxfp4_needs_whole_blocks(write, width):
    done = quire("inspect", write(GPT_OSS_20B, intermediate_size=width))
    if width % 32 == 0:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2 and f"whose blocks have 32 inputs: tensor 'model.layers.0.mlp.experts.down_proj' has {width}" in done.stderr


def test_weights_that_are_named_and_not_there_are_missed(write):
    folder = write(LLAMA_2_7B)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}))
    done = quire("inspect", folder)
    assert done.returncode == 2 and "model-00001-of-00002.safetensors is missing" in done.stderr


def test_a_plan_has_the_tensors_bytes_and_weights_of_the_model_itself(tmp_path):
    stories = ROOT / "models" / "stories"
    (tmp_path / "config.json").write_text((stories / "config.json").read_text())
    planned, there = inspected(tmp_path, "--tensors"), inspected(stories, "--tensors")
    for same in ("tensors", "parameters", "bytes", "packed_bytes", "weights", "kv_dtype", "description"):
        assert planned[same] == there[same], same
    assert [row["bytes_per_token"] for row in planned["kv"]] == [row["bytes_per_token"] for row in there["kv"]]
    assert planned["estimated_speed"]["step_bytes"] == there["estimated_speed"]["step_bytes"]
