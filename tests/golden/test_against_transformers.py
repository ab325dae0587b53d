"""Logits and greedy tokens of tiny random checkpoints against transformers in f32 on the same bits.

The checkpoints are made here. Their weights are drawn large enough that attention looks at content and position (scores of
about one): with transformers' usual 0.02 the scores of so small a model are all nearly zero, and no test of rope or of a
window could fail. Norms and biases are drawn too; transformers would leave them at one and zero.

Tolerance, derived: an f32 rounding is off by at most u = 2^-24, relatively. The rounding errors of a sum of n products, in
whatever order, add up to more than LAMBDA·sqrt(n)·u times the sum of the absolute products with probability at most
2·exp(-LAMBDA²/2) (Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019).
N adds up the lengths of the sums on the longest path from a token to a logit. Between layers an error is carried relative to
the residual stream, which the norms bring back to length one, so to first order a logit x·w is off by at most
LAMBDA·sqrt(N)·u·|x||w|, which by Cauchy and Schwarz also covers its own sum. Both sides may err: a factor 2. Rope adds what is
no chance: where powf here and there differ in the last bit of a frequency, by d relatively, position p's angle is off by
p·(d + 2u) in every layer. What is seen is printed; what a wrong formula does is measured by the last test here.
"""
import copy
import json

import numpy as np
import pytest

from golden_support import Run, supported_isas

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")
torch.set_num_threads(1)  # the matrices are tiny: threads that wait for each other take twenty times as long on a busy machine

U = 2.0**-24
LAMBDA = 6.0
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


class Reference:
    """transformers in f32, eager attention: logits of every position, and how far ours may be from them."""

    def __init__(self, directory):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32,
                                                                       attn_implementation="eager").eval()
        self.vocab = self.model.config.vocab_size
        self.frequency_error = 0.0

    def check_rope(self, run):
        """Our frequencies are transformers' to the last bit of powf; the tolerance takes what they really differ by."""
        rope = self.model.model.rotary_emb
        theirs = rope.inv_freq.numpy()
        self.frequency_error = float(np.abs(run.frequencies / theirs.astype(np.float64) - 1).max())
        assert self.frequency_error <= 4 * U
        assert run.attention_factor == np.float32(rope.attention_scaling)

    def __call__(self, tokens):
        with torch.no_grad():
            out = self.model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
            lengths = out.hidden_states[-1][0].norm(dim=-1)  # after the last norm
            widest = self.model.get_output_embeddings().weight.norm(dim=-1).max()
        layers = self.model.config.num_hidden_layers
        positions = np.arange(len(tokens))
        angle = positions * (self.frequency_error + 2 * U) if self.frequency_error > 0 else 0 * positions
        error = LAMBDA * np.sqrt(self.chain(len(tokens))) * U + layers * angle
        return out.logits[0].numpy(), 2 * error * (lengths * widest).numpy()

    def chain(self, positions):
        """N: the lengths of all sums on the longest path from a token to a logit."""
        config = self.model.config
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        attention = (config.hidden_size                            # q, k, v
                     + head_dim + 2 * positions                    # scores; the softmax's sum and the sum over values
                     + config.num_attention_heads * head_dim)      # out
        mlp = config.hidden_size + config.intermediate_size        # gate and up; down
        elementwise = 2 * config.hidden_size + 2 * head_dim + 16   # two norms, two head norms, rope, exp, silu, residual
        return config.num_hidden_layers * (attention + mlp + elementwise) + 2 * config.hidden_size


def check_greedy(reference, prompt, greedy):
    """Every token is transformers' own choice given what came before, or ties with it within the tolerance."""
    logits, tolerance = reference(prompt + greedy)
    ties = []
    for step, token in enumerate(greedy):
        row = logits[len(prompt) - 1 + step]
        gap = float(row.max() - row[token])
        if gap > 0:
            ties.append((step, token, int(row.argmax()), gap))
            assert gap <= 2 * tolerance[len(prompt) - 1 + step], f"step {step}: {token} is {gap} below {row.argmax()}"
    for step, ours, theirs, gap in ties:
        print(f"step {step}: {ours} for {theirs}, {gap:.3g} apart in transformers")


def random_prompt(length, vocab):
    return np.random.default_rng(length).integers(3, vocab, size=length).tolist()


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
