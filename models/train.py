#!/usr/bin/env python3
"""Train quire's embedded story model: a 5.5 M parameter Llama that fits in 11 MB.

    python train.py --corpus DIR --minutes 110          train, write ./stories
    python train.py --corpus DIR --evaluate ./stories   held-out loss per token
    python train.py --sample 10 --out ./stories         print ten stories

The file reads top to bottom: data, model, Muon, schedule, evaluation, export, and the loop that uses them.
The export is a plain Hugging Face folder; running it needs nothing from here.

Shapes in brackets use one set of letters:
  B rows of a batch, T tokens of a row, E hidden, F feed-forward, H query heads, K kv heads, D head size, V vocabulary.
"""

import argparse
import copy
import json
import math
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import tokenizers
import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    """The size of the model; the names of config.json in brackets."""

    vocab: int = 4096  # vocab_size
    hidden: int = 256  # hidden_size
    layers: int = 6  # num_hidden_layers
    heads: int = 4  # num_attention_heads
    kv_heads: int = 2  # num_key_value_heads
    head_dim: int = 64  # head_dim
    ffn: int = 704  # intermediate_size
    context: int = 512  # max_position_embeddings
    rope_theta: float = 10000.0  # rope_theta
    norm_eps: float = 1e-5  # rms_norm_eps


# ---------------------------------------------------------------------------------------------------------------------
# Data
#
# A corpus file holds stories separated by a line <|endoftext|>. That token is both the end of a story and the
# beginning of the next. A training row starts at the beginning of a document, half of the rows with the token and half
# without, so the model opens a story equally well after <|endoftext|> and from a bare "Once upon a time".

END_OF_TEXT = "<|endoftext|>"
END_ID = 0
IGNORE = -100  # target of a position that does not count

MIX = {"tinystories": 0.60, "bedtime_pd": 0.25, "storybooks_ccby": 0.07, "fairytaleqa": 0.08}  # share of the tokens
STYLE = "tinystories"  # the target style: the last part of training uses nothing else
STYLE_FROM = 0.80  # progress at which that part begins
HELD_OUT = "held out"
HOLD_OUT_EVERY = 33  # every 33rd story of STYLE (3 %) is kept for evaluation


def read_stories(corpus, name):
    packed = Path(corpus) / f"{name}.txt.zst"
    if packed.exists():
        text = subprocess.run(["zstd", "-dc", packed], check=True, stdout=subprocess.PIPE).stdout.decode()
    else:
        text = (Path(corpus) / f"{name}.txt").read_text()
    return [story.strip() for story in text.split(f"\n{END_OF_TEXT}\n") if story.strip()]


def split_held_out(stories):
    rest = [story for i, story in enumerate(stories) if i % HOLD_OUT_EVERY]
    return rest, stories[::HOLD_OUT_EVERY]


def train_tokenizer(stories_by_name, vocab):
    """Byte-level BPE as GPT-2's, trained on text in the proportions of MIX."""
    rng = random.Random(1)
    budget = sum(map(len, stories_by_name[STYLE])) / MIX[STYLE]
    text = []
    for name, share in MIX.items():
        room = budget * share
        for story in rng.sample(stories_by_name[name], len(stories_by_name[name])):
            if room > 0:
                text.append(story)
                room -= len(story)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def encode(tokenizer, stories):
    """Token ids of each story, closed by <|endoftext|>."""
    return [e.ids + [END_ID] for e in tokenizer.encode_batch(stories)]


def pack(documents, length, rng):
    """Pack documents into rows of at most `length` tokens, each beginning at the start of a document or of a piece.

    Documents that fit are never cut: each goes to the fullest open row with room for it (best-fit packing, Ding et al.
    2024, "Fewer Truncations Improve Language Modeling"). Longer ones are cut into pieces first.
    """
    pieces = [doc[i : i + length] for doc in documents for i in range(0, len(doc), length)]
    rng.shuffle(pieces)
    rows, open_rows = [], []
    for piece in pieces:
        fitting = [row for row in open_rows if len(row) + len(piece) <= length]
        if fitting:
            max(fitting, key=len).extend(piece)
        else:
            open_rows.append(list(piece))
        if len(open_rows) > 64:
            fullest = max(open_rows, key=len)
            open_rows.remove(fullest)
            rows.append(fullest)
    rows += open_rows
    rng.shuffle(rows)
    return rows


class Batches:
    """Endless batches (inputs, targets), both [B, T], from sources mixed in given shares."""

    def __init__(self, documents_by_name, context, seed):
        self.context = context
        self.rng = random.Random(seed)
        self.rows = {name: self._passes(documents) for name, documents in documents_by_name.items()}

    def _passes(self, documents):
        while True:
            yield from pack(documents, self.context, self.rng)

    def take(self, num_rows, mix):
        inputs = torch.full((num_rows, self.context), END_ID)
        targets = torch.full((num_rows, self.context), IGNORE)
        for i, name in enumerate(self.rng.choices(list(mix), weights=mix.values(), k=num_rows)):
            row = next(self.rows[name])
            if self.rng.random() < 0.5:
                row = [END_ID] + row
            row = torch.tensor(row[: self.context + 1])
            inputs[i, : len(row) - 1] = row[:-1]
            targets[i, : len(row) - 1] = row[1:]
        return inputs, targets


# ---------------------------------------------------------------------------------------------------------------------
# Model
#
# Llama: pre-norm, grouped-query attention with rotary positions, SwiGLU, tied embedding, no biases. Modules are named
# as in Hugging Face's LlamaModel, so the state dict is the export.


def linear(num_in, num_out, gain=1.0):
    layer = nn.Linear(num_in, num_out, bias=False)
    nn.init.normal_(layer.weight, std=gain / math.sqrt(num_in))
    return layer


def rotary_table(shape, num_tokens):
    """cos and sin [T, D] of the angles position * theta^(-2i/D), each angle twice: halves are rotated, not pairs."""
    frequency = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
    angle = torch.outer(torch.arange(num_tokens).float(), frequency).repeat(1, 2)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat([-high, low], dim=-1) * sin.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.q_proj = linear(shape.hidden, shape.heads * shape.head_dim)
        self.k_proj = linear(shape.hidden, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(shape.hidden, shape.kv_heads * shape.head_dim)
        self.o_proj = linear(shape.heads * shape.head_dim, shape.hidden, gain=0)  # a layer starts as the identity

    def forward(self, x, cos, sin):
        rows, num_tokens, _ = x.shape

        def split_heads(y):
            return y.view(rows, num_tokens, -1, self.shape.head_dim).transpose(1, 2)  # [B, heads, T, D]

        q = rotate(split_heads(self.q_proj(x)), cos, sin)
        k = rotate(split_heads(self.k_proj(x)), cos, sin)
        v = split_heads(self.v_proj(x))
        group = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(rows, num_tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj = linear(shape.hidden, shape.ffn)
        self.up_proj = linear(shape.hidden, shape.ffn)
        self.down_proj = linear(shape.ffn, shape.hidden, gain=0)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        self.mlp = FeedForward(shape)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """With bf16, matrix products run in bf16; weights, sums and the residual stream stay in f32."""

    def __init__(self, shape, bf16=True):
        super().__init__()
        self.shape = shape
        self.bf16 = bf16
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, shape.norm_eps)
        cos, sin = rotary_table(shape, shape.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, ids):
        """ids [B, T] -> logits [B, T, V]"""
        num_tokens = ids.shape[1]
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self.bf16):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x, self.cos[:num_tokens], self.sin[:num_tokens])
            return F.linear(self.norm(x), self.embed_tokens.weight)


def sum_of_losses(model, inputs, targets):
    """Cross entropy summed over the positions that count."""
    logits = model(inputs).flatten(0, 1).float()
    return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORE, reduction="sum")


# ---------------------------------------------------------------------------------------------------------------------
# Muon
#
# Keller Jordan 2024, "Muon: an optimizer for hidden layers": momentum, then the nearest (semi-)orthogonal matrix in its
# place, so every direction of a weight matrix learns at the same speed. For the matrices inside layers; the embedding
# and the norms take AdamW.


def orthogonalise(g):
    """Push all singular values of the matrices g [..., rows, columns] towards 1: five steps of Newton-Schulz."""
    x = (g.mT if g.shape[-2] > g.shape[-1] else g).bfloat16()  # rough is good enough: they end up in 0.7 .. 1.2
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if g.shape[-2] > g.shape[-1] else x).type_as(g)


class Muon(torch.optim.Optimizer):
    def __init__(self, matrices, lr, momentum=0.95, weight_decay=0.1):
        same_shape = {}
        for p in matrices:
            same_shape.setdefault(p.shape, []).append(p)
        groups = [{"params": params} for params in same_shape.values()]  # one batched Newton-Schulz each
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params, lr, beta = group["params"], group["lr"], group["momentum"]
            grad = torch.stack([p.grad for p in params])
            momentum = self.state[params[0]].setdefault("momentum", torch.zeros_like(grad))
            momentum.lerp_(grad, 1 - beta)
            update = orthogonalise(grad.lerp(momentum, beta))  # Nesterov: look one step ahead
            scale = max(1, update.shape[-2] / update.shape[-1]) ** 0.5
            for p, u in zip(params, update):
                p.mul_(1 - lr * group["weight_decay"]).add_(u, alpha=-lr * scale)


def make_optimizers(model):
    matrices = [p for p in model.layers.parameters() if p.ndim == 2]
    norms = [p for p in model.parameters() if p.ndim == 1]
    adamw = torch.optim.AdamW(
        [{"params": [model.embed_tokens.weight]}, {"params": norms, "weight_decay": 0.0}],
        lr=4e-3, betas=(0.9, 0.95), weight_decay=0.1,
    )
    return [Muon(matrices, lr=0.02), adamw]


# ---------------------------------------------------------------------------------------------------------------------
# Schedule
#
# Everything follows progress, from 0 to 1: the larger of the share of steps and the share of minutes that are gone. A
# run on a busy machine makes fewer steps but still ends on time with its learning rate at zero.

WARM_UP = 0.03
DECAY_FROM = 0.60


def learning_rate_factor(progress):
    rising = min(1.0, progress / WARM_UP + 0.01)
    falling = min(1.0, (1.0 - progress) / (1.0 - DECAY_FROM))
    return max(0.0, min(rising, falling))


def set_learning_rate(optimizers, factor):
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * factor


def mix_at(progress):
    return MIX if progress < STYLE_FROM else {STYLE: 1.0}


class Average:
    """Exponential moving average of the weights, over about the last 200 steps; this is what is shipped."""

    def __init__(self, model, decay=0.995):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay, self.step = decay, 0

    @torch.no_grad()
    def update(self, model):
        self.step += 1
        decay = min(self.decay, self.step / (self.step + 10))
        for mean, p in zip(self.model.parameters(), model.parameters()):
            mean.lerp_(p, 1 - decay)


# ---------------------------------------------------------------------------------------------------------------------
# Evaluation


@torch.no_grad()
def held_out_loss(model, documents, device, rows=16):
    """Mean loss per token over whole stories, each alone, read after <|endoftext|> up to its own <|endoftext|>."""
    total, count = 0.0, 0
    documents = sorted((doc[: model.shape.context] for doc in documents), key=len)
    for i in range(0, len(documents), rows):
        batch = documents[i : i + rows]
        inputs = torch.full((len(batch), len(batch[-1])), END_ID)
        targets = torch.full_like(inputs, IGNORE)
        for row, doc in enumerate(batch):
            inputs[row, 1 : len(doc)] = torch.tensor(doc[:-1])
            targets[row, : len(doc)] = torch.tensor(doc)
        total += sum_of_losses(model, inputs.to(device), targets.to(device)).item()
        count += sum(map(len, batch))
    return total / count


@torch.no_grad()
def sample_story(model, tokenizer, device, prompt="Once upon a time", temperature=0.8, top_p=0.9):
    """One story, until <|endoftext|> or the end of the context. Without a KV cache: short code, slow."""
    ids = tokenizer.encode(prompt).ids
    while len(ids) < model.shape.context:
        logits = model(torch.tensor([ids], device=device))[0, -1].float()
        p, order = (logits / temperature).softmax(-1).sort(descending=True)
        p[p.cumsum(-1) - p > top_p] = 0
        token = order[torch.multinomial(p, 1)].item()
        if token == END_ID:
            break
        ids.append(token)
    return tokenizer.decode(ids)


# ---------------------------------------------------------------------------------------------------------------------
# Export
#
# A Hugging Face folder. Every file is written aside and renamed, so a reader sees the old or the new one, never half.

# A chat becomes the beginning of a story: its messages, a line each, and nothing else.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}"
)


def write_file(path, write):
    aside = path.with_name(f".{path.name}.part")
    write(aside)
    aside.chmod(0o644)
    os.replace(aside, path)


def write_json(path, value):
    write_file(path, lambda aside: aside.write_text(json.dumps(value, indent=2) + "\n"))


def export_weights(model, folder):
    tensors = {f"model.{k}": v.to("cpu", torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    write_file(
        folder / "model.safetensors",
        lambda aside: safetensors.torch.save_file(tensors, aside, metadata={"format": "pt"}),
    )


def export_description(shape, tokenizer, folder):
    ids = {"bos_token_id": END_ID, "eos_token_id": END_ID}
    write_file(folder / "tokenizer.json", lambda aside: tokenizer.save(str(aside)))
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": shape.context,
        "chat_template": CHAT_TEMPLATE,
    })
    write_json(folder / "generation_config.json", {**ids, "do_sample": True, "temperature": 0.8, "top_p": 0.9})
    write_json(folder / "config.json", {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **ids,
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
    })


def load_weights(model, folder):
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    model.load_state_dict({k.removeprefix("model."): v.float() for k, v in tensors.items()})


# ---------------------------------------------------------------------------------------------------------------------
# The run

ROWS = 16  # rows of a step: 16 x 512 = 8,192 tokens
SHARE_ROWS = 4  # rows of one worker's share of it on a CPU


def say(text, colour=None):
    colours = {"green": "\033[32m", "dim": "\033[2m"}
    print(f"{colours[colour]}{text}\033[0m" if colour and sys.stdout.isatty() else text, flush=True)


class Gradients:
    """Loss and gradients of a batch, its rows shared among one-threaded workers.

    A core that is busy with something else then delays one share, not every single matrix product: faster than letting
    each product use all cores, and far steadier on a shared machine. A GPU takes the batch whole.
    """

    def __init__(self, model, num_workers, share_rows):
        self.model = model
        self.params = list(model.parameters())
        self.share_rows = share_rows
        self.pool = ThreadPoolExecutor(num_workers, initializer=torch.set_num_threads, initargs=(1,))

    def compute(self, inputs, targets):
        count = (targets != IGNORE).sum()

        def share(rows):
            loss = sum_of_losses(self.model, *rows) / count
            return loss.detach(), torch.autograd.grad(loss, self.params)

        shares = self.pool.map(share, zip(inputs.split(self.share_rows), targets.split(self.share_rows)))
        losses, grads = zip(*shares)
        for p, parts in zip(self.params, zip(*grads)):
            p.grad = sum(parts)
        return sum(losses).item()


def train(args, model, tokenizer, stories, device):
    documents = {name: encode(tokenizer, texts) for name, texts in stories.items()}
    for name, docs in documents.items():
        say(f"{name:16} {len(docs):6} stories {sum(map(len, docs)):9} tokens")
    held_out = documents.pop(HELD_OUT)
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {device}, at most {args.minutes:g} minutes")

    batches = Batches(documents, model.shape.context, seed=args.seed)
    gradients = Gradients(model, 1, ROWS) if device == "cuda" else Gradients(model, args.threads, SHARE_ROWS)
    optimizers = make_optimizers(model)
    average = Average(model)

    start = last_export = time.monotonic()
    step, tokens, smooth = 0, 0, None
    while True:
        minutes = (time.monotonic() - start) / 60
        progress = max(step / args.steps, minutes / args.minutes)
        if progress >= 1:
            break

        factor = learning_rate_factor(progress)
        set_learning_rate(optimizers, factor)
        inputs, targets = batches.take(ROWS, mix_at(progress))
        loss = gradients.compute(inputs.to(device), targets.to(device))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        average.update(model)

        step += 1
        tokens += (targets != IGNORE).sum().item()
        smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
        if step % 20 == 0:
            seconds = time.monotonic() - start
            left = seconds / 60 * (1 / progress - 1) if progress else args.minutes
            say(f"step {step:5}  {tokens / 1e6:6.2f} M tokens  {tokens / seconds:6.0f} tok/s  loss {smooth:.3f}  "
                f"lr x{factor:.2f}  {progress:4.0%}  {left:5.1f} min left", "dim")
        if time.monotonic() - last_export > 60 * args.export_minutes or step == 100:
            report(average.model, held_out, device, step, tokens, start, args.out)
            last_export = time.monotonic()

    report(average.model, held_out, device, step, tokens, start, args.out)


def report(model, held_out, device, step, tokens, start, folder):
    export_weights(model, folder)
    loss = held_out_loss(model, held_out, device)
    minutes = (time.monotonic() - start) / 60
    say(f"held out  step {step}  {tokens / 1e6:.2f} M tokens  {minutes:.1f} min  loss {loss:.4f}  "
        f"perplexity {math.exp(loss):.2f}", "green")


def load_tokenizer(args, stories):
    """The one in the output folder if there is one: its ids must not change under weights that use them."""
    path = args.out / "tokenizer.json"
    if path.exists():
        return tokenizers.Tokenizer.from_file(str(path))
    say("learning the tokenizer")
    return train_tokenizer(stories, Shape().vocab)


def read_corpus(corpus):
    stories = {name: read_stories(corpus, name) for name in MIX}
    stories[STYLE], stories[HELD_OUT] = split_held_out(stories[STYLE])
    return stories


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    files = ", ".join(f"{name}.txt[.zst]" for name in MIX)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help=f"folder with {files}")
    out = Path(__file__).parent / "stories"
    parser.add_argument("--out", type=Path, default=out, metavar="DIR", help="model folder (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=110, help="time for training (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=8000, help="maximum steps of 8,192 tokens (default: %(default)s)")
    parser.add_argument("--export-minutes", type=float, default=5, help="time between exports (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="workers on a CPU (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, batches and samples (default: %(default)s)")
    parser.add_argument("--start", type=Path, metavar="MODEL_DIR", help="begin with the weights of an earlier export")
    parser.add_argument("--evaluate", type=Path, metavar="MODEL_DIR", help="print the held-out loss per token and stop")
    parser.add_argument("--sample", type=int, metavar="N", help="print N stories by the model in --out and stop")
    args = parser.parse_args()
    if args.corpus is None and args.sample is None:
        parser.error("--corpus is needed to train and to evaluate")
    return args


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Llama(Shape()).to(device)  # bf16 is 2.1 times as fast as f32 even on a CPU, if that has AVX-512 BF16

    if args.sample is not None:
        load_weights(model, args.out)
        tokenizer = tokenizers.Tokenizer.from_file(str(args.out / "tokenizer.json"))
        for _ in range(args.sample):
            say(sample_story(model, tokenizer, device) + "\n" + END_OF_TEXT)
        return

    stories = read_corpus(args.corpus)
    if args.evaluate:
        load_weights(model, args.evaluate)
        model.bf16 = False  # the exact number
        tokenizer = tokenizers.Tokenizer.from_file(str(args.evaluate / "tokenizer.json"))
        loss = held_out_loss(model, encode(tokenizer, stories[HELD_OUT]), device)
        say(f"held-out loss per token {loss:.4f}, perplexity {math.exp(loss):.2f}")
        return

    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(args, stories)
    export_description(model.shape, tokenizer, args.out)
    if args.start:
        load_weights(model, args.start)
    train(args, model, tokenizer, stories, device)


if __name__ == "__main__":
    main()
