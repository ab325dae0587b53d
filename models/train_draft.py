#!/usr/bin/env python3
"""Train a drafter for the embedded story model, which verifies its draft tokens.

    python train_draft.py --corpus DIR --minutes 40                  an EAGLE-3 head, into ./stories_draft
    python train_draft.py --corpus DIR --kind medusa                 three Medusa heads, into ./stories_medusa
    python train_draft.py --corpus DIR --kind draft-model            a Llama of two layers, into ./stories_draft_model
    python train_draft.py --corpus DIR --evaluate                    how many draft tokens the target accepts

The file reads top to bottom: target, samples, the three kinds, evaluation, export, and the loop that uses them.

States that an EAGLE-3 head reads. Boundary b is the residual stream as it ENTERS layer b, equal to the output of layer
b - 1, not normed; with n layers, boundary n is the output of the last one, before the final norm. config.json lists
boundaries in `eagle_aux_hidden_state_layer_ids`. Other projects list the layers whose OUTPUT is read, one less, and
readers distinguish the two by the first id: 1 means outputs. So ours begin with 2 and end with n = 6: read as
boundaries all of them exist, and read as outputs the last would be of a layer that does not exist. No reader can
misread them and merely draft badly.

A head's row t holds the states of position t and the token of position t + 1; its rotary position is t, and it
predicts the token of position t + 2. The root of a draft is the newest token r, which the target has not read yet: the
first draft token comes from row r - 1, the next from a row with the head's own output state, and so on.

Shapes in brackets use the letters of train.py, and K draft tokens of a chain, G draft vocabulary.
"""

import argparse
import copy
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import tokenizers
import torch
import torch.nn.functional as F
from torch import nn

import train
from train import END_ID, HELD_OUT, IGNORE, MIX, STYLE, Attention, FeedForward, Llama, Shape, linear, rotate, say

# ---------------------------------------------------------------------------------------------------------------------
# Target


@dataclass
class Reading:
    """The target's results for rows of text."""

    logits: torch.Tensor  # [B, T, V]
    boundaries: list  # boundary b: [B, T, E]
    last: torch.Tensor  # [B, T, E]: the last boundary, after the final norm


@torch.no_grad()
def read(target, ids):
    num_tokens = ids.shape[1]
    with torch.autocast("cpu", torch.bfloat16, enabled=target.bf16):
        boundaries = [target.embed_tokens(ids)]
        for layer in target.layers:
            boundaries.append(layer(boundaries[-1], target.cos[:num_tokens], target.sin[:num_tokens]))
        last = target.norm(boundaries[-1])
        return Reading(F.linear(last, target.embed_tokens.weight).float(), boundaries, last)


def split_heads(x, head_dim):
    return x.view(*x.shape[:2], -1, head_dim).transpose(1, 2)  # [B, heads, T, D]


@torch.no_grad()
def generate(target, prompts, length, temperature, make_noise):
    """Rows [B, length] that begin with the prompts (lists of ids); make_noise(t) gives [B, V] for position t.

    Never stops: the target opens another story after <|endoftext|>. Adding T times the noise to the logits is the same
    draw as dividing these by T and adding the noise, and is greedy at T = 0. temperature is [B, 1].
    """
    shape, rows = target.shape, len(prompts)
    ids = torch.zeros(rows, length, dtype=torch.long)
    given = torch.zeros(rows, length, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)], given[row, : len(prompt)] = torch.tensor(prompt), True
    dtype = torch.bfloat16 if target.bf16 else torch.float32
    keys, values = torch.zeros(2, shape.layers, rows, shape.kv_heads, length, shape.head_dim, dtype=dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=target.bf16):
        for t in range(length - 1):
            x = target.embed_tokens(ids[:, t : t + 1])
            cos, sin = target.cos[t : t + 1], target.sin[t : t + 1]
            for i, layer in enumerate(target.layers):
                attention, y = layer.self_attn, layer.input_layernorm(x)
                q = rotate(split_heads(attention.q_proj(y), shape.head_dim), cos, sin)
                keys[i, :, :, t : t + 1] = rotate(split_heads(attention.k_proj(y), shape.head_dim), cos, sin)
                values[i, :, :, t : t + 1] = split_heads(attention.v_proj(y), shape.head_dim)
                q = q.reshape(rows, shape.kv_heads, -1, shape.head_dim)  # the query heads of a kv head side by side
                scores = q @ keys[i, :, :, : t + 1].mT / math.sqrt(shape.head_dim)
                y = scores.float().softmax(-1).to(dtype) @ values[i, :, :, : t + 1]
                x = x + attention.o_proj(y.reshape(rows, 1, -1))
                x = x + layer.mlp(layer.post_attention_layernorm(x))
            logits = F.linear(target.norm(x), target.embed_tokens.weight)[:, 0].float()
            drawn = (logits + temperature * make_noise(t + 1)).argmax(-1)
            ids[:, t + 1] = torch.where(given[:, t + 1], ids[:, t + 1], drawn)
    return ids


def gumbel(rows, vocab, generator):
    return -torch.empty(rows, vocab).exponential_(generator=generator).log()


# ---------------------------------------------------------------------------------------------------------------------
# Samples
#
# A drafter has to predict its target, not human text: most rows are generated by the target from the beginnings of
# stories. Every fourth batch is still from the corpus, since prompts are human text.

TEMPERATURES = (1.0, 0.7, 1.0, 0.7, 0.0)  # of the rows, in turn
LONGEST_BEGINNING = 48
CORPUS_EVERY = 4


def sample(target, documents, args):
    """[N, T] rows by the target, as many as the minutes allow."""
    generator = torch.Generator().manual_seed(args.seed)
    temperature = torch.tensor(TEMPERATURES).repeat(args.sample_rows // len(TEMPERATURES) + 1)[: args.sample_rows, None]
    batches, start = [], time.monotonic()
    while not batches or (time.monotonic() - start) * (1 + 0.8 / len(batches)) < 60 * args.sample_minutes:
        prompts = []  # half of them after <|endoftext|>, as in the target's training
        for pick in torch.randint(len(documents), (args.sample_rows,), generator=generator).tolist():
            size = torch.randint(1, LONGEST_BEGINNING + 1, (), generator=generator).item()
            prompts.append([END_ID] * (size % 2) + documents[pick][:size])

        def noise(_):
            return gumbel(args.sample_rows, target.shape.vocab, generator)

        batches.append(generate(target, prompts, args.sample_length, temperature, noise).to(torch.int16))
        num_tokens, seconds = sum(map(torch.numel, batches)), time.monotonic() - start
        say(f"sampled {num_tokens:8} tokens, {num_tokens / seconds:5.0f} tok/s", "dim")
    return torch.cat(batches)


class Rows:
    """Endless batches (ids, counts), both [B, T]; counts[t] is true if the token of t + 1 is text, not padding."""

    def __init__(self, samples, documents_by_name, shape, seed):
        self.samples = samples
        self.corpus = train.Batches(documents_by_name, shape.context, seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.order, self.num_batches = torch.empty(0, dtype=torch.long), 0

    def take(self, num_tokens):
        self.num_batches += 1
        if self.num_batches % CORPUS_EVERY == 0:
            ids, targets = self.corpus.take(num_tokens // self.corpus.context, MIX)
            return ids, targets != IGNORE
        count = num_tokens // self.samples.shape[1]
        if len(self.order) < count:
            self.order = torch.randperm(len(self.samples), generator=self.generator)
        picked, self.order = self.order[:count], self.order[count:]
        ids = self.samples[picked].long()
        return ids, torch.ones_like(ids, dtype=torch.bool)


# ---------------------------------------------------------------------------------------------------------------------
# Chains from everywhere at once
#
# Step k of the chains that begin at all the positions t of a row: a query attends to the keys of step 0 up to its own
# t, made from committed tokens, and of each later step to the one key of its own chain. Trained so (EAGLE-3's
# training-time test, Li et al. 2025) a drafter reads its own states during training; and decoding from every position
# is one pass.


def attend(q, cache):
    """q [B, heads, n, D]; cache: for each step k so far (keys, values) [B, kv heads, n or more, D]"""
    n, group = q.shape[2], q.shape[1] // cache[0][0].shape[1]
    cache = [(k[:, :, :n].repeat_interleave(group, 1), v[:, :, :n].repeat_interleave(group, 1)) for k, v in cache]
    (keys, values), own = cache[0], cache[1:]
    if not own:
        return F.scaled_dot_product_attention(q, keys, values, is_causal=True)
    q = q / math.sqrt(q.shape[-1])
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    scores = [(q @ keys.mT).masked_fill(later, -math.inf)] + [(q * k).sum(-1, keepdim=True) for k, _ in own]
    weights = torch.cat(scores, -1).float().softmax(-1).to(values.dtype)
    y = weights[..., :n] @ values
    return y + sum(weights[..., n + i : n + i + 1] * v for i, (_, v) in enumerate(own))


def chained(attention, x, cos, sin, cache):
    """One step of an Attention of train.py; its keys and values go into the cache."""
    head_dim = attention.shape.head_dim
    q = rotate(split_heads(attention.q_proj(x), head_dim), cos, sin)
    k = rotate(split_heads(attention.k_proj(x), head_dim), cos, sin)
    cache.append((k, split_heads(attention.v_proj(x), head_dim)))
    return attention.o_proj(attend(q, cache).transpose(1, 2).reshape(*x.shape[:2], -1))


# ---------------------------------------------------------------------------------------------------------------------
# The three kinds
#
# Each has
#   losses(batch, reading)            a loss per step, and the share of steps whose likeliest token is the target's
#   chains(ids, reading, K, choose)   [B, T, K] draft tokens after each root, the token at r: those of r + 1 ...
#                                     choose(logits, ids of the logits, r, k) picks; roots without draft tokens have -1
#   export(folder, shape) and load(folder)
# The loss is the cross entropy to the target's own distribution, and step k counts DECAY^k.

DECAY = 0.8


def cross_entropy(logits, wanted, counts):
    """wanted: the target's probabilities of the same tokens. They weigh less if they sum to less."""
    num = counts.sum()
    loss = (-(wanted * logits.float().log_softmax(-1)).sum(-1) * counts).sum() / num
    return loss, ((logits.argmax(-1) == wanted.argmax(-1)) * counts).sum() / num


class MidAttention(Attention):
    """Reads [embedding ; feature] side by side."""

    def __init__(self, shape):
        super().__init__(shape)
        self.q_proj = linear(2 * shape.hidden, shape.heads * shape.head_dim)
        self.k_proj = linear(2 * shape.hidden, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(2 * shape.hidden, shape.kv_heads * shape.head_dim)


class MidLayer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.hidden_norm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.input_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.self_attn = MidAttention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.mlp = FeedForward(shape)

    def forward(self, embedding, g, cos, sin, cache):
        u = torch.cat([self.input_layernorm(embedding), self.hidden_norm(g)], -1)
        h = g + chained(self.self_attn, u, cos, sin, cache)
        return h + self.mlp(self.post_attention_layernorm(h))


class Eagle(nn.Module):
    """EAGLE-3 (Li et al. 2025). Modules are named as in its checkpoints, so the state dict is the export."""

    FOLDER = "stories_draft"
    BOUNDARIES = (2, 4, 6)
    VOCAB = 1024
    FFN = 512
    STEPS = 5

    def __init__(self, target, draft_ids):
        super().__init__()
        shape = replace(target.shape, ffn=self.FFN)
        self.target = [target]  # in a list: not a part of this module
        self.fc = linear(len(self.BOUNDARIES) * shape.hidden, shape.hidden, gain=0.1)
        self.midlayer = MidLayer(shape)
        self.norm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.lm_head = linear(shape.hidden, len(draft_ids))
        self.register_buffer("draft_ids", draft_ids, persistent=False)
        with torch.no_grad():  # starts as the target's own last state, read by the target's own head
            self.fc.weight[:, -shape.hidden :] += torch.eye(shape.hidden)
            self.norm.weight.copy_(target.norm.weight)
            self.lm_head.weight.copy_(target.embed_tokens.weight[draft_ids])

    @classmethod
    def fresh(cls, target, samples):
        frequency = torch.bincount(samples.flatten().long(), minlength=target.shape.vocab)
        draft_ids = frequency.argsort(descending=True, stable=True)[: cls.VOCAB].sort().values
        say(f"{cls.VOCAB} tokens are {frequency[draft_ids].sum() / frequency.sum():.2%} of the samples")
        return cls(target, draft_ids)

    def matrices(self):
        return [self.fc.weight] + [p for p in self.midlayer.parameters() if p.ndim == 2]

    def first_feature(self, reading):
        g = self.fc(torch.cat([reading.boundaries[b] for b in self.BOUNDARIES], -1))
        return g.float()  # the residual stream is f32

    def step(self, k, ids, g, cache):
        """ids [B, n] of the rows t = 0 .. n - 1 at step k, their features g -> the next features, logits [B, n, G]"""
        target, n = self.target[0], ids.shape[1]
        with torch.no_grad():
            embedding = target.embed_tokens(ids)
        g = self.midlayer(embedding, g[:, :n], target.cos[k : k + n], target.sin[k : k + n], cache)
        return g, self.lm_head(self.norm(g))

    def losses(self, ids, counts, reading):
        wanted = (reading.logits - reading.logits.logsumexp(-1, keepdim=True))[..., self.draft_ids].exp()
        g, cache = self.first_feature(reading), []
        for k in range(self.STEPS):
            g, logits = self.step(k, ids[:, 1 + k :], g, cache)
            yield cross_entropy(logits, wanted[:, 1 + k :], counts[:, 1 + k :])

    def chains(self, ids, reading, num, choose):
        guesses = torch.full((*ids.shape, num), -1)
        g, cache, tokens = self.first_feature(reading)[:, :-1], [], ids[:, 1:]
        for k in range(num):
            g, logits = self.step(k, tokens, g, cache)
            roots = torch.arange(1, ids.shape[1])
            tokens = choose(logits, self.draft_ids, roots, k)
            guesses[:, 1:, k] = tokens
        return guesses

    def export(self, folder, shape):
        in_draft = torch.zeros(shape.vocab, dtype=torch.bool)
        in_draft[self.draft_ids] = True
        export_tensors(folder, {
            **{name: p.to(torch.bfloat16) for name, p in self.state_dict().items()},
            "d2t": self.draft_ids - torch.arange(len(self.draft_ids)),  # offsets: token = i + d2t[i]
            "t2d": in_draft,
        })
        train.write_json(folder / "config.json", {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            "bos_token_id": END_ID,
            "eos_token_id": END_ID,
            "vocab_size": shape.vocab,
            "draft_vocab_size": len(self.draft_ids),
            "hidden_size": shape.hidden,
            "intermediate_size": self.FFN,
            "num_hidden_layers": 1,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "head_dim": shape.head_dim,
            "max_position_embeddings": shape.context,
            "rope_theta": shape.rope_theta,
            "rms_norm_eps": shape.norm_eps,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "eagle_aux_hidden_state_layer_ids": list(self.BOUNDARIES),
        })

    @classmethod
    def load(cls, target, folder):
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        offsets = tensors.pop("d2t")
        tensors.pop("t2d")
        head = cls(target, offsets + torch.arange(len(offsets)))
        head.load_state_dict({name: t.float() for name, t in tensors.items()})
        return head


class ResBlock(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return x + F.silu(self.linear(x))


class Medusa(nn.ModuleList):
    """Medusa-1 (Cai et al. 2024): head i predicts position t + 2 + i from the target's last state at t, after the norm.

    Named as the first releases did: {head}.0.linear.weight, .bias and {head}.1.weight, the latter over all the tokens.
    """

    HEADS = 3  # a head is 2.2 MB, nearly all of it the matrix over the tokens
    FOLDER = "stories_medusa"

    def __init__(self, target):
        shape = target.shape
        super().__init__(
            nn.Sequential(ResBlock(shape.hidden), linear(shape.hidden, shape.vocab)) for _ in range(self.HEADS)
        )
        with torch.no_grad():
            for head in self:
                head[1].weight.copy_(target.embed_tokens.weight)

    @classmethod
    def fresh(cls, target, samples):
        return cls(target)

    def matrices(self):
        return [head[0].linear.weight for head in self]

    def losses(self, ids, counts, reading):
        wanted = reading.logits.softmax(-1)
        for i, head in enumerate(self):
            yield cross_entropy(head(reading.last[:, : -1 - i]), wanted[:, 1 + i :], counts[:, 1 + i :])

    def chains(self, ids, reading, num, choose):
        guesses = torch.full((*ids.shape, num), -1)
        roots = torch.arange(1, ids.shape[1])
        for i, head in zip(range(num), self):
            logits = head(reading.last[:, :-1])
            guesses[:, 1:, i] = choose(logits, torch.arange(logits.shape[-1]), roots, i)
        return guesses

    def export(self, folder, shape):
        export_tensors(folder, {name: p.to(torch.bfloat16) for name, p in self.state_dict().items()})
        train.write_json(folder / "config.json", {
            "architectures": ["MedusaModel"],
            "model_type": "medusa",
            "medusa_num_heads": len(self),
            "medusa_num_layers": 1,
            "hidden_size": shape.hidden,
            "vocab_size": shape.vocab,
            "base_model_name_or_path": "stories",
            "torch_dtype": "bfloat16",
        })

    @classmethod
    def load(cls, target, folder):
        heads = cls(target)
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        heads.load_state_dict({name: t.float() for name, t in tensors.items()})
        return heads


class DraftModel(Llama):
    """A Llama of its own, taught by the target (distillation): two layers, half as wide, no states of the target."""

    FOLDER = "stories_draft_model"
    SHAPE = Shape(hidden=128, layers=2, heads=2, kv_heads=1, ffn=352)

    def __init__(self, target):
        super().__init__(replace(self.SHAPE, vocab=target.shape.vocab, context=target.shape.context))

    @classmethod
    def fresh(cls, target, samples):
        """The embedding starts as the target's output matrix times the norm's weights, in fewer dimensions."""
        model = cls(target)
        left, sizes, _ = torch.linalg.svd(target.embed_tokens.weight * target.norm.weight, full_matrices=False)
        strongest = (left * sizes)[:, : model.shape.hidden]
        with torch.no_grad():
            model.embed_tokens.weight[:, : strongest.shape[1]] = strongest
        return model

    def matrices(self):
        return [p for p in self.layers.parameters() if p.ndim == 2]

    def step(self, k, ids, caches):
        n = ids.shape[1]
        cos, sin = self.cos[k : k + n], self.sin[k : k + n]
        x = self.embed_tokens(ids)
        for layer, cache in zip(self.layers, caches):
            x = x + chained(layer.self_attn, layer.input_layernorm(x), cos, sin, cache)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return F.linear(self.norm(x), self.embed_tokens.weight)

    def losses(self, ids, counts, reading):
        yield cross_entropy(self.step(0, ids, [[] for _ in self.layers]), reading.logits.softmax(-1), counts)

    def chains(self, ids, reading, num, choose):
        guesses = torch.full((*ids.shape, num), -1)
        caches, tokens, room = [[] for _ in self.layers], ids, self.shape.context
        for k in range(num):
            n = min(ids.shape[1], room - k)  # rows past the context have no rotary position; no root needs them
            logits = self.step(k, tokens[:, :n], caches)
            tokens = choose(logits, torch.arange(logits.shape[-1]), torch.arange(n), k)
            guesses[:, :n, k] = tokens
        return guesses

    def export(self, folder, shape):
        tokenizer = tokenizers.Tokenizer.from_file(str(Path(__file__).parent / "stories" / "tokenizer.json"))
        train.export_weights(self, folder)
        train.export_description(self.shape, tokenizer, folder)

    @classmethod
    def load(cls, target, folder):
        model = cls(target)
        train.load_weights(model, folder)
        return model


KINDS = {"eagle3": Eagle, "medusa": Medusa, "draft-model": DraftModel}


def export_tensors(folder, tensors):
    tensors = {name: t.detach().contiguous() for name, t in tensors.items()}
    train.write_file(
        folder / "model.safetensors",
        lambda aside: safetensors.torch.save_file(tensors, aside, metadata={"format": "pt"}),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Evaluation
#
# The server verifies by sampler match: the target samples with the noise of the position, and a draft token is accepted
# if it equals the sampled one. The text is then the same with any drafter, so it can be sampled first and the steps
# counted afterwards: from a root, draft tokens up to the first wrong one are accepted, and the next token is free.
# These are the steps of real decoding. Shared noise: the drafter adds the position's noise to its own logits before it
# picks; without, it picks the likeliest.

CHAIN = 4


@torch.no_grad()
def count_steps(drafter, target, prompts, length, temperature, shared, seed):
    """The number of the CHAIN draft tokens that each step of each story accepted."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.stack([gumbel(len(prompts), target.shape.vocab, generator) for _ in range(length)], 1)  # [B, T, V]
    ids = generate(target, prompts, length, torch.full((len(prompts), 1), temperature), lambda t: noise[:, t])

    def choose(logits, tokens_of, roots, k):
        if shared:
            here = noise[:, (roots + 1 + k).clamp(max=length - 1)][..., tokens_of]
            logits = logits + temperature * here
        return tokens_of[logits.argmax(-1)]

    guesses = drafter.chains(ids, read(target, ids), CHAIN, choose)
    taken = []
    for row, prompt in enumerate(prompts):
        said = ids[row].tolist()
        end = said.index(END_ID, len(prompt)) if END_ID in said[len(prompt) :] else length - 1
        root = len(prompt)  # the prompt's own step samples the first token
        while root + CHAIN <= end:
            right = [guesses[row, root, k].item() == said[root + 1 + k] for k in range(CHAIN)]
            taken.append((right + [False]).index(False))
            root += taken[-1] + 1
    return taken


def beginnings(documents, num, size=12):
    return [doc[:size] for doc in documents[:num]]


def evaluate(drafter, target, documents, stories=64, length=256, seed=1):
    target, drafter = copy.deepcopy(target), copy.deepcopy(drafter)
    target.bf16 = False  # the exact numbers
    if isinstance(drafter, Eagle):
        drafter.target = [target]
    prompts = beginnings(documents, stories)
    for temperature, shared in ((0.0, False), (0.7, False), (0.7, True), (1.0, False), (1.0, True)):
        taken = torch.tensor(count_steps(drafter, target, prompts, length, temperature, shared, seed))
        depths = "  ".join(f"{(taken > k).float().mean():.3f}" for k in range(CHAIN))
        noise = "shared noise" if shared else "likeliest"
        say(f"T={temperature:.1f} {noise:12}  depth 1-{CHAIN}: {depths}  tau {taken.float().mean() + 1:.3f}  "
            f"({len(taken)} steps)", "green")


# ---------------------------------------------------------------------------------------------------------------------
# The run

WARM_UP = 0.03


def learning_rate_factor(progress):
    return min(1.0, progress / WARM_UP + 0.01) * (0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2)


def make_optimizers(drafter):
    matrices = drafter.matrices()
    ours = {id(p) for p in matrices}
    rest = [p for p in drafter.parameters() if id(p) not in ours]
    return [train.Muon(matrices, lr=0.01), torch.optim.AdamW(rest, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.0)]


def fit(drafter, target, rows, args):
    optimizers, average = make_optimizers(drafter), train.Average(drafter)
    start = last_export = time.monotonic()
    step, tokens, smooth = 0, 0, None
    while True:
        minutes = (time.monotonic() - start) / 60
        progress = minutes / args.minutes
        if progress >= 1:
            break
        train.set_learning_rate(optimizers, learning_rate_factor(progress))
        ids, counts = rows.take(args.step_tokens)
        reading = read(target, ids)
        with torch.autocast("cpu", torch.bfloat16):
            losses, right = zip(*drafter.losses(ids, counts, reading))
        sum(DECAY**k * loss for k, loss in enumerate(losses)).backward()
        torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update(drafter)

        step += 1
        tokens += counts.sum().item()
        if step % CORPUS_EVERY:  # the target's own text
            now = torch.stack([torch.stack(losses), torch.stack(right)]).detach()
            smooth = now if smooth is None else smooth.lerp(now, 0.05)
        if step % 20 == 0:
            seconds = time.monotonic() - start
            shown = ["/".join(f"{x:.3f}" for x in values) for values in smooth.tolist()]
            say(f"step {step:5}  {tokens / 1e6:5.2f} M tokens  {tokens / seconds:5.0f} tok/s  loss {shown[0]}  "
                f"right {shown[1]}  {progress:4.0%}", "dim")
        if time.monotonic() - last_export > 60 * args.export_minutes:
            average.model.export(args.out, target.shape)
            last_export = time.monotonic()
    average.model.export(args.out, target.shape)
    say(f"{step} steps, {tokens / 1e6:.2f} M tokens, {(time.monotonic() - start) / 60:.1f} minutes")


def load_samples(target, documents, args):
    if args.samples and args.samples.exists():
        return safetensors.torch.load_file(args.samples)["ids"]
    samples = sample(target, documents, args)
    if args.samples:
        train.write_file(args.samples, lambda aside: safetensors.torch.save_file({"ids": samples}, aside))
    return samples


def parse_args():
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, metavar="DIR", required=True, help="folder as train.py reads it")
    parser.add_argument("--kind", choices=KINDS, default="eagle3", help="what to train (default: %(default)s)")
    parser.add_argument("--target", type=Path, default=here / "stories", metavar="DIR", help="target (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: next to this program, named after the kind")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="read the samples from here, or write them here")
    parser.add_argument("--sample-minutes", type=float, default=10, help="time for sampling (default: %(default)s)")
    parser.add_argument("--sample-rows", type=int, default=160, help="rows sampled in parallel (default: %(default)s)")
    parser.add_argument("--sample-length", type=int, default=320, help="tokens of a sampled row (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=40, help="time for training (default: %(default)s)")
    parser.add_argument("--step-tokens", type=int, default=2560, help="tokens of a step (default: %(default)s)")
    parser.add_argument("--export-minutes", type=float, default=5, help="time between exports (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, samples and batches (default: %(default)s)")
    parser.add_argument("--evaluate", action="store_true", help="print the acceptance rates of draft tokens, and stop")
    args = parser.parse_args()
    args.out = args.out or here / KINDS[args.kind].FOLDER
    return args


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    target = Llama(Shape()).requires_grad_(False)
    train.load_weights(target, args.target)
    tokenizer = tokenizers.Tokenizer.from_file(str(args.target / "tokenizer.json"))
    documents = {name: train.encode(tokenizer, texts) for name, texts in train.read_corpus(args.corpus).items()}
    held_out = documents.pop(HELD_OUT)
    kind = KINDS[args.kind]
    if not args.evaluate:
        args.out.mkdir(parents=True, exist_ok=True)
        samples = load_samples(target, documents[STYLE], args)
        drafter = kind.fresh(target, samples)
        say(f"{sum(p.numel() for p in drafter.parameters()):,} parameters, {samples.numel():,} sampled tokens")
        fit(drafter, target, Rows(samples, documents, target.shape, args.seed), args)
    evaluate(kind.load(target, args.out), target, held_out)


if __name__ == "__main__":
    main()
