"""config.json. `other_readers.arithmetic`, `answer` and `ends_of_config` say what each of them must mean; `length` is here where it is not 128."""

import json

from metadata_shapes import shape
from metadata_shapes.shape import Shape, with_first, without
from metadata_shapes.tiny_checkpoints import END, KINDS, LLAMA, START, STOP, V

MISTRAL, QWEN2, QWEN3, OLD, TIED = (KINDS[name] for name in ("mistral", "qwen2", "qwen3", "llama_old", "llama_tied"))
LLAMA3_SCALING = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 32}
V5 = without(LLAMA, "rope_theta", "rope_scaling", "torch_dtype", "transformers_version") | {
    "dtype": "float32", "pad_token_id": None, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "transformers_version": "5.2.0"}
# What save_pretrained wrote of every model before it left out what is as always.
EVERY_KEY = {
    "_name_or_path": "", "add_cross_attention": False, "bad_words_ids": None, "begin_suppress_tokens": None, "chunk_size_feed_forward": 0,
    "cross_attention_hidden_size": None, "decoder_start_token_id": None, "diversity_penalty": 0.0, "do_sample": False, "early_stopping": False,
    "encoder_no_repeat_ngram_size": 0, "exponential_decay_length_penalty": None, "finetuning_task": None, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "is_decoder": False, "is_encoder_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "length_penalty": 1.0, "max_length": 20, "min_length": 0, "no_repeat_ngram_size": 0,
    "num_beam_groups": 1, "num_beams": 1, "num_return_sequences": 1, "output_attentions": False, "output_hidden_states": False,
    "output_scores": False, "pad_token_id": None, "prefix": None, "problem_type": None, "pruned_heads": {}, "remove_invalid_values": False,
    "repetition_penalty": 1.0, "return_dict": True, "return_dict_in_generate": False, "sep_token_id": None, "suppress_tokens": None,
    "task_specific_params": None, "temperature": 1.0, "tf_legacy_loss": False, "tie_encoder_decoder": False, "tokenizer_class": None,
    "top_k": 50, "top_p": 1.0, "torchscript": False, "typical_p": 1.0, "use_bfloat16": False}


def scaled(**rope):
    return LLAMA | {"rope_scaling": rope}


SHAPES = [
    # ---- transformers, from the first Llama on
    Shape("decapoda, transformers 4.27: LLaMAForCausalLM, pad_token_id -1, max_sequence_length beside",
          with_first(OLD, architectures=["LLaMAForCausalLM"], max_sequence_length=128, pad_token_id=-1) | {"transformers_version": "4.27.0.dev0"},
          kind="llama_old"),
    Shape("transformers 4.27: no max_position_embeddings, which means 2048",
          without(OLD, "max_position_embeddings", "rope_theta", "rope_scaling", "pretraining_tp", "attention_bias", "mlp_bias")
          | {"max_sequence_length": 2048, "pad_token_id": 0}, {"length": 2048}, kind="llama_old"),
    Shape("transformers 4.28, vicuna: no rope keys, no kv heads, float16, a path of the maker",
          with_first(without(OLD, "rope_theta", "rope_scaling", "pretraining_tp", "attention_bias", "mlp_bias", "attention_dropout"),
                     _name_or_path="/data/checkpoints/vicuna-7b") | {"pad_token_id": 0, "torch_dtype": "float16"}, kind="llama_old"),
    Shape("transformers 4.31, Llama 2: rope_scaling null and no rope_theta", without(LLAMA, "rope_theta", "head_dim", "attention_bias", "mlp_bias")),
    Shape("transformers 4.31, Llama 2 13B: pretraining_tp 2", LLAMA | {"pretraining_tp": 2, "transformers_version": "4.31.0.dev0"}),
    Shape("transformers 4.35: attention_bias, no head_dim", without(LLAMA, "head_dim", "mlp_bias") | {"transformers_version": "4.35.2"}),
    Shape("transformers 4.43, Llama 3.1: llama3 scaling, three ends",
          scaled(**LLAMA3_SCALING, rope_type="llama3") | {"eos_token_id": [END, START, STOP], "transformers_version": "4.43.0.dev0"}),
    Shape("transformers 4.44: the scaling's type under both names", scaled(**LLAMA3_SCALING, rope_type="llama3", type="llama3")),
    Shape("transformers 4.45, Llama 3.2 1B: tied, head_dim written",
          TIED | {"head_dim": 16, "transformers_version": "4.45.0.dev0"}, kind="llama_tied"),
    Shape("transformers 5: rope_parameters and dtype", V5),
    Shape("transformers 5: rope_parameters with llama3 scaling",
          V5 | {"rope_parameters": {**LLAMA3_SCALING, "rope_theta": 500000.0, "rope_type": "llama3"}}),
    Shape("transformers 4.57 on a file of 5: rope_parameters beside rope_theta and an empty rope_scaling",
          V5 | {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "rope_scaling": None, "rope_theta": 10000.0,
                "torch_dtype": "float32"}),
    Shape("transformers 5: rope_parameters null", V5 | {"rope_parameters": None, "rope_theta": 20000.0}),
    Shape("to_json_file of every key of PretrainedConfig", EVERY_KEY | LLAMA),
    Shape("PretrainedConfig of transformers 5: a float as {\"__float__\": \"Infinity\"}",
          V5 | {"loss_limit": {"__float__": "Infinity"}, "problem_type": None}),

    # ---- scaled positions
    Shape("longchat: linear scaling under its older name", scaled(type="linear", factor=8.0), {"length": 1024}),
    Shape("deepseek-coder: linear scaling, rope_theta a whole number", scaled(type="linear", factor=4) | {"rope_theta": 100000}, {"length": 512}),
    Shape("dynamic scaling, as text-generation-webui adds it", scaled(type="dynamic", factor=3.0)),
    Shape("Yarn-Llama-2: yarn with finetuned", scaled(factor=4.0, original_max_position_embeddings=32, type="yarn", finetuned=True)),
    Shape("Qwen2.5's README: yarn added by hand", QWEN2 | {"rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 128, "type": "yarn"}},
          {"length": 512}, kind="qwen2"),
    Shape("Qwen3's README: yarn with rope_type",
          QWEN3 | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}},
          {"length": 512}, kind="qwen3"),
    Shape("transformers 4.43 on a default scaling: both names, no factor", scaled(type="default", rope_type="default")),
    Shape("an empty rope_scaling", scaled()),

    # ---- Mistral and Qwen
    Shape("Mistral 7B 0.1: a window wider than anything, no head_dim", without(MISTRAL, "head_dim") | {"sliding_window": 4096}, kind="mistral"),
    Shape("Mistral 7B 0.2: no window, theta of a million", MISTRAL | {"rope_theta": 1000000.0, "sliding_window": None}, kind="mistral"),
    Shape("Mistral: a window that is felt", MISTRAL | {"sliding_window": 8}, kind="mistral"),
    Shape("Mistral without the key: the window of transformers' default", without(MISTRAL, "sliding_window"), kind="mistral"),
    Shape("Mistral Nemo: heads wider than hidden / heads", KINDS["mistral_wide"] | {"rope_theta": 1000000.0}, kind="mistral_wide"),
    Shape("Mistral of transformers 4.50: head_dim null", MISTRAL | {"head_dim": None}, kind="mistral"),
    Shape("Qwen2 of transformers 4.40: a window that is switched off", QWEN2 | {"sliding_window": 131072, "max_window_layers": 24}, kind="qwen2"),
    Shape("Qwen2 whose upper layers have a window", QWEN2 | {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, kind="qwen2"),
    Shape("Qwen2 of transformers 4.53: layer_types", QWEN2 | {"layer_types": ["full_attention"] * 2}, kind="qwen2"),
    Shape("Qwen2 of transformers 4.53: layer_types with a window",
          QWEN2 | {"layer_types": ["full_attention", "sliding_attention"], "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
          kind="qwen2"),
    Shape("Qwen2.5 7B: not tied", KINDS["qwen2_untied"] | {"rope_theta": 1000000.0}, kind="qwen2_untied"),
    Shape("Qwen3: no pad, no bos, attention_bias false", without(QWEN3, "bos_token_id") | {"eos_token_id": STOP}, kind="qwen3"),
    Shape("Qwen2.5 1M: a part for dual chunk attention, which transformers does not read",
          QWEN2 | {"dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144}},
          kind="qwen2"),

    # ---- tools that train, merge and export
    Shape("unsloth: its two keys, the pad of its own", LLAMA | {"pad_token_id": 259, "unsloth_fixed": True, "unsloth_version": "2025.3.18"}),
    Shape("axolotl: ChatML's end, no cache, where the base came from",
          with_first(LLAMA, _name_or_path="NousResearch/Meta-Llama-3-8B") | {"eos_token_id": STOP, "use_cache": False, "torch_dtype": "bfloat16"}),
    Shape("trl: dtype and pad_token_id", without(LLAMA, "torch_dtype") | {"dtype": "float32", "pad_token_id": END, "transformers_version": "4.56.2"}),
    Shape("torch_dtype and dtype, which differ from the weights'", LLAMA | {"dtype": "bfloat16", "torch_dtype": "bfloat16"}),
    Shape("llama-factory: quantization_config null", LLAMA | {"quantization_config": None, "use_cache": False, "torch_dtype": "bfloat16"}),
    Shape("mergekit: an end beyond the vocabulary, of the other parent", LLAMA | {"eos_token_id": V}),
    Shape("a list of ends of which one is beyond the vocabulary", LLAMA | {"eos_token_id": [STOP, V, 151645]}),
    Shape("mergekit: a bos beyond the vocabulary", QWEN2 | {"bos_token_id": 151643, "eos_token_id": STOP}, kind="qwen2"),
    Shape("code of its own beside: auto_map",
          LLAMA | {"auto_map": {"AutoConfig": "configuration_llama.LlamaConfig", "AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"}}),
    Shape("optimum-neuron: an object of unknown keys",
          LLAMA | {"neuron": {"auto_cast_type": "bf16", "batch_size": 1, "nested": {"list": [[1, {"a": None}], [], {}]}, "sequence_length": 4096}}),
    Shape("sentence-transformers' Qwen3: attn_implementation's mark",
          QWEN3 | {"_attn_implementation_autoset": True, "_name_or_path": "./out"}, kind="qwen3"),
    Shape("mlx-lm: quantization null and sorted keys", dict(sorted((LLAMA | {"quantization": None, "model_file": None}).items()))),

    # ---- keys that may be absent or null
    Shape("tie_word_embeddings absent", without(LLAMA, "tie_word_embeddings")),
    Shape("architectures null", LLAMA | {"architectures": None}),
    Shape("architectures absent", without(LLAMA, "architectures")),
    Shape("architectures empty", LLAMA | {"architectures": []}),
    Shape("eos_token_id null", LLAMA | {"eos_token_id": None}),
    Shape("Llama without eos_token_id, which transformers takes for 2: only the tokenizer's is known", without(LLAMA, "eos_token_id"),
          {"ends": {END}}),
    Shape("Qwen2 without eos_token_id", without(QWEN2, "eos_token_id"), kind="qwen2"),
    Shape("eos_token_id a list of one", LLAMA | {"eos_token_id": [STOP]}),
    Shape("eos_token_id twice in a list", LLAMA | {"eos_token_id": [STOP, END, STOP]}),
    Shape("bos_token_id null", LLAMA | {"bos_token_id": None}),
    Shape("attention_bias and mlp_bias true", KINDS["llama_biased"], kind="llama_biased"),
    Shape("num_key_value_heads null", OLD | {"num_key_value_heads": None}, kind="llama_old"),
    Shape("hidden_act absent", without(LLAMA, "hidden_act")),
    Shape("hidden_act gelu", {**LLAMA, "hidden_act": "gelu"}),
    Shape("rms_norm_eps absent", without(LLAMA, "rms_norm_eps")),

    # ---- how it is written
    Shape("whole numbers where fractions may stand", LLAMA | {"rope_theta": 10000, "attention_dropout": 0}),
    Shape("exponents as YAML and JavaScript write them", shape.with_raw_members(
        without(LLAMA, "rope_theta", "rms_norm_eps"), '"rope_theta": 1e6', '"rms_norm_eps": 1E-5', '"initializer_range_of": 2.0e-02')),
    Shape("Infinity and NaN, as Python's json writes them",
          shape.with_raw_members(LLAMA, '"time_step_limit": [0.0, Infinity]', '"best_loss": NaN', '"floor": -Infinity')),
    Shape("a key twice, of which the later counts", shape.edited_twice(LLAMA | {"rope_theta": 50000.0}, rope_theta=123456.0)),
    Shape("letters escaped", with_first(LLAMA, _name_or_path="\u6a21\u578b/\U0001f999-\"llama\"\\v1", note="\u00e9\u0000\u2028")),
    Shape("every letter escaped", shape.all_escaped(LLAMA)),
    Shape("letters not escaped", json.dumps(with_first(LLAMA, _name_or_path="\u6a21\u578b/\U0001f999"), ensure_ascii=False)),
    Shape("an editor's CR LF", shape.crlf(LLAMA)),
    Shape("an editor's byte order mark", shape.byte_order_mark(LLAMA), others_read_it=False),
    Shape("no line break at the end", shape.no_line_break(LLAMA)),
    Shape("one line without blanks", shape.one_line(LLAMA)),
    Shape("tabs", shape.tabs(LLAMA)),
    Shape("blank lines around, four blanks a level", shape.blank_lines(LLAMA)),
    Shape("keys in the other order", shape.backwards(LLAMA)),
]
