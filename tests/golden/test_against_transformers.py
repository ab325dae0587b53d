"""Logits and greedy tokens of tiny random checkpoints against transformers in f32 on the same bits.

The checkpoints are made here. Their weights are drawn large enough that attention looks at content and position (scores of
about one): with transformers' usual 0.02 the scores of so small a model are all nearly zero, and no test of rope or of a
window could fail. Norms and biases are drawn too; transformers would leave them at one and zero.

The tolerance is derived in golden_support.py. What is seen is printed; what a wrong formula does is measured by the last test here.
"""
import copy
import json

import numpy as np
import pytest

from golden_support import U, Reference, Run, check_greedy, random_prompt, supported_isas

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")
torch.set_num_threads(1)  # the matrices are tiny: threads that wait for each other take twenty times as long on a busy machine

STEPS = 64
SHAPE = dict(vocab_size=320, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=8,
             num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, initializer_range=0.125,
             bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
FAMILIES = {
    "llama": (transformers.LlamaConfig, {}),
    "mistral": (transformers.MistralConfig, {"sliding_window": None}),
    "qwen2": (transformers.Qwen2Config, {}),
    "qwen3": (transformers.Qwen3Config, {"head_dim": 24}),
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}

# name: (family, changes to the config, how it is saved, tokens in the prompt)
CASES = {
    "llama-f32": ("llama", {}, {}, 300),
    "llama-bf16": ("llama", {}, {"dtype": "bfloat16"}, 130),
    "llama-f16": ("llama", {}, {"dtype": "float16"}, 130),
    "llama-tied": ("llama", {"tie_word_embeddings": True}, {"dtype": "bfloat16"}, 130),
    "llama-sharded": ("llama", {}, {"dtype": "bfloat16", "max_shard_size": "200KB"}, 130),
    "llama-attention-bias": ("llama", {"attention_bias": True}, {}, 130),
    "llama-mlp-bias": ("llama", {"mlp_bias": True}, {"dtype": "bfloat16"}, 130),
    "llama-head-dim": ("llama", {"head_dim": 40}, {}, 130),
    "llama-vocab-311": ("llama", {"vocab_size": 311}, {}, 130),
    "llama-vocab-311-tied-bf16": ("llama", {"vocab_size": 311, "tie_word_embeddings": True}, {"dtype": "bfloat16"}, 130),
    "llama-many-kv-heads": ("llama", {"num_key_value_heads": 8}, {}, 130),
    "llama-odd-widths": ("llama", {"hidden_size": 72, "intermediate_size": 172, "num_attention_heads": 4}, {}, 130),
    "llama-theta": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}, {}, 130),
    "rope-linear": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}, {}, 130),
    "rope-dynamic": ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}}, {}, 130),
    "rope-llama3": ("llama", {"rope_parameters": {**LLAMA3, "rope_theta": 10000.0}}, {}, 300),
    "rope-yarn": ("llama", {"rope_parameters": {**YARN, "rope_theta": 10000.0}}, {}, 300),
    "rope-yarn-untruncated": ("llama", {"rope_parameters": {**YARN, "truncate": False, "rope_theta": 1e6}}, {}, 130),
    "rope-yarn-mscale": ("llama", {"rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 16.0,
                                                       "beta_slow": 2.0, "rope_theta": 10000.0}}, {}, 130),
    "rope-yarn-attention-factor": ("llama", {"rope_parameters": {**YARN, "attention_factor": 1.25,
                                                                 "rope_theta": 10000.0}}, {}, 130),
    "rope-old-spelling-linear": ("llama", {}, {"patch": {"rope_theta": 20000.0, "rope_scaling": {"type": "linear", "factor": 2.0}}}, 130),
    "rope-old-spelling-llama3": ("llama", {}, {"patch": {"rope_theta": 20000.0, "rope_scaling": LLAMA3}}, 130),
    "rope-old-spelling-yarn": ("qwen2", {}, {"patch": {"rope_theta": 1e6, "rope_scaling": {"type": "yarn", "factor": 4.0}}}, 130),
    "mistral": ("mistral", {}, {"dtype": "bfloat16"}, 130),
    "mistral-window-24": ("mistral", {"sliding_window": 24}, {}, 300),
    "mistral-window-1": ("mistral", {"sliding_window": 1}, {}, 130),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}, {"dtype": "bfloat16"}, 300),
    "qwen2-some-windows": ("qwen2", {"use_sliding_window": True, "sliding_window": 24, "max_window_layers": 2}, {}, 300),
    "qwen3": ("qwen3", {}, {}, 300),
    "qwen3-bf16-tied": ("qwen3", {"tie_word_embeddings": True}, {"dtype": "bfloat16"}, 130),
    "qwen3-attention-bias": ("qwen3", {"attention_bias": True}, {"dtype": "float16"}, 130),
}


def draw_model(config):
    torch.manual_seed(20)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(mean=0.0 if name.endswith("bias") else 1.0, std=0.3)
            elif "embed_tokens" in name:
                parameter.normal_(std=1.0)
    return model


def save(directory, family, changes, dtype="float32", max_shard_size="1GB", patch=None):
    """A checkpoint directory; `patch` rewrites config.json in the older spelling of rope."""
    kind, defaults = FAMILIES[family]
    model = draw_model(kind(**{**SHAPE, **defaults, **copy.deepcopy(changes)}))
    model.to(getattr(torch, dtype)).save_pretrained(directory, max_shard_size=max_shard_size)
    if patch is not None:
        path = directory / "config.json"
        config = json.loads(path.read_text())
        del config["rope_parameters"]
        path.write_text(json.dumps({**config, **patch}))


@pytest.mark.parametrize("case", CASES)
def test_logits_and_greedy_tokens_match(case, tmp_path):
    family, changes, saving, length = CASES[case]
    save(tmp_path / "model", family, changes, **saving)
    reference = Reference(tmp_path / "model")
    prompt = random_prompt(length, reference.vocab)
    run = Run(tmp_path / "model", prompt, reference.vocab, tmp_path, greedy=STEPS)
    reference.check_rope(run)
    expected, tolerance = reference(prompt)
    difference = np.abs(run.logits - expected).max(axis=-1)
    print(f"largest difference {difference.max():.3g}, {(difference / tolerance).max():.3g} of the tolerance "
          f"{tolerance.max():.3g}; logits within {np.abs(expected).max():.3g}; frequencies off by {reference.frequency_error / U:.3g} u")
    assert np.isfinite(run.logits).all()
    assert (difference <= tolerance).all()
    assert len(run.greedy) == STEPS
    check_greedy(reference, prompt, run.greedy)


@pytest.mark.parametrize("case", ["llama-f32", "llama-bf16", "llama-f16", "mistral-window-24", "qwen2", "qwen3", "llama-odd-widths"])
@pytest.mark.parametrize("kv", ["f32", "bf16"])
def test_bits_do_not_depend_on_chunks_threads_or_instruction_set(case, kv, tmp_path):
    family, changes, saving, length = CASES[case]
    save(tmp_path / "model", family, changes, **saving)
    prompt = random_prompt(length, SHAPE["vocab_size"])
    isas = supported_isas()
    ways = [(isa, 64, 2) for isa in isas] + [(isas[-1], chunk, threads) for chunk, threads in ((1, 1), (7, 2), (256, 1), (512, 3))]
    runs = {way: Run(tmp_path / "model", prompt, SHAPE["vocab_size"], tmp_path, greedy=16, kv=kv, isa=way[0], chunk=way[1],
                     threads=way[2]) for way in ways}
    first = next(iter(runs.values()))
    for key, run in runs.items():
        assert np.array_equal(run.logits.view(np.int32), first.logits.view(np.int32)), key
        assert run.greedy == first.greedy, key
        assert run.mode == first.mode, key


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("rope-") and c != "rope-dynamic"]
                         + ["mistral-window-24", "mistral-window-1", "qwen2-some-windows"])
def test_what_sets_a_case_apart_shows_far_above_the_tolerance(case, tmp_path):
    """The same weights with plain rope and no window: were that what we compute, the first test would fail by far."""
    family, changes, saving, length = CASES[case]
    save(tmp_path / "model", family, changes, **saving)
    reference = Reference(tmp_path / "model")
    prompt = random_prompt(length, reference.vocab)
    expected, tolerance = reference(prompt)
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    for key in ("rope_parameters", "rope_scaling", "layer_types"):
        config.pop(key, None)
    path.write_text(json.dumps({**config, "rope_theta": 10000.0, "sliding_window": None, "use_sliding_window": False}))
    plain = Run(tmp_path / "model", prompt, reference.vocab, tmp_path)
    ratio = (np.abs(plain.logits - expected).max(axis=-1) / tolerance).max()
    print(f"{ratio:.3g} times the tolerance")
    assert ratio > 100
