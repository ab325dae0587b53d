"""Tiny random checkpoints of the model families besides llama, mistral, qwen2 and qwen3, as transformers writes them.

Weights are drawn so that everything a family does shows in the logits, and so that greedy tokens do not repeat: attention
scores have a standard deviation of SCORES, a branch adds BRANCHES times the length of an embedding (a tied model would
otherwise repeat its last token), and norms and biases are not the ones and zeros that transformers would leave. Larger scores
would enlarge rounding errors, larger biases would make all tokens alike. Constants that are too mild to show at these sizes (a
soft cap of 50 on such scores, an eps of 1e-6) are changed in one configuration of their family.
"""
import copy
import dataclasses
import json
import math

SHAPE = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=1024, bos_token_id=1, eos_token_id=2, pad_token_id=0)
VISION = {
    "Gemma3ForConditionalGeneration": dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                           num_attention_heads=2,
                                           image_size=32, patch_size=8),
    "Gemma3nForConditionalGeneration": dict(hidden_size=32, vocab_size=8, vocab_offset=320),
    "Gemma4ForConditionalGeneration": dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                           num_attention_heads=2,
                                           num_key_value_heads=2, head_dim=16, patch_size=8,
                                           position_embedding_size=16),
    "Qwen2VLForConditionalGeneration": dict(depth=1, embed_dim=32, hidden_size=64, num_heads=2, patch_size=4,
                                            spatial_merge_size=2),
    "Qwen2_5_VLForConditionalGeneration": dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2,
                                               out_hidden_size=64,
                                               patch_size=4, spatial_merge_size=2, window_size=16,
                                               fullatt_block_indexes=[0]),
    "Qwen3VLForConditionalGeneration": dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2,
                                            out_hidden_size=64,
                                            patch_size=4, spatial_merge_size=2, temporal_patch_size=2,
                                            num_position_embeddings=16, deepstack_visual_indexes=[0]),
    "Qwen3VLMoeForConditionalGeneration": dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64,
                                               patch_size=4, spatial_merge_size=2, temporal_patch_size=2,
                                               num_position_embeddings=16, deepstack_visual_indexes=[0]),
    "Idefics3ForConditionalGeneration": dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                             num_attention_heads=2, image_size=32, patch_size=8),
    "LlavaForConditionalGeneration": dict(model_type="clip_vision_model", hidden_size=32, intermediate_size=32,
                                          num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8,
                                          projection_dim=32),
    "LlavaNextForConditionalGeneration": dict(model_type="clip_vision_model", hidden_size=32, intermediate_size=32,
                                              num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8,
                                              projection_dim=32),
    "LlavaOnevisionForConditionalGeneration": dict(model_type="siglip_vision_model", hidden_size=32,
                                                   intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                                                   image_size=32, patch_size=8),
    "SmolVLMForConditionalGeneration": dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                            num_attention_heads=2,
                                            image_size=32, patch_size=8),
    "Mistral3ForConditionalGeneration": dict(model_type="pixtral", hidden_size=32, intermediate_size=32,
                                             num_hidden_layers=1,
                                             num_attention_heads=2, head_dim=16, image_size=32, patch_size=8),
}
GEMMA3N = dict(head_dim=16, num_hidden_layers=6, num_kv_shared_layers=2, vocab_size_per_layer_input=300,
               hidden_size_per_layer_input=8, laurel_rank=8, altup_num_inputs=3, sliding_window=24, rms_norm_eps=1e-2,
               activation_sparsity_pattern=[0.6, 0.3, 0.0, 0.0, 0.0, 0.0], final_logit_softcapping=8.0,
               layer_types=["sliding_attention", "full_attention"] * 3)
ABSENT = object()  # a key that is taken out of config.json
SLIDING, FULL = "sliding_attention", "full_attention"
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
MINISTRAL3_ROPE = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 32,
                   "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                   "llama_4_scaling_beta": 0.1}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4 + [1.5] * 4,
            "long_factor": [2.0] * 3 + [4.0] * 3 + [9.0] * 2}
UNIT_OFFSET_NORMS = ("gemma", "gemma2", "gemma3_text", "vaultgemma", "nemotron")  # these multiply by 1 + w
UNGATED = ("starcoder2", "arcee", "nanochat", "nemotron", "phi", "gpt_neox", "gptj", "falcon", "gpt2", "gpt_bigcode",
           "opt", "bloom", "mpt", "apertus")  # MLPs without a gate
DOWN = ("down_proj.weight", "c_proj.weight", "fc2.weight", "fc_out.weight", "dense_4h_to_h.weight")
OUT = ("o_proj", "dense.weight", "out_proj")  # behind attention
GEMMA_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm", "post_per_layer_input_norm")
NORMS_OF_BRANCHES = {"gemma2": GEMMA_NORMS, "gemma3_text": GEMMA_NORMS, "gemma4_text": GEMMA_NORMS,
                     "olmo2": GEMMA_NORMS, "exaone4": GEMMA_NORMS,
                     "olmo3": GEMMA_NORMS, "glm4": ("post_self_attn_layernorm", "post_mlp_layernorm")}
MIXTURES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe", "granitemoeshared", "phimoe", "ernie4_5_moe", "glm4_moe",
            "dots1", "solar_open", "minimax_m2", "gpt_oss", "hunyuan_v1_moe", "exaone_moe", "hy_v3", "qwen3_vl_moe_text",
            "deepseek_v2", "deepseek_v3", "glm4_moe_lite", "mistral4")
MLA = dict(num_key_value_heads=4, q_lora_rank=48, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24)
SCORES = 1.5  # standard deviation of attention scores, about
BRANCHES = 5.0  # length of what a branch adds, in lengths of the embedding, about


@dataclasses.dataclass(frozen=True)
class Tiny:
    """A configuration: the text model's model_type, and what its config has beyond SHAPE."""

    family: str
    changes: dict
    # Name of a trait -> keys of config.json ("a.b" reaches into a) that take it away or change it.
    traits: dict = dataclasses.field(default_factory=dict)
    spelling: dict = dataclasses.field(default_factory=dict)  # keys of config.json as the hub's files have them
    dtype: str = "float32"
    wrapper: str = ""  # class of the model with images that this is the text part of; "": none
    lengths: tuple = (5, 40, 300)  # of the prompts: within a window, past blocks of 16 tokens, past a span of 256


def has_experts(tiny):
    return tiny.family in MIXTURES or tiny.changes.get("enable_moe_block", False)


def theta(value, *places):
    return {"rope_parameters." + ".".join((*places, "rope_theta")): value}


CONFIGURATIONS = {
    "llama-control": Tiny("llama", {}, {"theta": theta(3e4)}),
    "llama-control-tied-bf16": Tiny("llama", {"tie_word_embeddings": True}, {"theta": theta(3e4)}, dtype="bfloat16"),
    "gemma2": Tiny(
        "gemma2", dict(head_dim=24, query_pre_attn_scalar=32, sliding_window=24, attn_logit_softcapping=3.0,
                       final_logit_softcapping=8.0, rms_norm_eps=1e-2),
        {"score cap": {"attn_logit_softcapping": None}, "logit cap": {"final_logit_softcapping": None},
         "scale": {"query_pre_attn_scalar": 24}, "window": {"sliding_window": 25}, "eps": {"rms_norm_eps": 5e-3},
         "order of layers": {"layer_types": [FULL, SLIDING] * 2}, "exact gelu": {"hidden_activation": "gelu"}}),
    "gemma2-hub-bf16": Tiny(
        "gemma2", dict(hidden_size=72, head_dim=16, num_key_value_heads=1, num_hidden_layers=5,
                       query_pre_attn_scalar=16,
                       sliding_window=100),
        {"score cap": {"attn_logit_softcapping": None}, "logit cap": {"final_logit_softcapping": None},
         "window": {"sliding_window": 101}},
        spelling={"layer_types": ABSENT, "rope_parameters": ABSENT, "rope_theta": 10000.0,
                  "hidden_act": "gelu_pytorch_tanh",
                  "cache_implementation": "hybrid", "tie_word_embeddings": ABSENT}, dtype="bfloat16"),
    "gemma3": Tiny(
        "gemma3_text", dict(head_dim=24, query_pre_attn_scalar=32, sliding_window=24, num_hidden_layers=7,
                            rms_norm_eps=1e-2),
        {"window": {"sliding_window": 25}, "local theta": theta(1e6, SLIDING), "global theta": theta(1e4, FULL),
         "scale": {"query_pre_attn_scalar": 24}, "eps": {"rms_norm_eps": 5e-3},
         "layers": {"layer_types": [SLIDING] * 7}}),
    "gemma3-hub-linear-bf16": Tiny(
        "gemma3_text", dict(head_dim=16, num_key_value_heads=1, sliding_window=100, query_pre_attn_scalar=16),
        {"window": {"sliding_window": 101}, "linear": {"rope_scaling": None}, "pattern": {"sliding_window_pattern": 2},
         "local theta": {"rope_local_base_freq": 3e4}},
        spelling={"layer_types": ABSENT, "rope_parameters": ABSENT, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
                  "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window_pattern": 3},
        dtype="bfloat16"),
    "gemma3-with-images": Tiny(
        "gemma3_text", dict(head_dim=24, query_pre_attn_scalar=32, sliding_window=4,
                            layer_types=[SLIDING, SLIDING, SLIDING, FULL],
                            rope_parameters={FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                             SLIDING: {"rope_type": "default", "rope_theta": 1e4}}),
        {"window": {"sliding_window": 5}, "global theta": theta(1e4, FULL),
         "linear": {"rope_parameters.full_attention.rope_type": "default"}}, wrapper="Gemma3ForConditionalGeneration"),
    "gemma3n": Tiny(
        "gemma3n_text", GEMMA3N,
        {"window": {"sliding_window": 25}, "local theta": theta(1e6, SLIDING), "global theta": theta(1e4, FULL),
         "logit cap": {"final_logit_softcapping": 1e4}, "all gates": {"activation_sparsity_pattern": [0.0] * 6},
         "first stream unscaled": {"altup_correct_scale": False}, "eps": {"rms_norm_eps": 5e-3},
         "other sources of K and V": {"layer_types": [SLIDING, FULL, FULL, SLIDING, SLIDING, FULL]}}),
    "gemma3n-hub-bf16": Tiny(
        "gemma3n_text", dict(GEMMA3N, num_hidden_layers=10, layer_types=None, num_kv_shared_layers=3, altup_num_inputs=4,
                             vocab_size_per_layer_input=320, sliding_window=100, activation_sparsity_pattern=None,
                             laurel_rank=16, final_logit_softcapping=30.0, rms_norm_eps=1e-6),
        {"window": {"sliding_window": 101}, "local theta": {"rope_local_base_freq": 3e4}},
        spelling={"layer_types": ABSENT, "rope_parameters": ABSENT, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
                  "rope_scaling": None, "intermediate_size": [96] * 10},
        dtype="bfloat16"),
    "phi3": Tiny("phi3", dict(sliding_window=24, rms_norm_eps=1e-2),
                 {"window": {"sliding_window": 25}, "eps": {"rms_norm_eps": 5e-3}}),
    "phi3-many-kv-heads-bf16": Tiny(
        "phi3", dict(num_key_value_heads=4, num_hidden_layers=5, intermediate_size=112, sliding_window=None),
        {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "rope_scaling": None, "num_key_value_heads": ABSENT},
        dtype="bfloat16"),
    "phi3-partly-rotated": Tiny(
        "phi3", dict(tie_word_embeddings=True, sliding_window=1024,
                     rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}),
        {"part that turns": {"rope_parameters.partial_rotary_factor": 0.5}}),
    "phi3-longrope-short": Tiny(
        "phi3", dict(max_position_embeddings=512, original_max_position_embeddings=512,
                     rope_parameters={**LONGROPE, "factor": 8.0}),
        {"short factors": {"rope_parameters.short_factor": [1.0] * 8},
         "factor on cos and sin": {"rope_parameters.attention_factor": 1.0}}),
    "phi3-longrope-long": Tiny(
        "phi3", dict(original_max_position_embeddings=32, rope_parameters=LONGROPE, sliding_window=100),
        {"long factors": {"rope_parameters.long_factor": [1.0] * 4 + [1.5] * 4},
         "factor on cos and sin": {"rope_parameters.attention_factor": 1.0}, "window": {"sliding_window": 101}},
                               lengths=(40, 300)),
    "phi3-hub-longrope-partly-rotated": Tiny(
        "phi3", dict(original_max_position_embeddings=32, tie_word_embeddings=True, sliding_window=2048,
                     rope_parameters={**LONGROPE, "short_factor": [1.0] * 6,
                                      "long_factor": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0],
                                      "partial_rotary_factor": 0.75}),
        {"part that turns": {"partial_rotary_factor": 1.0,
                             "rope_scaling.long_factor": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 9.0, 9.0],
                             "rope_scaling.short_factor": [1.0] * 8},
         "longrope": {"rope_scaling": None}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.75,
                  "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 6,
                                   "long_factor": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0]}},
        lengths=(40, 300)),
    "granite": Tiny(
        "granite", dict(embedding_multiplier=3.0, logits_scaling=0.5, residual_multiplier=0.7, attention_multiplier=0.2,
                        attention_bias=True, mlp_bias=True, rms_norm_eps=1e-2),
        {"embeddings": {"embedding_multiplier": 2.9}, "logits": {"logits_scaling": 0.51},
         "residual": {"residual_multiplier": 0.69},
         "scale": {"attention_multiplier": 0.25}, "eps": {"rms_norm_eps": 5e-3}}),
    "granite-hub-bf16": Tiny(
        "granite", dict(embedding_multiplier=12.0, logits_scaling=0.125, residual_multiplier=0.22,
                        attention_multiplier=0.25,
                        tie_word_embeddings=True, num_key_value_heads=4, num_hidden_layers=5),
        {"theta": {"rope_theta": 1e4}, "residual": {"residual_multiplier": 1.0}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e7, "rope_scaling": None}, dtype="bfloat16"),
    "olmo2": Tiny("olmo2", dict(head_dim=24, rms_norm_eps=1e-2), {"theta": theta(5e5), "eps": {"rms_norm_eps": 5e-3}}),
    "olmo2-hub-bf16": Tiny(
        "olmo2", dict(num_key_value_heads=4, num_hidden_layers=5, num_attention_heads=8),
                           {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e5, "rope_scaling": None}, dtype="bfloat16"),
    "olmo3": Tiny(
        "olmo3", dict(sliding_window=24, num_hidden_layers=5, rms_norm_eps=1e-2,
                      rope_parameters={FULL: YARN, SLIDING: {"rope_type": "default", "rope_theta": 5e5}}),
        {"yarn": {"rope_parameters.full_attention.rope_type": "default"}, "local theta": theta(1e4, SLIDING),
         "window": {"sliding_window": 25}, "pattern": {"layer_types": [SLIDING, FULL] * 2 + [SLIDING]},
         "eps": {"rms_norm_eps": 5e-3}}),
    "olmo3-hub-yarn": Tiny(
        "olmo3", dict(sliding_window=100, layer_types=[SLIDING, FULL] * 2, num_key_value_heads=4),
        {"window": {"sliding_window": 101}, "yarn": {"rope_scaling": None},
         "factor on cos and sin": {"rope_scaling.attention_factor": 1.0}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e5,
                  "rope_scaling": {"attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0,
                                   "factor": 8.0,
                                   "original_max_position_embeddings": 64, "rope_type": "yarn"}}),
    "cohere": Tiny(
        "cohere", dict(use_qk_norm=True, logit_scale=0.25, layer_norm_eps=1e-2),
        {"logits": {"logit_scale": 0.24}, "norm of q and k": {"use_qk_norm": False}, "eps": {"layer_norm_eps": 5e-3}}),
    "cohere-plain-bf16": Tiny(
        "cohere", dict(logit_scale=0.5, num_key_value_heads=4, num_hidden_layers=3, tie_word_embeddings=False),
        {"theta": {"rope_theta": 5e5}}, spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "rope_scaling": None},
        dtype="bfloat16"),
    "cohere2": Tiny(
        "cohere2", dict(head_dim=24, sliding_window=24, num_hidden_layers=5, logit_scale=0.25, layer_norm_eps=1e-2),
        {"window": {"sliding_window": 25}, "logits": {"logit_scale": 0.24}, "theta": theta(3e4),
         "layers without rope": {"layer_types": [SLIDING] * 5}, "eps": {"layer_norm_eps": 5e-3}}),
    "cohere2-hub-bf16": Tiny(
        "cohere2", dict(sliding_window=100, logit_scale=0.5, num_key_value_heads=1),
        {"window": {"sliding_window": 101}, "pattern": {"sliding_window_pattern": 4}},
        spelling={"layer_types": ABSENT, "rope_parameters": ABSENT, "rope_theta": 5e4, "rope_scaling": None,
                  "sliding_window_pattern": 2,
                  "rotary_pct": 1.0, "position_embedding_type": "rope_gptj", "use_qk_norm": False,
                  "tie_word_embeddings": ABSENT},
        dtype="bfloat16"),
    "glm4": Tiny(
        "glm4", dict(head_dim=16, rms_norm_eps=1e-2),
        {"part that turns": {"rope_parameters.partial_rotary_factor": 0.25}, "eps": {"rms_norm_eps": 5e-3},
         "biases": {"attention_bias": False}}),
    "glm4-hub-bf16": Tiny(
        "glm4", dict(head_dim=24, attention_bias=False, num_hidden_layers=5, num_key_value_heads=1,
                     tie_word_embeddings=True),
        {"theta": {"rope_theta": 3e4}, "part that turns": {"partial_rotary_factor": 0.25}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.5}, dtype="bfloat16"),
    "stablelm-norms-of-heads": Tiny(
        "stablelm", dict(qk_layernorm=True, use_qkv_bias=True, layer_norm_eps=1e-2),
        {"norms of heads": {"qk_layernorm": False}, "biases": {"use_qkv_bias": False}, "eps": {"layer_norm_eps": 5e-3},
         "part that turns": {"rope_parameters.partial_rotary_factor": 0.5}}),
    "stablelm-parallel": Tiny(
        "stablelm", dict(use_parallel_residual=True, qk_layernorm=True, num_key_value_heads=4, num_hidden_layers=5),
        {"theta": theta(3e4), "norms of heads": {"qk_layernorm": False}}),
    "stablelm-hub-bf16": Tiny(
        "stablelm", dict(num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True),
        {"part that turns": {"partial_rotary_factor": 0.5}, "theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.25, "rope_scaling": None},
                              dtype="bfloat16"),
    "starcoder2": Tiny(
        "starcoder2", dict(sliding_window=24, norm_epsilon=1e-2),
        {"window": {"sliding_window": 25}, "exact gelu": {"hidden_act": "gelu"}, "eps": {"norm_epsilon": 5e-3}}),
    "starcoder2-hub-bf16": Tiny(
        "starcoder2", dict(use_bias=False, num_hidden_layers=5, num_key_value_heads=1, sliding_window=100),
        {"window": {"sliding_window": 101}, "theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e6, "tie_word_embeddings": ABSENT}, dtype="bfloat16"),
    "ministral3": Tiny(
        "ministral3", dict(head_dim=16, rope_parameters=MINISTRAL3_ROPE, rms_norm_eps=1e-2),
        {"q by position": {"rope_parameters.llama_4_scaling_beta": 0.0},
         "yarn": {"rope_parameters.rope_type": "default"},
         "where q grows": {"rope_parameters.original_max_position_embeddings": 33}, "eps": {"rms_norm_eps": 5e-3}}),
    "ministral3-window-bf16": Tiny(
        "ministral3", dict(head_dim=24, rope_parameters={**MINISTRAL3_ROPE, "factor": 8.0, "llama_4_scaling_beta": 0.5},
                           sliding_window=100, num_hidden_layers=5, num_key_value_heads=1, tie_word_embeddings=True),
        {"window": {"sliding_window": 101}}, dtype="bfloat16"),
    "ministral3-with-images": Tiny(
        "ministral3", dict(head_dim=24, rope_parameters=MINISTRAL3_ROPE),
        {"q by position": {"rope_parameters.llama_4_scaling_beta": 0.0}}, wrapper="Mistral3ForConditionalGeneration"),
    "mistral-with-images": Tiny(
        "mistral", dict(head_dim=24, sliding_window=None, tie_word_embeddings=True),
        {"theta": {"rope_theta": 1e4}}, spelling={"rope_parameters": ABSENT, "rope_theta": 1e9},
        wrapper="Mistral3ForConditionalGeneration", dtype="bfloat16"),
    "smollm3": Tiny(
        "smollm3", dict(rms_norm_eps=1e-2, num_hidden_layers=5),
        {"layers without rope": {"no_rope_layers": [1] * 5}, "theta": theta(1e4), "eps": {"rms_norm_eps": 5e-3}}),
    "smollm3-windows": Tiny(
        "smollm3", dict(no_rope_layer_interval=2, use_sliding_window=True, sliding_window=24, attention_bias=True,
                        mlp_bias=True,
                        tie_word_embeddings=False),
        {"window": {"sliding_window": 25}, "layers without rope": {"no_rope_layers": [1] * 4}}),
    "smollm3-hub-bf16": Tiny(
        "smollm3", dict(no_rope_layers=[1, 0, 1, 1], num_key_value_heads=4),
        {"theta": {"rope_theta": 1e4}, "layers without rope": {"no_rope_layers": [1, 1, 1, 0]}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e6, "rope_scaling": None, "layer_types": ABSENT,
                  "tie_word_embeddings": ABSENT,
                  "max_window_layers": 28}, dtype="bfloat16"),
    "gemma4": Tiny(
        "gemma4_text", dict(head_dim=16, global_head_dim=32, sliding_window=24, num_hidden_layers=6, rms_norm_eps=1e-2,
                            layer_types=[SLIDING, SLIDING, FULL] * 2, hidden_size_per_layer_input=0),
        {"window": {"sliding_window": 25}, "local theta": theta(3e4, SLIDING), "global theta": theta(3e5, FULL),
         "part that turns": {"rope_parameters.full_attention.partial_rotary_factor": 0.5},
         "eps": {"rms_norm_eps": 5e-3}}),
    "gemma4-hub-k-is-v-bf16": Tiny(
        "gemma4_text", dict(head_dim=24, global_head_dim=48, sliding_window=100, layer_types=[SLIDING, FULL] * 2,
                            hidden_size_per_layer_input=0, attention_k_eq_v=True, num_global_key_value_heads=1,
                            final_logit_softcapping=8.0),
        {"window": {"sliding_window": 101}, "logit cap": {"final_logit_softcapping": None}},
        spelling={"per_layer_config": ABSENT, "global_head_dim": 48, "num_global_key_value_heads": 1},
                                   dtype="bfloat16"),
    "gemma4-embeddings-per-layer": Tiny(
        "gemma4_text", dict(head_dim=16, global_head_dim=32, sliding_window=24, num_hidden_layers=6,
                            layer_types=[SLIDING, FULL] * 3, num_kv_shared_layers=2, vocab_size_per_layer_input=320,
                            hidden_size_per_layer_input=32, use_double_wide_mlp=True, final_logit_softcapping=8.0),
        {"window": {"sliding_window": 25}, "logit cap": {"final_logit_softcapping": None}}),
    "gemma4-with-images": Tiny(
        "gemma4_text", dict(head_dim=16, global_head_dim=32, sliding_window=4,
                            layer_types=[SLIDING, SLIDING, SLIDING, FULL],
                            hidden_size_per_layer_input=0, final_logit_softcapping=8.0),
        {"window": {"sliding_window": 5}, "logit cap": {"final_logit_softcapping": None}},
        wrapper="Gemma4ForConditionalGeneration"),
    "arcee": Tiny(
        "arcee", dict(rms_norm_eps=1e-2, attention_bias=True, mlp_bias=True),
        {"theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}, "biases": {"mlp_bias": False}}),
    "arcee-hub-yarn-bf16": Tiny(
        "arcee", dict(head_dim=24, num_hidden_layers=5, num_key_value_heads=4), {"yarn": {"rope_scaling": None}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "num_key_value_heads": ABSENT,
                  "rope_scaling": {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
                                   "beta_slow": 1.0,
                                   "beta_fast": 32.0, "mscale": 1.0}}, dtype="bfloat16"),
    "ministral-windows-by-layer": Tiny(
        "ministral", dict(head_dim=24, sliding_window=24, layer_types=[SLIDING, FULL] * 2, rms_norm_eps=1e-2),
        {"window": {"sliding_window": 25}, "layers": {"layer_types": [FULL, SLIDING] * 2},
         "eps": {"rms_norm_eps": 5e-3}}),
    "ministral-hub-bf16": Tiny(
        "ministral", dict(head_dim=16, sliding_window=100, num_key_value_heads=1),
                               {"window": {"sliding_window": 101}, "theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e8, "layer_types": ABSENT}, dtype="bfloat16"),
    "seed-oss": Tiny(
        "seed_oss", dict(head_dim=24, attention_out_bias=True, mlp_bias=True, rms_norm_eps=1e-2),
        {"biases of q, k, v": {"attention_bias": False}, "bias behind attention": {"attention_out_bias": False},
         "biases of the MLP": {"mlp_bias": False}, "eps": {"rms_norm_eps": 5e-3}}),
    "seed-oss-hub-bf16": Tiny(
        "seed_oss", dict(head_dim=16, num_key_value_heads=1, num_hidden_layers=5), {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e7, "rope_scaling": {"rope_type": "default"}},
                              dtype="bfloat16"),
    "ernie4_5": Tiny(
        "ernie4_5", dict(head_dim=24, use_bias=True, rms_norm_eps=1e-2),
        {"biases": {"use_bias": False}, "theta": theta(1e4), "eps": {"rms_norm_eps": 5e-3}}),
    "ernie4_5-hub-bf16": Tiny(
        "ernie4_5", dict(head_dim=16, num_key_value_heads=1, num_hidden_layers=5, tie_word_embeddings=True),
        {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e5, "rope_scaling": None, "tie_word_embeddings": ABSENT},
                              dtype="bfloat16"),
    "exaone4-windows": Tiny(
        "exaone4", dict(head_dim=24, sliding_window=24, num_hidden_layers=5, rms_norm_eps=1e-2),
        {"window": {"sliding_window": 25}, "layers without rope": {"layer_types": [SLIDING] * 5}, "theta": theta(3e4),
         "eps": {"rms_norm_eps": 5e-3}}),
    "exaone4-hub-bf16": Tiny(
        "exaone4", dict(sliding_window=None, layer_types=[FULL] * 4, tie_word_embeddings=True,
                        max_position_embeddings=512),
        {"llama3": {"rope_scaling": None}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "sliding_window_pattern": None,
                  "rope_scaling": {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                   "original_max_position_embeddings": 64, "rope_type": "llama3"}}, dtype="bfloat16"),
    "helium": Tiny(
        "helium", dict(head_dim=16, rms_norm_eps=1e-2, attention_bias=True, mlp_bias=True),
        {"theta": theta(1e4), "eps": {"rms_norm_eps": 5e-3}, "biases": {"attention_bias": False}}),
    "helium-hub-bf16": Tiny(
        "helium", dict(head_dim=16, num_key_value_heads=4, num_hidden_layers=5, tie_word_embeddings=True),
        {"theta": {"rope_theta": 1e4}}, spelling={"rope_parameters": ABSENT, "rope_theta": 1e5}, dtype="bfloat16"),
    "glm": Tiny(
        "glm", dict(head_dim=16, rms_norm_eps=1e-2),
        {"part that turns": {"rope_parameters.partial_rotary_factor": 0.25}, "eps": {"rms_norm_eps": 5e-3},
         "biases": {"attention_bias": False}}),
    "glm-hub-bf16": Tiny(
        "glm", dict(head_dim=24, attention_bias=False, num_hidden_layers=5, num_key_value_heads=1,
                    tie_word_embeddings=True),
        {"theta": {"rope_theta": 3e4}, "part that turns": {"partial_rotary_factor": 0.25}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.5}, dtype="bfloat16"),
    "nemotron": Tiny(
        "nemotron", dict(head_dim=24, norm_eps=1e-2, attention_bias=True, mlp_bias=True),
        {"part that turns": {"rope_parameters.partial_rotary_factor": 0.25}, "eps": {"norm_eps": 5e-3},
         "biases": {"mlp_bias": False}}),
    "nemotron-hub-bf16": Tiny(
        "nemotron", dict(num_key_value_heads=1, num_hidden_layers=5), {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.5, "rope_scaling": None,
                  "head_dim": 16}, dtype="bfloat16"),
    "internlm3": Tiny(
        "internlm3", dict(head_dim=24, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-2),
        {"theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}}),
    "internlm3-hub-bf16": Tiny(
        "internlm3", dict(head_dim=16, num_key_value_heads=1, num_hidden_layers=5), {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e5, "rope_scaling": {"factor": 6.0, "rope_type": "dynamic"},
                  "attention_bias": ABSENT, "mlp_bias": ABSENT, "qkv_bias": False, "bias": False}, dtype="bfloat16"),
    "gemma": Tiny(
        "gemma", dict(head_dim=24, num_key_value_heads=4, rms_norm_eps=1e-2, hidden_act="gelu"),
        {"theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}, "silu": {"hidden_act": "silu"}}),
    "gemma-hub-bf16": Tiny(
        "gemma", dict(head_dim=16, num_key_value_heads=1, num_hidden_layers=5), {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "hidden_activation": None,
                  "tie_word_embeddings": ABSENT},
        dtype="bfloat16"),
    "vaultgemma": Tiny(
        "vaultgemma", dict(head_dim=24, query_pre_attn_scalar=32, sliding_window=24, attn_logit_softcapping=3.0,
                           final_logit_softcapping=8.0, rms_norm_eps=1e-2),
        {"score cap": {"attn_logit_softcapping": None}, "logit cap": {"final_logit_softcapping": None},
         "scale": {"query_pre_attn_scalar": 24}, "window": {"sliding_window": 25}, "eps": {"rms_norm_eps": 5e-3}}),
    "vaultgemma-without-caps-bf16": Tiny(
        "vaultgemma", dict(head_dim=16, num_key_value_heads=4, num_hidden_layers=5, query_pre_attn_scalar=16,
                           sliding_window=100,
                           attn_logit_softcapping=None, final_logit_softcapping=None),
        {"window": {"sliding_window": 101}, "theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4}, dtype="bfloat16"),
    "qwen3-with-images": Tiny(
        "qwen3_vl_text", dict(head_dim=16, rms_norm_eps=1e-2,
                              rope_parameters={"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2],
                                               "mrope_interleaved": True}),
        {"theta": theta(1e4), "eps": {"rms_norm_eps": 5e-3}}, wrapper="Qwen3VLForConditionalGeneration"),
    "qwen2-with-images": Tiny(
        "qwen2_vl_text", dict(rms_norm_eps=1e-2, rope_parameters={"rope_type": "default", "rope_theta": 1e6,
                                                                  "mrope_section": [2, 3, 3]}),
        {"theta": theta(1e4), "eps": {"rms_norm_eps": 5e-3}}, wrapper="Qwen2VLForConditionalGeneration"),
    "qwen2_5-with-images-hub-bf16": Tiny(
        "qwen2_5_vl_text", dict(num_key_value_heads=4, num_hidden_layers=5), {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e6,
                  "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}},
        dtype="bfloat16", wrapper="Qwen2_5_VLForConditionalGeneration"),
    "qwen3-with-images-hub-tied-bf16": Tiny(
        "qwen3_vl_text", dict(head_dim=24, num_key_value_heads=4, num_hidden_layers=6, tie_word_embeddings=True,
                              attention_bias=True),
        {"theta": {"rope_theta": 1e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e6,
                  "rope_scaling": {"mrope_interleaved": True, "mrope_section": [6, 3, 3], "rope_type": "default"}},
        dtype="bfloat16", wrapper="Qwen3VLForConditionalGeneration"),
    "llama-with-images": Tiny(
        "llama", dict(rms_norm_eps=1e-2), {"theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}},
        wrapper="SmolVLMForConditionalGeneration"),
    "llama-in-idefics3": Tiny("llama", dict(tie_word_embeddings=False), {"theta": theta(3e4)},
                              wrapper="Idefics3ForConditionalGeneration"),
    "llama-in-llava-bf16": Tiny("llama", dict(num_hidden_layers=5), {"theta": theta(3e4)},
                                wrapper="LlavaForConditionalGeneration", dtype="bfloat16"),
    "mistral-in-llava-next": Tiny("mistral", dict(sliding_window=None), {"theta": theta(3e4)},
                                  wrapper="LlavaNextForConditionalGeneration"),
    "gemma3n-with-images": Tiny("gemma3n_text", GEMMA3N, {"theta": theta(1e4, FULL)},
                                wrapper="Gemma3nForConditionalGeneration"),
    "qwen2-in-llava-onevision": Tiny("qwen2", {}, {"theta": theta(3e4)},
                                     wrapper="LlavaOnevisionForConditionalGeneration"),
    "olmo": Tiny("olmo", dict(attention_bias=True), {"theta": theta(3e4)}),
    "olmo-clipped": Tiny("olmo", dict(clip_qkv=0.9, num_hidden_layers=5), {"clip": {"clip_qkv": None}}),
    "olmo-hub-bf16": Tiny(
        "olmo", dict(num_key_value_heads=4, num_hidden_layers=5, tie_word_embeddings=True), {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "num_key_value_heads": ABSENT, "clip_qkv": None},
        dtype="bfloat16"),
    "nanochat": Tiny(
        "nanochat", dict(rms_norm_eps=1e-2, attention_bias=True, final_logit_softcapping=4.0, head_dim=24),
        {"logit cap": {"final_logit_softcapping": None}, "eps": {"rms_norm_eps": 5e-3}, "theta": theta(3e4)}),
    "nanochat-hub-bf16": Tiny(
        "nanochat", dict(num_key_value_heads=4, num_hidden_layers=5), {"logit cap": {"final_logit_softcapping": 2.0}},
        spelling={"final_logit_softcapping": ABSENT, "rope_parameters": ABSENT, "rope_theta": 1e4,
                  "num_key_value_heads": ABSENT}, dtype="bfloat16"),
    "bitnet": Tiny(
        "bitnet", dict(rms_norm_eps=1e-2, attention_bias=True), {"eps": {"rms_norm_eps": 5e-3}, "act": {"hidden_act": "silu"}}),
    "bitnet-hub-bf16": Tiny(
        "bitnet", dict(num_key_value_heads=1, num_hidden_layers=5, tie_word_embeddings=True), {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e5}, dtype="bfloat16"),
    "hunyuan": Tiny(
        "hunyuan_v1_dense", dict(head_dim=24, rms_norm_eps=1e-2, attention_bias=True),
        {"theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}}),
    "hunyuan-hub-alpha-bf16": Tiny(
        "hunyuan_v1_dense", dict(head_dim=16, num_key_value_heads=4, num_hidden_layers=5, tie_word_embeddings=True),
        {"alpha": {"rope_scaling.alpha": 10.0}, "theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4,
                  "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0,
                                   "mscale_all_dim": 1.0, "type": "dynamic"}}, dtype="bfloat16"),
    "phi": Tiny(
        "phi", dict(layer_norm_eps=1e-2, qk_layernorm=True),
        {"norms of heads": {"qk_layernorm": False}, "eps": {"layer_norm_eps": 5e-3},
         "part that turns": {"rope_parameters.partial_rotary_factor": 0.25}}),
    "phi-hub-bf16": Tiny(
        "phi", dict(num_key_value_heads=4, num_hidden_layers=5, hidden_size=80), {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "partial_rotary_factor": 0.4, "rope_scaling": None,
                  "num_key_value_heads": ABSENT}, dtype="bfloat16"),
    "gpt_neox": Tiny(
        "gpt_neox", dict(layer_norm_eps=1e-2, num_hidden_layers=6),
        {"eps": {"layer_norm_eps": 5e-3}, "one after another": {"use_parallel_residual": False},
         "part that turns": {"rope_parameters.partial_rotary_factor": 0.5}}),
    "gpt_neox-sequential": Tiny(
        "gpt_neox", dict(use_parallel_residual=False, hidden_act="gelu_fast", attention_bias=False,
                         num_hidden_layers=5),
        {"side by side": {"use_parallel_residual": True}, "theta": theta(3e4)}),
    "gpt_neox-hub-bf16": Tiny(
        "gpt_neox", dict(hidden_size=96, num_attention_heads=2, num_hidden_layers=6),
        {"theta": {"rotary_emb_base": 30000}, "part that turns": {"rotary_pct": 0.5}},
        spelling={"rope_parameters": ABSENT, "rotary_emb_base": 10000, "rotary_pct": 0.25}, dtype="bfloat16"),
    "gptj": Tiny(
        "gptj", dict(n_inner=96, rotary_dim=8, layer_norm_epsilon=1e-2),
        {"part that turns": {"rotary_dim": 4}, "eps": {"layer_norm_epsilon": 5e-3}}),
    "gptj-wide-bf16": Tiny(
        "gptj", dict(num_hidden_layers=5, num_attention_heads=2, rotary_dim=16), {"part that turns": {"rotary_dim": 8}},
        dtype="bfloat16"),
    "falcon-one-kv-head": Tiny(
        "falcon", dict(layer_norm_epsilon=1e-2, bias=True, ffn_hidden_size=96, tie_word_embeddings=False),
        {"eps": {"layer_norm_epsilon": 5e-3}, "theta": theta(3e4)}),
    "falcon-new": Tiny(
        "falcon", dict(new_decoder_architecture=True, num_kv_heads=2, hidden_size=96, num_hidden_layers=8),
        {"theta": theta(3e4)}),
    "falcon-new-one-norm-hub-bf16": Tiny(
        "falcon", dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1,
                       tie_word_embeddings=False),
        {"theta": {"rope_theta": 3e4}}, spelling={"rope_parameters": ABSENT, "rope_theta": 1e4}, dtype="bfloat16"),
    "falcon-sequential-many-heads": Tiny(
        "falcon", dict(multi_query=False, parallel_attn=False, bias=True, tie_word_embeddings=False),
                                         {"theta": theta(3e4)}),
    "falcon-alibi": Tiny(
        "falcon", dict(alibi=True, multi_query=False, parallel_attn=False, bias=True, num_hidden_layers=6,
                       tie_word_embeddings=False),
        {"rope": {"alibi": False}}),
    "falcon-alibi-six-heads-bf16": Tiny(
        "falcon", dict(alibi=True, num_attention_heads=6, hidden_size=96, multi_query=True, num_hidden_layers=6),
        {"rope": {"alibi": False}}, dtype="bfloat16"),
    "bloom": Tiny(
        "bloom", dict(layer_norm_epsilon=1e-2, num_hidden_layers=5, tie_word_embeddings=False),
        {"eps": {"layer_norm_epsilon": 5e-3},
         "residual behind the norm": {"apply_residual_connection_post_layernorm": True}}),
    "bloom-six-heads-hub-bf16": Tiny(
        "bloom", dict(num_attention_heads=6, hidden_size=96, num_hidden_layers=7),
        {"residual behind the norm": {"apply_residual_connection_post_layernorm": True}},
        spelling={"hidden_size": ABSENT, "n_embed": 96, "seq_length": 512}, dtype="bfloat16"),
    "mpt": Tiny(
        "mpt", dict(layer_norm_epsilon=1e-2, num_hidden_layers=5, tie_word_embeddings=False,
                    attn_config={"clip_qkv": 0.9, "softmax_scale": 0.3}),
        {"eps": {"layer_norm_epsilon": 5e-3}, "clip": {"attn_config.clip_qkv": None},
         "scale": {"attn_config.softmax_scale": None}}),
    "mpt-six-heads-bf16": Tiny(
        "mpt", dict(num_attention_heads=6, hidden_size=96, num_hidden_layers=7, layer_norm_epsilon=1e-2),
        {"eps": {"layer_norm_epsilon": 5e-3}}, dtype="bfloat16"),
    "apertus": Tiny(
        "apertus", dict(rms_norm_eps=1e-2, rope_parameters={"rope_type": "default", "rope_theta": 1e4}),
        {"eps": {"rms_norm_eps": 5e-3}, "theta": theta(3e4), "activation": {"hidden_act": "relu2"}}),
    "apertus-hub-bf16": Tiny(
        "apertus", dict(num_hidden_layers=6, rope_parameters={
            "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 128,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0}),
        {"theta": {"rope_theta": 3e4}, "bands": {"rope_scaling.factor": 1.0}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e4, "rope_scaling": {
            "type": "llama3", "factor": 8.0, "original_max_position_embeddings": 128, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "rope_type": "llama3"}}, dtype="bfloat16"),
    "gpt2": Tiny(
        "gpt2", dict(num_hidden_layers=5, max_position_embeddings=512, layer_norm_epsilon=1e-2,
                     scale_attn_by_inverse_layer_idx=True,
                     tie_word_embeddings=False),
        {"eps": {"layer_norm_epsilon": 5e-3}, "scale by layer": {"scale_attn_by_inverse_layer_idx": False}}),
    "gpt2-tied-bf16": Tiny(
        "gpt2", dict(num_hidden_layers=8, n_inner=128, max_position_embeddings=512),
                           {"gelu": {"activation_function": "relu"}},
        dtype="bfloat16"),
    "gpt_bigcode": Tiny(
        "gpt_bigcode", dict(num_hidden_layers=5, max_position_embeddings=512, activation_function="gelu",
                            layer_norm_epsilon=1e-2, tie_word_embeddings=False),
        {"eps": {"layer_norm_epsilon": 5e-3}}),
    "gpt_bigcode-many-kv-heads-bf16": Tiny(
        "gpt_bigcode", dict(num_hidden_layers=8, n_inner=128, max_position_embeddings=512, multi_query=False),
        {"unscaled": {"scale_attn_weights": False}}, dtype="bfloat16"),
    "opt": Tiny(
        "opt", dict(ffn_dim=128, max_position_embeddings=512, tie_word_embeddings=False, num_hidden_layers=5),
        {"gelu": {"activation_function": "gelu"}}),
    "opt-tied-without-biases-bf16": Tiny(
        "opt", dict(ffn_dim=128, hidden_size=96, max_position_embeddings=512, enable_bias=False, num_hidden_layers=7),
        {"gelu": {"activation_function": "gelu"}}, dtype="bfloat16"),
    "opt-350m": Tiny(
        "opt", dict(ffn_dim=128, max_position_embeddings=512, word_embed_proj_dim=24, do_layer_norm_before=False,
                    num_hidden_layers=5),
        {"gelu": {"activation_function": "gelu"}}),
    "opt-wide-embeddings-bf16": Tiny(
        "opt", dict(ffn_dim=128, max_position_embeddings=512, word_embed_proj_dim=96, tie_word_embeddings=False,
                    _remove_final_layer_norm=True, layer_norm_elementwise_affine=False, num_hidden_layers=7),
        {"gelu": {"activation_function": "gelu"}}, dtype="bfloat16"),
    "gemma4-with-experts": Tiny(
        "gemma4_text", dict(head_dim=16, global_head_dim=32, sliding_window=24, layer_types=[SLIDING, FULL] * 2, attention_k_eq_v=True,
                            num_global_key_value_heads=1, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=8,
                            top_k_experts=3, moe_intermediate_size=32, rms_norm_eps=1e-2),
        {"window": {"sliding_window": 25}, "number of experts in a row": {"top_k_experts": 2}, "eps": {"rms_norm_eps": 5e-3}}),
    "mixtral": Tiny(
        "mixtral", dict(num_local_experts=5, num_experts_per_tok=2, head_dim=24, sliding_window=24),
        {"number of experts in a row": {"num_experts_per_tok": 3}, "window": {"sliding_window": 25}, "theta": theta(3e4)}),
    "mixtral-hub-bf16": Tiny(
        "mixtral", dict(num_local_experts=8, num_experts_per_tok=1, num_key_value_heads=4, intermediate_size=40),
        {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e6, "sliding_window": None}, dtype="bfloat16"),
    "qwen2_moe": Tiny(
        "qwen2_moe", dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=48),
        {"weights": {"norm_topk_prob": True}, "number of experts in a row": {"num_experts_per_tok": 2}}),
    "qwen2_moe-some-dense-normed-bf16": Tiny(
        "qwen2_moe", dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=40, shared_expert_intermediate_size=48,
                          num_hidden_layers=5, decoder_sparse_step=2, norm_topk_prob=True, mlp_only_layers=[3]),
        {"weights": {"norm_topk_prob": False}}, dtype="bfloat16"),
    "qwen3_moe": Tiny(
        "qwen3_moe", dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, head_dim=24, norm_topk_prob=True,
                          mlp_only_layers=[0], use_sliding_window=True, sliding_window=24),
        {"weights": {"norm_topk_prob": False}, "number of experts in a row": {"num_experts_per_tok": 3},
         "window": {"sliding_window": 25}}),
    "qwen3_moe-hub-bf16": Tiny(
        "qwen3_moe", dict(num_experts=12, num_experts_per_tok=4, moe_intermediate_size=24, head_dim=16, norm_topk_prob=True),
        {"weights": {"norm_topk_prob": False}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 1e6, "rope_scaling": None, "num_local_experts": ABSENT, "num_experts": 12},
        dtype="bfloat16"),
    "olmoe": Tiny("olmoe", dict(num_experts=8, num_experts_per_tok=3, intermediate_size=32, num_key_value_heads=4),
                  {"weights": {"norm_topk_prob": True}, "theta": theta(3e4)}),
    "olmoe-clipped": Tiny("olmoe", dict(num_experts=8, num_experts_per_tok=3, intermediate_size=32, clip_qkv=0.9),
                          {"clip": {"clip_qkv": None}, "height of the clip": {"clip_qkv": 1.0}}),
    "granitemoe": Tiny(
        "granitemoe", dict(num_local_experts=6, num_experts_per_tok=2, intermediate_size=40, embedding_multiplier=3.0,
                           logits_scaling=0.5, residual_multiplier=0.7, attention_multiplier=0.2),
        {"number of experts in a row": {"num_experts_per_tok": 3}, "residual": {"residual_multiplier": 0.69}}),
    "granitemoeshared-bf16": Tiny(
        "granitemoeshared", dict(num_local_experts=6, num_experts_per_tok=3, intermediate_size=40, shared_intermediate_size=48,
                                 embedding_multiplier=12.0, logits_scaling=0.125, residual_multiplier=0.22, attention_multiplier=0.25,
                                 tie_word_embeddings=True),
        {"number of experts in a row": {"num_experts_per_tok": 2}}, dtype="bfloat16"),
    "phimoe": Tiny(
        "phimoe", dict(num_local_experts=5, intermediate_size=40, router_jitter_noise=0.4, attention_bias=True, lm_head_bias=True),
        {"margin": {"router_jitter_noise": 0.3}, "theta": theta(3e4)}),
    "phimoe-hub-longrope": Tiny(
        "phimoe", dict(num_local_experts=5, intermediate_size=40, max_position_embeddings=512, original_max_position_embeddings=512,
                       rope_parameters={**LONGROPE, "original_max_position_embeddings": 512, "short_mscale": 1.2, "long_mscale": 1.4}),
        {"short factors": {"rope_parameters.short_factor": [1.0] * 8}, "mscale": {"rope_parameters.short_mscale": 1.1}}),
    "gpt_oss": Tiny(
        "gpt_oss", dict(head_dim=24, num_local_experts=8, num_experts_per_tok=3, intermediate_size=40, sliding_window=24, swiglu_limit=1.5,
                        rope_parameters={**YARN, "truncate": False}),
        {"window": {"sliding_window": 25}, "limit": {"swiglu_limit": 2.0}, "alpha": {"swiglu_alpha": 1.5},
         "truncate": {"rope_parameters.truncate": True}, "number of experts in a row": {"num_experts_per_tok": 2}}),
    "gpt_oss-hub-square-bf16": Tiny(
        "gpt_oss", dict(head_dim=16, num_local_experts=6, num_experts_per_tok=2, intermediate_size=64, sliding_window=100,
                        num_hidden_layers=5),
        {"window": {"sliding_window": 101}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 150000, "layer_types": ABSENT,
                  "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                                   "original_max_position_embeddings": 32}}, dtype="bfloat16"),
    "gpt_oss-in-blocks": Tiny(  # its widths are whole blocks of 32: test_mxfp4.py
        "gpt_oss", dict(head_dim=24, num_local_experts=5, num_experts_per_tok=2, intermediate_size=96, sliding_window=24,
                        rope_parameters={"rope_type": "default", "rope_theta": 1e4}),
        {"number of experts in a row": {"num_experts_per_tok": 3}}),
    "ernie4_5_moe": Tiny(
        "ernie4_5_moe", dict(head_dim=16, moe_num_experts=8, moe_k=3, moe_intermediate_size=32, moe_num_shared_experts=2,
                             num_hidden_layers=5, moe_layer_end_index=3),
        {"number of experts in a row": {"moe_k": 2}}),
    "glm4_moe": Tiny(
        "glm4_moe", dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=2, head_dim=16,
                         use_qk_norm=True, first_k_dense_replace=1, num_nextn_predict_layers=0, attention_bias=True,
                         routed_scaling_factor=1.5),
        {"weights": {"norm_topk_prob": False}, "scale": {"routed_scaling_factor": 1.4},
         "part that turns": {"rope_parameters.partial_rotary_factor": 0.75}}),
    "glm4_moe-groups-bf16": Tiny(
        "glm4_moe", dict(n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1, head_dim=24,
                         first_k_dense_replace=2, num_nextn_predict_layers=0, n_group=4, topk_group=2),
        {"groups": {"topk_group": 3}}, dtype="bfloat16"),
    "dots1": Tiny(
        "dots1", dict(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=2, head_dim=24,
                      first_k_dense_replace=1, sliding_window=24, max_window_layers=2),
        {"weights": {"norm_topk_prob": True}, "window": {"sliding_window": 25}}),
    "solar_open": Tiny(
        "solar_open", dict(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1, head_dim=16),
        {"weights": {"norm_topk_prob": False}, "theta": theta(3e4)}),
    "hunyuan_v1_moe": Tiny(
        "hunyuan_v1_moe", dict(head_dim=16, num_experts=6, moe_topk=3, intermediate_size=40),
        {"theta": theta(3e4), "number of experts in a row": {"moe_topk": 2}},
        spelling={"moe_topk": [3, 3, 3, 3]}),
    "exaone_moe": Tiny(
        "exaone_moe", dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, head_dim=24, sliding_window=24,
                           num_hidden_layers=5, num_shared_experts=2, first_k_dense_replace=2),
        {"window": {"sliding_window": 25}, "scale": {"routed_scaling_factor": 2.4}, "weights": {"norm_topk_prob": False}}),
    "hy_v3": Tiny(
        "hy_v3", dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, head_dim=16,
                      mlp_layer_types=["dense", "sparse", "dense", "sparse"]),
        {"scale": {"router_scaling_factor": 2.7}, "theta": theta(3e4)}),
    "qwen3_vl_moe-with-images": Tiny(
        "qwen3_vl_moe_text", dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, head_dim=24, mlp_only_layers=[1],
                                  rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [6, 3, 3],
                                                   "mrope_interleaved": True}),
        {"number of experts in a row": {"num_experts_per_tok": 3}, "theta": theta(1e4)},
        wrapper="Qwen3VLMoeForConditionalGeneration"),
    "deepseek_v2": Tiny(
        "deepseek_v2", dict(MLA, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1,
                            first_k_dense_replace=1, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                            routed_scaling_factor=2.0, rms_norm_eps=1e-2),
        {"groups": {"topk_group": 3}, "scale": {"routed_scaling_factor": 1.9}, "theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}}),
    "deepseek_v2-lite-yarn-bf16": Tiny(
        "deepseek_v2", dict(MLA, q_lora_rank=None, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=40, n_shared_experts=2,
                            first_k_dense_replace=1, num_hidden_layers=5,
                            rope_parameters={**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}),
        {"scale of scores": {"rope_parameters.mscale_all_dim": 0.0, "rope_parameters.mscale": 0.0}, "factor": {"rope_parameters.factor": 4.0}},
        dtype="bfloat16"),
    "deepseek_v3": Tiny(
        "deepseek_v3", dict(MLA, n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1,
                            first_k_dense_replace=1, n_group=4, topk_group=2, num_mtp_layers=0, rms_norm_eps=1e-2,
                            rope_parameters={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}),
        {"groups": {"topk_group": 3}, "scale": {"routed_scaling_factor": 2.4}, "weights": {"norm_topk_prob": False},
         "scale of scores": {"rope_parameters.mscale_all_dim": 0.5}, "pairs": {"rope_interleave": False}}),
    "deepseek_v3-hub-one-group-bf16": Tiny(
        "deepseek_v3", dict(MLA, q_lora_rank=None, kv_lora_rank=40, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=2,
                            moe_intermediate_size=24, first_k_dense_replace=2, n_group=1, topk_group=1, num_mtp_layers=0,
                            num_hidden_layers=5, rope_interleave=False),
        {"theta": {"rope_theta": 3e4}},
        spelling={"rope_parameters": ABSENT, "rope_theta": 5e4, "rope_scaling": None, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
                  "moe_layer_freq": 1, "ep_size": 1}, dtype="bfloat16"),
    "glm4_moe_lite": Tiny(
        "glm4_moe_lite", dict(MLA, v_head_dim=32, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1,
                              rms_norm_eps=1e-2),
        {"scale": {"routed_scaling_factor": 1.7}, "theta": theta(3e4), "eps": {"rms_norm_eps": 5e-3}}),
    "glm4_moe_lite-dense-layers-bf16": Tiny(
        "glm4_moe_lite", dict(MLA, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=24,
                              mlp_layer_types=["dense", "sparse", "dense", "sparse"]), {"theta": theta(3e4)}, dtype="bfloat16"),
    "mistral4": Tiny(
        "mistral4", dict(MLA, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1,
                         first_k_dense_replace=1, rope_parameters=MINISTRAL3_ROPE),
        {"q by position": {"rope_parameters.llama_4_scaling_beta": 0.0}, "weights": {"norm_topk_prob": False},
         "scale of scores": {"rope_parameters.mscale_all_dim": 0.5}}),
    "mistral4-groups-bf16": Tiny(
        "mistral4", dict(MLA, n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=24, n_group=4, topk_group=2,
                         num_hidden_layers=5, rope_parameters={**MINISTRAL3_ROPE, "factor": 8.0}),
        {"groups": {"topk_group": 3}}, dtype="bfloat16"),
    "minimax_m2": Tiny(
        "minimax_m2", dict(head_dim=16, num_local_experts=8, num_experts_per_tok=3, intermediate_size=32, rotary_dim=8),
        {"number of experts in a row": {"num_experts_per_tok": 2}, "theta": theta(3e4)}),
}


def write_checkpoint(directory, tiny):
    model = draw_model(tiny)
    model.save_pretrained(directory)
    edit_config(directory, tiny.spelling)


def draw_model(tiny):
    """The model with its text part's weights drawn from a seed."""
    import torch
    import transformers

    config = transformers.CONFIG_MAPPING[tiny.family](**copy.deepcopy({**SHAPE, **tiny.changes}))
    torch.manual_seed(20)
    if tiny.wrapper:
        model = wrap(tiny, config)
    else:
        model = kind_of(tiny.family)(config)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            mean, deviation = spread(name, tensor, config)
            if deviation:
                tensor.normal_(mean=mean, std=deviation)
            # Without a gate the mean of the activations would drown what tells tokens apart.
            if tiny.family in UNGATED and any(part in name for part in DOWN):
                tensor -= tensor.mean(dim=0 if tiny.family == "gpt2" else 1, keepdim=True)
    return model.to(getattr(torch, tiny.dtype))


def kind_of(family):
    import transformers

    if family == "mistral4":  # transformers' Auto classes do not have it
        return transformers.Mistral4ForCausalLM
    return transformers.AutoModelForCausalLM.from_config


def wrap(tiny, text):
    import transformers

    do_without_timm()
    kind = getattr(transformers, tiny.wrapper)
    vision = VISION[tiny.wrapper]
    return kind(kind.config_class(text_config=text.to_dict(), vision_config=vision,
                                  tie_word_embeddings=getattr(text, "tie_word_embeddings", False)))


def do_without_timm():
    """Gives Gemma 3n small matrices for the towers of images and sound: transformers makes them with timm."""
    import torch
    from transformers.models.gemma3n import modeling_gemma3n

    class TextModelsOnly(modeling_gemma3n.AutoModel):
        @classmethod
        def from_config(cls, config, **options):
            if config.model_type == "gemma3n_text":
                return super().from_config(config, **options)
            return torch.nn.Linear(4, 4)

    if modeling_gemma3n.AutoModel.__name__ != TextModelsOnly.__name__:
        modeling_gemma3n.AutoModel = TextModelsOnly


def spread(name, tensor, config):
    """Mean and standard deviation of a tensor's values; deviation 0: the tensor stays as it is."""
    if not tensor.is_floating_point() or any(part in name for part in ("vision", "multi_modal_projector", "rotary_emb", "embed_scale")):
        return 0.0, 0.0
    if name.endswith("bias"):
        return 0.0, 0.1
    if name.endswith("sinks"):
        return 0.0, 2.0
    if name.endswith("router.scale"):  # of inputs that are divided by sqrt(E)
        return config.hidden_size ** 0.5, 0.3 * config.hidden_size ** 0.5
    if name.endswith("per_expert_scale"):
        return 1.0, 0.3
    if name.endswith("correct_output_scale"):
        return 1.0, 0.3
    if ".act_fn.alpha_" in name:
        return 0.3, 0.5
    if name.endswith("layer_scalar"):
        return 1.0, 0.2
    if "norm" in name or ".ln_" in name:
        factor = norm_factor(name, tensor, config)
        return factor - (config.model_type in UNIT_OFFSET_NORMS), 0.3 * factor
    if "embed_tokens_per_layer" in name:
        return 0.0, config.hidden_size_per_layer_input ** -0.5
    if any(part in name for part in ("embed_tokens", "embed_in", "wte", "word_embeddings")):
        return 0.0, 1.0 / embedding_factor(config)
    if "wpe" in name or "embed_positions" in name:
        return 0.0, 1.0
    if tensor.dim() == 3:  # matrices of experts, side by side
        inputs = tensor.shape[1 if config.model_type == "gpt_oss" else 2]
        return 0.0, matrix_factor(name + ".weight", config) * inputs ** -0.5
    if tensor.dim() == 2:
        inputs = tensor.shape[0 if config.model_type == "gpt2" and ".h." in name else 1]
        return 0.0, matrix_factor(name, config) * inputs ** -0.5
    return 0.0, 0.0


def norm_factor(name, tensor, config):
    if any(part in name for part in ("q_norm", "q_layernorm", "query_layernorm")):
        return SCORES * (tensor.numel() ** -0.5 if config.model_type == "gemma4_text" else 1.0)  # gemma4 does not scale scores
    return BRANCHES if any(part in name for part in NORMS_OF_BRANCHES.get(config.model_type, ())) else 1.0


def matrix_factor(name, config):
    if "lm_head" in name or "embed_out" in name:
        return 3.0
    if any(part in name for part in ("qkv_proj", "query_key_value", "c_attn", "Wqkv")):
        return math.sqrt(SCORES)
    if "q_proj" in name or "q_b_proj" in name:
        return SCORES
    if any(part in name for part in (*DOWN, *OUT)):
        if not getattr(config, "do_layer_norm_before", True):
            return 1.0  # norms of the sums would leave too little of the embedding
        return BRANCHES / getattr(config, "residual_multiplier", 1.0)
    return 1.0


def embedding_factor(config):
    if "gemma" in config.model_type:
        return math.sqrt(config.hidden_size)
    return getattr(config, "embedding_multiplier", 1.0)


def edit_config(directory, keys):
    """Sets keys of the text model's config in config.json: "a.b" reaches into a, ABSENT takes a key out."""
    path = directory / "config.json"
    config = json.loads(path.read_text())
    for key, value in keys.items():
        *outer, last = key.split(".")
        place = config.get("text_config", config)
        for name in outer:
            place = place[name]
        if value is ABSENT:
            place.pop(last, None)
        else:
            place[last] = value
    path.write_text(json.dumps(config))
