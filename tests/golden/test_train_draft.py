"""The trainer of drafters decodes from all positions at once; written the long way, a token at a time, it says the same."""

import math
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
import torch.nn.functional as F  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "models"))
import train  # noqa: E402
import train_draft  # noqa: E402

SHAPE = train.Shape(vocab=97, hidden=32, layers=6, heads=4, kv_heads=2, head_dim=8, ffn=48, context=40)
ROWS, LENGTH, CHAIN = 3, 14, 4
torch.set_num_threads(1)  # the matrices are tiny


def randomise(module, generator):
    for p in module.parameters():
        p.requires_grad_(False).normal_(std=1 / math.sqrt(p.shape[-1]), generator=generator)
        if p.ndim == 1:
            p.add_(1)
    return module


@pytest.fixture(scope="module")
def target():
    model = randomise(train.Llama(SHAPE, bf16=False), torch.Generator().manual_seed(1))
    model.embed_tokens.weight.mul_(4)  # far from ties
    return model


@pytest.fixture(scope="module")
def ids():
    return torch.randint(SHAPE.vocab, (ROWS, LENGTH), generator=torch.Generator().manual_seed(2))


def likeliest(logits, tokens_of, roots, k):
    return tokens_of[logits.argmax(-1)]


def rms(x, weight):
    return x / (x.pow(2).mean() + SHAPE.norm_eps).sqrt() * weight


def turn(x, position):
    """x [heads, D]: element i and element i + D/2 are the two sides of one angle."""
    half = SHAPE.head_dim // 2
    angle = position * SHAPE.rope_theta ** (-torch.arange(half) / half)
    low, high = x[:, :half], x[:, half:]
    return torch.cat([low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()], -1)


class LongEagle:
    """The head as a server runs it: its rows one after another, from the tensors as they lie in the file."""

    def __init__(self, target, tensors):
        self.target, self.w = target, tensors

    def row(self, g, token, position, kept):
        """kept: (k, v) of the rows it sees -> its state, its (k, v)"""
        w, layer = self.w, "midlayer.self_attn."
        embedding = self.target.embed_tokens.weight[token]
        u = torch.cat([rms(embedding, w["midlayer.input_layernorm.weight"]), rms(g, w["midlayer.hidden_norm.weight"])])
        q, k, v = (w[f"{layer}{x}_proj.weight"] @ u for x in "qkv")
        q, k = (turn(x.view(-1, SHAPE.head_dim), position) for x in (q, k))
        kept = kept + [(k, v.view(-1, SHAPE.head_dim))]
        heads = []
        for h in range(SHAPE.heads):
            group = h // (SHAPE.heads // SHAPE.kv_heads)
            p = torch.stack([q[h] @ key[group] for key, _ in kept]).div(math.sqrt(SHAPE.head_dim)).softmax(0)
            heads.append(sum(x * value[group] for x, (_, value) in zip(p, kept)))
        state = g + w[layer + "o_proj.weight"] @ torch.cat(heads)
        y = rms(state, w["midlayer.post_attention_layernorm.weight"])
        gate, up = w["midlayer.mlp.gate_proj.weight"] @ y, w["midlayer.mlp.up_proj.weight"] @ y
        return state + w["midlayer.mlp.down_proj.weight"] @ (F.silu(gate) * up), kept

    def guesses(self, tokens, boundaries, num):
        """Behind the last of the tokens, which the target has not read."""
        kept = []
        for t in range(len(tokens) - 1):
            g = self.w["fc.weight"] @ torch.cat([boundaries[b][t] for b in (2, 4, 6)])
            state, kept = self.row(g, tokens[t + 1], t, kept)
        said = []
        for t in range(len(tokens) - 1, len(tokens) - 1 + num):
            i = (self.w["lm_head.weight"] @ rms(state, self.w["norm.weight"])).argmax().item()
            said.append(i + self.w["d2t"][i].item())
            state, kept = self.row(state, said[-1], t, kept)
        return said


def test_an_exported_head_run_row_by_row_guesses_what_the_trainer_guesses(target, ids, tmp_path):
    head = train_draft.Eagle(target, torch.arange(3, SHAPE.vocab, 2))
    randomise(head, torch.Generator().manual_seed(3))
    for p in head.parameters():
        p.copy_(p.bfloat16())  # as exported
    head.export(tmp_path, SHAPE)
    tensors = {k: v.float() if v.is_floating_point() else v
               for k, v in train_draft.safetensors.torch.load_file(tmp_path / "model.safetensors").items()}
    assert tensors["t2d"].nonzero().flatten().tolist() == list(range(3, SHAPE.vocab, 2))
    long = LongEagle(target, tensors)
    reading = train_draft.read(target, ids)
    guesses = head.chains(ids, reading, CHAIN, likeliest)
    for row in range(ROWS):
        for root in range(1, LENGTH):
            states = [b[row] for b in reading.boundaries]
            assert guesses[row, root].tolist() == long.guesses(ids[row, : root + 1].tolist(), states, CHAIN)


def test_a_draft_model_guesses_what_it_says_when_it_reads_everything_again(target, ids):
    model = randomise(train_draft.DraftModel(target), torch.Generator().manual_seed(4))
    model.bf16 = False
    guesses = model.chains(ids, None, CHAIN, likeliest)
    for row in range(ROWS):
        for root in range(LENGTH):
            text = ids[row : row + 1, : root + 1]
            for _ in range(CHAIN):
                text = torch.cat([text, model(text)[:, -1:].argmax(-1)], 1)
            assert guesses[row, root].tolist() == text[0, root + 1 :].tolist()


def test_a_fresh_draft_model_has_tokens_as_like_as_the_target_has_them(target):
    """Products of any two rows, in as many of its dimensions as the target has."""
    rows = train_draft.DraftModel.fresh(target, None).embed_tokens.weight[:, : SHAPE.hidden]
    expected = target.embed_tokens.weight * target.norm.weight
    torch.testing.assert_close(rows @ rows.T, expected @ expected.T, rtol=1e-4, atol=1e-2)


def test_generating_with_kept_keys_says_what_reading_everything_again_says(target):
    prompts = [[5, 6, 7], [8], [9, 10]]
    generator = torch.Generator().manual_seed(5)
    noise = torch.stack([train_draft.gumbel(ROWS, SHAPE.vocab, generator) for _ in range(LENGTH)])
    temperature = torch.tensor([[0.0], [0.7], [1.0]])
    ids = train_draft.generate(target, prompts, LENGTH, temperature, lambda t: noise[t])
    for row, prompt in enumerate(prompts):
        said = list(prompt)
        while len(said) < LENGTH:
            logits = target(torch.tensor([said]))[0, -1]
            said.append((logits + temperature[row] * noise[len(said), row]).argmax().item())
        assert ids[row].tolist() == said


def test_a_drafter_that_is_the_target_has_every_guess_taken_with_shared_noise(target):
    twin = train_draft.DraftModel(target)
    twin.shape, twin.layers, twin.bf16 = SHAPE, target.layers, False
    twin.embed_tokens, twin.norm, twin.cos, twin.sin = target.embed_tokens, target.norm, target.cos, target.sin
    prompts = [[5, 6, 7], [8, 9, 10]]
    for temperature in (0.0, 1.0):
        taken = train_draft.count_steps(twin, target, prompts, LENGTH, temperature, shared=True, seed=6)
        assert taken and set(taken) == {train_draft.CHAIN}


@pytest.mark.parametrize("kind", train_draft.KINDS.values())
def test_training_on_one_batch_lowers_every_loss(target, ids, kind):
    torch.manual_seed(7)
    drafter = kind.fresh(target, torch.arange(SHAPE.vocab, dtype=torch.int16))
    optimizers = train_draft.make_optimizers(drafter)
    reading, counts = train_draft.read(target, ids), torch.ones_like(ids, dtype=torch.bool)
    history = []
    for _ in range(30):
        losses = [loss for loss, _ in drafter.losses(ids, counts, reading)]
        history.append([loss.item() for loss in losses])
        sum(losses).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert all(last < first for first, last in zip(history[0], history[-1]))


@pytest.mark.parametrize("kind", train_draft.KINDS.values())
def test_what_is_exported_loads_and_guesses_the_same(target, ids, kind, tmp_path):
    drafter = randomise(kind.fresh(target, torch.arange(SHAPE.vocab, dtype=torch.int16)), torch.Generator().manual_seed(8))
    for p in drafter.parameters():
        p.copy_(p.bfloat16())
    drafter.export(tmp_path, SHAPE)
    reading = train_draft.read(target, ids)
    again = kind.load(target, tmp_path)
    assert torch.equal(again.chains(ids, reading, CHAIN, likeliest), drafter.chains(ids, reading, CHAIN, likeliest))


@pytest.mark.parametrize("kind", train_draft.KINDS.values())
def test_a_guess_depends_on_nothing_behind_its_root(target, ids, kind):
    drafter = randomise(kind.fresh(target, torch.arange(SHAPE.vocab, dtype=torch.int16)), torch.Generator().manual_seed(9))
    root = LENGTH // 2
    other = ids.clone()
    other[:, root + 1 :] = (other[:, root + 1 :] + 1) % SHAPE.vocab
    both = [drafter.chains(x, train_draft.read(target, x), CHAIN, likeliest) for x in (ids, other)]
    assert torch.equal(both[0][:, : root + 1], both[1][:, : root + 1])
    assert not torch.equal(both[0][:, root + 1 :], both[1][:, root + 1 :])
