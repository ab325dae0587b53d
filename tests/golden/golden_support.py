"""What the golden tests share: where the built programs are, running logits_tool, and transformers as the reference.

The programs come from QUIRE_BUILD_DIR (default: build/release of this checkout); tests skip, saying why, where one is absent.

Tolerance, derived: an f32 rounding is off by at most u = 2^-24, relatively. The rounding errors of a sum of n products, in
whatever order, add up to more than LAMBDA·sqrt(n)·u times the sum of the absolute products with probability at most
2·exp(-LAMBDA²/2) (Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019).
N adds up the lengths of the sums on the longest path from a token to a logit. Between layers an error is carried relative to
the residual stream, which the norms bring back to length one, so to first order a logit x·w is off by at most
LAMBDA·sqrt(N)·u·|x||w|, which by Cauchy and Schwarz also covers its own sum. Both sides may err: a factor 2. Rope adds what is
no chance: where powf here and there differ in the last bit of a frequency, by d relatively, position p's angle is off by
p·(d + 2u) in every layer. A factor on the logits scales their error; a soft cap c·tanh(x/c) does not enlarge it.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

from family_checkpoints import do_without_timm

ROOT = pathlib.Path(__file__).resolve().parents[2]
U = 2.0**-24
LAMBDA = 6.0
EMBEDDINGS = ("embed_tokens", "embed_in", "wte", "word_embeddings")  # of a decoder, by family
LAYERS = ("layers", "h", "blocks")
MLPS = ("mlp", "ffn", "block_sparse_moe")
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))


def program(name):
    for path in (BUILD / name, BUILD / "tests" / name):
        if path.is_file():
            return path
    pytest.skip(f"no {name} in {BUILD}: build it, or set QUIRE_BUILD_DIR")


def supported_isas():
    flags = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    isas = ["scalar"]
    if " avx2 " in flags:
        isas.append("avx2")
    if " avx512f " in flags and " avx512bw " in flags and " avx512vl " in flags:
        isas.append("avx512")
        if " avx512_vnni " in flags:
            isas.append("avx512vnni")
    return isas


class Run:
    """Logits [T, V] of the prompt, its greedy continuation, rope frequencies and numeric mode, as logits_tool gives them."""

    def __init__(self, model, prompt, vocab, tmp_path, **options):
        tokens, logits, routes = tmp_path / "tokens.bin", tmp_path / "logits.bin", tmp_path / "routes.bin"
        np.asarray(prompt, dtype=np.int32).tofile(tokens)
        command = [program("logits_tool"), model, "--tokens", tokens, "--logits", logits, "--routes", routes]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        self.mode, self.greedy = answer["mode"], answer["greedy"]
        # One rope table, or a list of them under "ropes" where layers differ: (inverse frequencies, factor on cos and sin).
        self.ropes = [(frequencies[frequencies > 0], np.float32(rope["attention_factor"])) for rope in answer.get("ropes", [answer])
                      for frequencies in [np.asarray(rope["frequencies"], dtype=np.float32)]]
        self.logits = np.fromfile(logits, dtype=np.float32).reshape(len(prompt), vocab)
        self.experts = np.fromfile(routes, dtype=np.int32)  # [layers with experts, T, k]; empty: there are none


class Reference:
    """transformers in f32: logits of every position, and how far ours may be from them."""

    def __init__(self, directory):
        import torch
        import transformers

        do_without_timm()
        # By name: transformers' Auto classes do not have every wrapper of a text model.
        kind = getattr(transformers, json.loads((directory / "config.json").read_text())["architectures"][0])
        # Falcon's eager attention adds the biases of positions twice, once with the mask.
        attention = "sdpa" if json.loads((directory / "config.json").read_text()).get("alibi") else "eager"
        self.model = kind.from_pretrained(directory, dtype=torch.float32, attn_implementation=attention).eval()
        self.config = self.model.config.get_text_config()
        self.decoder = next(part for part in self.model.modules() if any(hasattr(part, name) for name in EMBEDDINGS))
        self.layers = next(getattr(self.decoder, name) for name in LAYERS if hasattr(self.decoder, name))
        self.vocab = self.config.vocab_size
        self.frequency_error = 0.0

    def rope_tables(self):
        """(inverse frequencies, factor on cos and sin) of every table. Pairs of frequency 0 do not turn and are left out."""
        rope = getattr(self.decoder, "rotary_emb", None)
        if rope is None or getattr(self.config, "alibi", False):  # Falcon's is there and not used
            return []
        names = [name for name, _ in rope.named_buffers() if name.endswith("inv_freq") and "original" not in name]
        tables = [(getattr(rope, name).numpy(), getattr(rope, name.replace("inv_freq", "attention_scaling"))) for name in names]
        own = (getattr(self.config, "rope_parameters", None) or {}).get("short_mscale")  # Phi-3.5-MoE's, in place of the table's
        return [(inverse[inverse > 0], np.float32(own or factor)) for inverse, factor in tables]

    def check_rope(self, run):
        """Our frequencies are transformers' to the last bit of powf; the tolerance takes what they really differ by.

        A table that logits_tool does not print counts as 4 u off, the most that is allowed.
        """
        theirs = self.rope_tables()
        if not theirs and not run.ropes:
            return
        if not theirs:  # GPT-J's: sines and cosines of every position
            self.frequency_error = 4 * U
            return
        for ours in run.ropes:
            assert min(table_difference(ours, table) for table in theirs) <= 4 * U
        self.frequency_error = max(min(4 * U, *(table_difference(ours, table) for ours in run.ropes)) for table in theirs)

    def __call__(self, tokens):
        import torch

        head = self.model.get_output_embeddings()
        seen = []
        hook = head.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0][0]))
        with torch.no_grad():
            logits = self.model(torch.tensor([tokens]), use_cache=False).logits[0]
            lengths, widest = seen[0].norm(dim=-1), head.weight.norm(dim=-1).max()  # after the last norm
        hook.remove()
        positions = np.arange(len(tokens))
        angle = positions * (self.frequency_error + 2 * U) if self.frequency_error > 0 else 0 * positions
        error = LAMBDA * np.sqrt(self.chain(len(tokens))) * U + len(self.layers) * angle
        return logits.numpy(), 2 * error * (lengths * widest).numpy() * self.logit_factor()

    def experts(self, tokens):
        """The experts that each layer's router chooses for each token [layers with experts, T, k], ascending."""
        import torch

        seen = []
        routers = [part for part in self.decoder.modules() if type(part).__name__.lower().endswith(("router", "gate"))]
        hooks = [part.register_forward_hook(lambda _, __, output: seen.append(output[2])) for part in routers]
        with torch.no_grad():
            self.model(torch.tensor([tokens]), use_cache=False)
        for hook in hooks:
            hook.remove()
        return np.sort(torch.stack(seen).numpy(), axis=-1)

    def logit_factor(self):
        return (getattr(self.config, "logit_scale", None) or 1.0) / getattr(self.config, "logits_scaling", 1.0)  # MPT's is null

    def chain(self, positions):
        """N: the lengths of all sums on the longest path from a token to a logit."""
        hidden = self.config.hidden_size
        return sum(layer_chain(layer, hidden, positions) for layer in self.layers) + 2 * hidden


def table_difference(ours, theirs):
    """Largest relative difference of two rope tables' frequencies; infinite where their lengths or factors differ."""
    if ours[0].shape != theirs[0].shape or ours[1] != theirs[1]:
        return np.inf
    return float(np.abs(ours[0] / theirs[0].astype(np.float64) - 1).max())


def child(part, *names):
    """The child by the first of these names that it has."""
    return next(getattr(part, name) for name in names if getattr(part, name, None) is not None)


def inputs_of(linear):
    return getattr(linear, "in_features", None) or linear.weight.shape[0]  # GPT-2's matrices are [inputs, outputs]


def layer_chain(layer, hidden, positions):
    attention = child(layer, "self_attn", "attention", "attn", "self_attention")
    heads = inputs_of(child(attention, "o_proj", "dense", "out_proj", "c_proj"))  # H * D
    latent = getattr(attention, "kv_lora_rank", 0)  # of MLA: its products are absorbed
    head_dim = latent + attention.qk_rope_head_dim if latent else child(attention, "head_dim", "head_size")
    absorbed = (attention.q_lora_rank or 0) + attention.qk_nope_head_dim + latent if latent else 0
    mlp = next((getattr(layer, name) for name in MLPS if hasattr(layer, name)), layer)  # OPT's has no module of its own
    sums = (hidden                                                   # q, k, v
            + head_dim + 2 * positions                               # scores; the softmax's sum and the sum over values
            + absorbed                                               # to the latents and from them
            + heads)                                                 # out
    products = mlp_chain(mlp, hidden) + (mlp_chain(layer, hidden) if hasattr(layer, "experts") else 0)  # Gemma 4 has both
    beside = sum(getattr(part, "in_features", 0) for part in layer.children())  # per-layer embeddings: gate and projection
    inner = sum(weight.numel() for name, weight in attention.named_parameters() if "norm" in name)
    return sums + products + beside + norm_sums(layer, hidden) + max(2 * head_dim,
                                                                     inner) + 16  # rope, exp, activation, residual


def mlp_chain(mlp, hidden):
    experts = getattr(mlp, "experts", None)
    if experts is None:
        return hidden + inputs_of(child(mlp, "down_proj", "c_proj", "fc2", "fc_out", "dense_4h_to_h"))  # gate and up; down
    count = experts.down_proj.shape[0]
    width = experts.down_proj[0].numel() // hidden
    shared = getattr(mlp, "shared_expert", getattr(mlp, "shared_experts", getattr(mlp, "shared_mlp", None)))
    beside = hidden + inputs_of(shared.down_proj) if shared is not None else 0
    return hidden + count + hidden + width + count + beside  # router, its softmax; gate and up, down; experts; beside them


def norm_sums(layer, hidden):
    """Sums of the layer's norms over the hidden width: a LayerNorm has two, mean and variance."""
    kinds = [type(part).__name__ for part in layer.children()]
    return hidden * sum(1 + ("LayerNorm" in kind) for kind in kinds if "Norm" in kind)


def check_logits(run, expected, tolerance):
    """The logits of every position are transformers' own within the tolerance."""
    difference = np.abs(run.logits - expected).max(axis=-1)
    print(f"{len(expected)} tokens: {(difference / tolerance).max():.3g} of the tolerance {tolerance.max():.3g}; logits within {np.abs(expected).max():.3g}")
    assert np.isfinite(run.logits).all()
    assert (difference <= tolerance).all()


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
