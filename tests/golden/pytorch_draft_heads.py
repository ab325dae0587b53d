"""Draft heads in plain PyTorch, f32, written from the description of their papers: what the golden tests compare with.

Row t of a head stands at position t and holds the target's states of token t and the embedding of token t + 1.
"""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F


@dataclass
class Shape:
    hidden: int = 64
    ffn: int = 96
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    layers: int = 1
    vocab: int = 320
    draft_vocab: int = 320
    theta: float = 10000.0
    eps: float = 1e-5
    boundaries: tuple = ()
    last_state: bool = False  # EAGLE-3 over the target's last state alone
    target_hidden: int = 0
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    logit_scale: float = 1.0
    extra: dict = field(default_factory=dict)

    @property
    def third(self):
        return bool(self.boundaries) or self.last_state


def rms_norm(x, scale, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * scale


def rotate(x, positions, theta):
    """x [heads, T, D], rotated by halves."""
    half = x.shape[-1] // 2
    frequencies = 1.0 / theta ** (torch.arange(0, 2 * half, 2).float() / (2 * half))
    angles = positions.float()[:, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


class Head:
    """`tensors` by the names without "model." and with "layers.0." for "midlayer."; `target` gives what the head lacks."""

    def __init__(self, shape, tensors, target_embedding, target_output):
        self.shape, self.tensors = shape, {name: t.float() for name, t in tensors.items() if t.is_floating_point()}
        self.embedding = self.tensors.get("embed_tokens.weight", target_embedding)
        self.output = self.tensors.get("lm_head.weight", target_output)
        offsets = tensors.get("d2t", torch.zeros(shape.draft_vocab, dtype=torch.int64))
        self.token_of = torch.arange(shape.draft_vocab) + offsets
        self.keys = [[] for _ in range(shape.layers)]  # of each layer [kv heads, T, D], row by row

    def linear(self, x, name):
        return F.linear(x, self.tensors[name + ".weight"], self.tensors.get(name + ".bias"))

    def attend(self, x, layer, positions):
        shape, at = self.shape, f"layers.{layer}.self_attn."
        rows = len(positions)

        def heads(name, num):
            y = self.linear(x, at + name + "_proj").view(rows, num, shape.head_dim)
            norm = self.tensors.get(at + name + "_norm.weight")
            return (y if norm is None else rms_norm(y, norm, shape.eps)).transpose(0, 1)

        q = rotate(heads("q", shape.heads), positions, shape.theta)
        k = rotate(heads("k", shape.kv_heads), positions, shape.theta)
        self.keys[layer].append((k, heads("v", shape.kv_heads)))
        k = torch.cat([one for one, _ in self.keys[layer]], 1).repeat_interleave(shape.heads // shape.kv_heads, 0)
        v = torch.cat([one for _, one in self.keys[layer]], 1).repeat_interleave(shape.heads // shape.kv_heads, 0)
        scores = q @ k.transpose(1, 2) / shape.head_dim**0.5
        unseen = torch.arange(k.shape[1])[None, :] > positions[:, None]
        mixed = scores.masked_fill(unseen, -torch.inf).softmax(-1) @ v
        return self.linear(mixed.transpose(0, 1).reshape(rows, -1), at + "o_proj")

    def mlp(self, x, layer):
        at = f"layers.{layer}.mlp."
        return self.linear(F.silu(self.linear(x, at + "gate_proj")) * self.linear(x, at + "up_proj"), at + "down_proj")

    def norm(self, x, name):
        return rms_norm(x, self.tensors[name + ".weight"], self.shape.eps)

    def feature(self, states):
        """Of the states side by side. EAGLE-1, and some of EAGLE-3, take the last one, behind the target's norm, as it is."""
        if not self.shape.boundaries:
            return states
        if self.shape.norm_before_fc:
            states = self.norm(states, "input_norm")
        if self.shape.fc_norm:
            each = states.split(self.shape.target_hidden, -1)
            states = torch.cat([self.norm(one, f"fc_norm.{i}") for i, one in enumerate(each)], -1)
        return self.linear(states, "fc")

    def step(self, g, tokens, positions):
        """Features [T, E] and the tokens behind them -> the next features, logits [T, Vd], lengths of what the output sees."""
        shape, e = self.shape, self.embedding[tokens]
        for layer in range(shape.layers):
            at = f"layers.{layer}."
            if layer > 0:
                x = x + self.attend(self.norm(x, at + "input_layernorm"), layer, positions)
            elif shape.third:
                normed = self.norm(g, at + "hidden_norm")
                both = torch.cat([self.norm(e, at + "input_layernorm"), normed], -1)
                x = (normed if shape.norm_before_residual else g) + self.attend(both, layer, positions)
            else:
                x = self.linear(torch.cat([e, g], -1), "fc")
                x = x + self.attend(x, layer, positions)
            x = x + self.mlp(self.norm(x, at + "post_attention_layernorm"), layer)
        seen = self.norm(x, "norm") if shape.third else x
        logits = F.linear(seen, self.output) * shape.logit_scale
        return (seen if shape.norm_output else x), logits, seen.norm(dim=-1) * shape.logit_scale

    def longest_path(self, positions):
        """N: the lengths of all sums on the way from states and tokens to a logit."""
        shape = self.shape
        width = (2 if shape.third else 1) * shape.hidden
        fc = len(shape.boundaries) * shape.target_hidden if shape.third else 2 * shape.hidden
        attention = width + shape.head_dim + 2 * positions + shape.heads * shape.head_dim
        norms = 4 * max(shape.hidden, fc)
        return fc + shape.layers * (attention + shape.hidden + shape.ffn) + norms + shape.hidden


class Hydra:
    """Heads by the names that their files have; `shape` is the prefix layer's."""

    def __init__(self, config, tensors, target_embedding, shape):
        self.tensors, self.embedding, self.shape = {name: t.float() for name, t in tensors.items()}, target_embedding, shape
        self.num_blocks, self.has_prefix = config["hydra_num_layers"], config["hydra_head_arch"] == "prefix-mlp"

    def begin(self, states):
        """What the heads read before the tokens, of states [T, E]."""
        if not self.has_prefix:
            return states
        at = "prefix_embeding_layer."
        layer = Head(self.shape, {name.removeprefix(at): t for name, t in self.tensors.items()}, None, None)
        x = states + layer.attend(layer.norm(states, "layers.0.input_layernorm"), 0, torch.arange(len(states)))
        x = x + layer.mlp(layer.norm(x, "layers.0.post_attention_layernorm"), 0)
        return layer.norm(x, "norm")

    def linear(self, x, name):
        return F.linear(x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])

    def head(self, index, state, path):
        """Logits behind `path`, which begins with the token after the state's; and how long they may be: |x| |w| and |b|."""
        at, output = f"hydra_mlp.{index}.", f"hydra_lm_head.{index}" + (".1" if self.has_prefix else "")
        numbers = [2 * i + 1 if self.has_prefix else i for i in range(self.num_blocks)]
        x = torch.cat([state, *(self.embedding[token] for token in path)])
        y = self.linear(x, f"{at}{numbers[0]}.res_connection") + F.silu(self.linear(x, f"{at}{numbers[0]}.linear"))
        for number in numbers[1:]:
            y = y + F.silu(self.linear(y, f"{at}{number}.linear"))
        widest = self.tensors[output + ".weight"].norm(dim=-1).max()
        return self.linear(y, output), float(y.norm() * widest + self.tensors[output + ".bias"].abs().max())

    def longest_path(self, positions):
        shape = self.shape
        attention = shape.hidden + shape.head_dim + 2 * positions + shape.heads * shape.head_dim
        prefix = attention + 2 * shape.hidden + shape.ffn + 3 * shape.hidden if self.has_prefix else 0
        return prefix + 6 * shape.hidden + self.num_blocks * shape.hidden + shape.hidden
