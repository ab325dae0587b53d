"""Draft heads in each published layout, tiny and random, against a plain PyTorch forward: logits at every position from the
target's own states (which transformers gives), and those of a chain from the head's own.

Tolerance as derived in test_against_transformers.py: to first order a logit x·w is off by at most LAMBDA·sqrt(N)·u·|x||w|, N
the lengths of the sums on the way to it: through the target, then the head, and in a chain once more for each step of it. Rope
adds its angles' error. Both sides may err: a factor 2.
"""
import json
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
pytest.importorskip("transformers", reason="golden tests need transformers")

from safetensors.torch import save_file  # noqa: E402

from golden_support import LAMBDA, U, Reference, program, random_prompt  # noqa: E402
from pytorch_draft_heads import Head, Shape  # noqa: E402
from test_against_transformers import save  # noqa: E402

STEPS = 4
TARGET = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 8, "num_attention_heads": 4,
          "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}


def normal(*sizes, std):
    return torch.randn(*sizes) * std


def layer_tensors(shape, prefix, width, input_norm=True):
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    std = 0.125
    tensors = {f"{prefix}.self_attn.{name}_proj.weight": normal(n, width, std=std)
               for name, n in (("q", q), ("k", kv), ("v", kv))}
    tensors[f"{prefix}.self_attn.o_proj.weight"] = normal(shape.hidden, q, std=std)
    tensors[f"{prefix}.mlp.gate_proj.weight"] = normal(shape.ffn, shape.hidden, std=std)
    tensors[f"{prefix}.mlp.up_proj.weight"] = normal(shape.ffn, shape.hidden, std=std)
    tensors[f"{prefix}.mlp.down_proj.weight"] = normal(shape.hidden, shape.ffn, std=std)
    norms = ["post_attention_layernorm"] + (["input_layernorm"] if input_norm else [])
    for name in norms:
        tensors[f"{prefix}.{name}.weight"] = 1 + normal(shape.hidden, std=0.3)
    return tensors


def eagle3_tensors(shape, first="midlayer"):
    states = len(shape.boundaries) * shape.target_hidden
    tensors = {"fc.weight": normal(shape.hidden, states, std=0.06), "norm.weight": 1 + normal(shape.hidden, std=0.3),
               "lm_head.weight": normal(shape.draft_vocab, shape.hidden, std=0.125)}
    tensors |= layer_tensors(shape, first, 2 * shape.hidden)
    tensors[f"{first}.hidden_norm.weight"] = 1 + normal(shape.hidden, std=0.3)
    for layer in range(1, shape.layers):
        tensors |= layer_tensors(shape, f"layers.{layer}", shape.hidden)
    if shape.draft_vocab < shape.vocab:
        ids = torch.randperm(shape.vocab)[: shape.draft_vocab].sort().values
        tensors["d2t"] = ids - torch.arange(shape.draft_vocab)
        tensors["t2d"] = torch.zeros(shape.vocab, dtype=torch.bool)
        tensors["t2d"][ids] = True
    return tensors


def llama_config(shape, **more):
    return {"hidden_size": shape.hidden, "intermediate_size": shape.ffn, "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "vocab_size": shape.vocab,
            "max_position_embeddings": 2048, "rms_norm_eps": shape.eps, "hidden_act": "silu", **more}


def official():
    """No rope_theta, which means 10000 whatever the target has, nor ids of layers: 2, n / 2, n - 3."""
    shape = Shape(boundaries=(2, 4, 5), target_hidden=64, draft_vocab=192)
    config = llama_config(shape, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=192, pad_token_id=0,
                          tie_word_embeddings=False, torch_dtype="float16", transformers_version="4.41.0")
    return shape, config, {name: t.half() if t.is_floating_point() else t for name, t in eagle3_tensors(shape).items()}


def specforge():
    """The ids of layers whose output is taken, in an object of their own; rope as the target's."""
    shape = Shape(boundaries=(2, 4, 8), target_hidden=64, draft_vocab=320, theta=500000.0, head_dim=24, ffn=80)
    config = llama_config(shape, architectures=["LlamaForCausalLMEagle3"], head_dim=24, draft_vocab_size=320,
                          rope_theta=500000.0, attention_bias=False, mlp_bias=False, target_model_type=None,
                          eagle_config={"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [1, 3, 7]})
    return shape, config, {name: t.bfloat16() if t.is_floating_point() else t
                           for name, t in eagle3_tensors(shape).items()}


def speculators():
    shape = Shape(boundaries=(2, 5, 8), target_hidden=64, draft_vocab=160, theta=20000.0, layers=2,
                  norm_before_residual=True)
    config = {"speculators_model_type": "eagle3", "speculators_version": "0.3.0", "architectures": ["Eagle3Speculator"],
              "transformer_layer_config": llama_config(shape, model_type="llama", rope_theta=20000.0, head_dim=16),
              "draft_vocab_size": 160, "target_hidden_size": None, "norm_before_residual": True, "norm_before_fc": False,
              "fc_norm": False, "eagle_aux_hidden_state_layer_ids": [2, 5, 8], "embed_requires_grad": False,
              "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "x"}}}
    return shape, config, eagle3_tensors(shape, "layers.0")


def variants():
    """What few heads have: a norm of all states, a normed output that goes on, a scale, biases, norms of q and k, an embedding."""
    shape = Shape(boundaries=(3, 6), target_hidden=64, hidden=48, norm_before_fc=True, norm_output=True, logit_scale=0.5)
    config = llama_config(shape, architectures=["LlamaForCausalLMEagle3"], head_dim=16, norm_before_fc=True,
                          norm_output=True, logit_scale=0.5, attention_bias=True, target_hidden_size=64,
                          num_aux_hidden_states=2, eagle_aux_hidden_state_layer_ids=[3, 6])
    tensors = {f"model.{name}": t for name, t in eagle3_tensors(shape).items()}
    tensors["embed_tokens.weight"] = normal(shape.vocab, shape.hidden, std=1)
    tensors["input_norm.weight"] = 1 + normal(128, std=0.3)
    for name, n in (("q", 64), ("k", 32), ("v", 32), ("o", 48)):
        tensors[f"model.midlayer.self_attn.{name}_proj.bias"] = normal(n, std=0.3)
    for name in ("q_norm", "k_norm"):
        tensors[f"midlayer.self_attn.{name}.weight"] = 1 + normal(16, std=0.3)
    return shape, config, tensors


def normed_states(layout="fc_norm.{}"):
    """A norm for each of the states before they meet."""
    shape = Shape(boundaries=(2, 4, 5), target_hidden=64, fc_norm=True)
    config = llama_config(shape, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=320, fc_norm=True)
    tensors = eagle3_tensors(shape)
    for number, name in enumerate(("low", "mid", "high")):
        tensors[layout.format(number, name) + ".weight"] = 1 + normal(64, std=0.5)
    return shape, config, tensors


def normed_states_by_first_names():
    return normed_states("aux_norm_{1}")


def last_state():
    """EAGLE-3 without an fc: the target's last state is the feature."""
    shape = Shape(target_hidden=64, last_state=True, draft_vocab=192, norm_output=True)
    config = llama_config(shape, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=192, norm_output=True,
                          eagle_config={"eagle_aux_hidden_state_layer_ids": [], "use_aux_hidden_state": False,
                                        "use_input_layernorm_in_first_layer": True, "use_last_layernorm": True,
                                        "use_mtp_layernorm": False, "next_layer_regular": True})
    tensors = eagle3_tensors(shape)
    del tensors["fc.weight"]
    return shape, config, tensors


def eagle1():
    shape = Shape(target_hidden=64)
    config = llama_config(shape, architectures=["LlamaForCausalLM"], model_type="llama", bias=False, use_cache=True)
    tensors = {"fc.weight": normal(64, 128, std=0.1), "fc.bias": normal(64, std=0.3)}
    tensors |= layer_tensors(shape, "layers.0", 64, input_norm=False)
    return shape, config, tensors


LAYOUTS = {"official": official, "specforge": specforge, "speculators": speculators, "variants": variants,
           "a norm for each state": normed_states, "the same by first names": normed_states_by_first_names,
           "the last state alone": last_state, "eagle1": eagle1}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    directory = tmp_path_factory.mktemp("target") / "model"
    save(directory, "llama", TARGET)
    return directory, Reference(directory)


def states_of(reference, tokens, boundaries):
    """[T, states] side by side, or the last one behind the norm."""
    entering = []
    hook = reference.model.model.norm.register_forward_pre_hook(lambda _, args: entering.append(args[0]))
    with torch.no_grad():
        out = reference.model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
    hook.remove()
    if not boundaries:
        return out.hidden_states[-1][0]
    before = list(out.hidden_states[:-1]) + entering
    return torch.cat([before[b][0] for b in boundaries], -1)


def canonical(name):
    for number, first_name in enumerate(("aux_norm_low", "aux_norm_mid", "aux_norm_high")):
        name = name.replace(first_name, f"fc_norm.{number}")
    return name.removeprefix("model.").replace("midlayer.", "layers.0.")


def run_tool(model, head, tokens, tmp_path, steps=STEPS):
    np.asarray(tokens, dtype=np.int32).tofile(tmp_path / "tokens.bin")
    command = [program("draft_head_tool"), model, head, "--tokens", tmp_path / "tokens.bin", "--logits",
               tmp_path / "logits.bin", "--steps", steps]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_head_in_each_published_layout_gives_the_logits_of_its_description(layout, target, tmp_path):
    directory, reference = target
    torch.manual_seed(list(LAYOUTS).index(layout))
    shape, config, tensors = LAYOUTS[layout]()
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file({name: t.contiguous() for name, t in tensors.items()}, tmp_path / "model.safetensors")
    tokens = random_prompt(70, shape.vocab)
    done = run_tool(directory, tmp_path, tokens, tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["boundaries"] == list(shape.boundaries)
    ours = np.fromfile(tmp_path / "logits.bin", dtype=np.float32).reshape(len(tokens) - 1 + STEPS, shape.draft_vocab)

    with torch.no_grad():
        head = Head(shape, {canonical(name): t for name, t in tensors.items()},
                    reference.model.get_input_embeddings().weight, reference.model.get_output_embeddings().weight)
        g = head.feature(states_of(reference, tokens, shape.boundaries))[:-1]
        positions = torch.arange(len(tokens) - 1)
        g, logits, lengths = head.step(g, torch.tensor(tokens[1:]), positions)
        rows, seen, at = [logits], [lengths], [positions + 1]
        for step in range(STEPS):
            position = torch.tensor([len(tokens) - 1 + step])
            g, logits, lengths = head.step(g[-1:], torch.tensor(answer["chain"][step : step + 1]), position)
            rows, seen, at = rows + [logits], seen + [lengths], at + [position + 1]
    theirs, lengths, at = torch.cat(rows).numpy(), torch.cat(seen).numpy(), torch.cat(at).numpy()
    passes = 1 + np.maximum(0, np.arange(len(ours)) - (len(tokens) - 2))
    path = reference.chain(len(tokens)) + passes * head.longest_path(len(tokens) + STEPS)
    angle = at * 6 * U * (TARGET["num_hidden_layers"] + passes * shape.layers)
    widest = float(head.output.detach().norm(dim=-1).max())
    allowed = 2 * (LAMBDA * np.sqrt(path) * U + angle) * lengths * widest
    error = np.abs(ours - theirs).max(-1)
    print(f"\n{layout}: largest error {error.max():.3g}, {(error / allowed).max():.3f} of what is allowed")
    assert (error <= allowed).all()
    # The tool goes on with what it found likeliest, in the target's numbers.
    best = head.token_of[torch.tensor(ours[len(tokens) - 2 :]).argmax(-1)]
    assert answer["chain"] == best.tolist()


def changed(**changes):
    def change(config, tensors):
        config.update(changes)
    return change


def without(name):
    def change(config, tensors):
        del tensors[name]
    return change


def with_tensor(name, tensor):
    def change(config, tensors):
        tensors[name] = tensor
    return change


# Each would be read as another head than was trained, and only guess badly.
REFUSED = {
    "an unknown key": (changed(parallel_drafting=True), ["parallel_drafting"]),
    "norms of the states that are not there": (changed(fc_norm=True), ["fc_norm.0.weight", "fc_norm.2.weight"]),
    "two kinds of norms of the same states": (changed(fc_norm=True, norm_before_fc=True), ["fc_norm", "norm_before_fc"]),
    "a norm of a state that nothing says is normed": (with_tensor("fc_norm.0.weight", torch.ones(64)), ["fc_norm.0.weight"]),
    "another vocabulary": (changed(vocab_size=300), ["vocab_size", "320"]),
    "states that the target has not": (changed(eagle_aux_hidden_state_layer_ids=[2, 4, 9]), ["2, 4, 9"]),
    "an fc of states that are not used": (changed(eagle_config={"use_aux_hidden_state": False}), ["fc.weight"]),
    "ids of states that are not used": (changed(eagle_config={"use_aux_hidden_state": False},
                                                eagle_aux_hidden_state_layer_ids=[2, 4, 5]),
                                        ["eagle_aux_hidden_state_layer_ids", "only the last state"]),
    "a first layer without its norm": (changed(eagle_config={"use_input_layernorm_in_first_layer": False}),
                                       ["use_input_layernorm_in_first_layer", "true"]),
    "norms of another design": (changed(eagle_config={"use_mtp_layernorm": True}), ["use_mtp_layernorm", "false"]),
    "several guesses at once": (changed(eagle_config={"parallel_draft_step": 4}), ["parallel_draft_step"]),
    "an unused tensor": (with_tensor("mask_hidden", torch.zeros(1, 64)), ["mask_hidden"]),
    "a missing tensor": (without("midlayer.hidden_norm.weight"), ["layers.0.hidden_norm.weight"]),
    "fc of another width": (with_tensor("fc.weight", torch.zeros(64, 128)), ["fc.weight", "[64, 192]"]),
    "no offsets of a smaller vocabulary": (without("d2t"), ["d2t"]),
    "offsets that leave the vocabulary": (with_tensor("d2t", torch.full((192,), 200)), ["d2t", "outside the target"]),
    "members that are not the offsets'": (with_tensor("t2d", torch.ones(320, dtype=torch.bool)), ["t2d", "d2t"]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_head_that_would_be_read_wrongly_is_refused_by_name(reason, target, tmp_path):
    torch.manual_seed(1)
    _, config, tensors = official()
    change, words = REFUSED[reason]
    change(config, tensors)
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file({name: t.contiguous() for name, t in tensors.items()}, tmp_path / "model.safetensors")
    done = run_tool(target[0], tmp_path, [1, 2, 3], tmp_path)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr


def test_all_that_is_wrong_is_told_at_once(target, tmp_path):
    torch.manual_seed(1)
    _, config, tensors = official()
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_act": "gelu", "one": 1, "two": 2}))
    done = run_tool(target[0], tmp_path, [1, 2, 3], tmp_path)
    assert "3 problems" in done.stderr
    del tensors["norm.weight"], tensors["midlayer.mlp.up_proj.weight"]
    tensors["more"] = torch.zeros(1)
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file({name: t.contiguous() for name, t in tensors.items()}, tmp_path / "model.safetensors")
    done = run_tool(target[0], tmp_path, [1, 2, 3], tmp_path)
    for name in ("norm.weight", "layers.0.mlp.up_proj.weight", "'more'"):
        assert name in done.stderr
    assert "3 problems" in done.stderr


def test_a_pickle_is_never_opened(target, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(official()[1]))
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    done = run_tool(target[0], tmp_path, [1, 2, 3], tmp_path)
    assert done.returncode == 2 and "safetensors" in done.stderr
