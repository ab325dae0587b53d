"""Hydra heads in both published layouts, tiny and random, against a plain PyTorch forward: the logits of every head at every
position of a prompt, down the chain of their likeliest tokens. Tolerance as in test_draft_heads.py.
"""
import json
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
pytest.importorskip("transformers", reason="golden tests need transformers")

from safetensors.torch import save_file  # noqa: E402

from golden_support import LAMBDA, U, Reference, program, random_prompt  # noqa: E402
from pytorch_draft_heads import Hydra, Shape  # noqa: E402
from test_against_transformers import save  # noqa: E402
from test_draft_heads import TARGET, layer_tensors, normal, states_of  # noqa: E402

E, V, HEADS = 64, 320, 4


def config(**more):
    return {"hydra_num_heads": HEADS, "hydra_num_layers": 1, "hydra_head_arch": "mlp", "grounded_heads": True,
            "hidden_state_offset": 0, "base_model_name_or_path": "x", "transformers_version": "4.37.2", **more}


def head_tensors(num_blocks, block, output):
    """block(i): what the published file calls block i. Those behind the second are the second, written again."""
    tensors = {}
    for head in range(HEADS):
        wide = (head + 2) * E

        def put(name, n, k, std):
            tensors[f"{name}.weight"], tensors[f"{name}.bias"] = normal(n, k, std=std), normal(n, std=0.3)

        at = f"hydra_mlp.{head}"
        put(f"{at}.{block(0)}.res_connection", E, wide, wide**-0.5)
        put(f"{at}.{block(0)}.linear", E, wide, wide**-0.5)
        for i in range(1, num_blocks):
            if i == 1:
                put(f"{at}.{block(1)}.linear", E, E, 0.125)
                continue
            for part in ("weight", "bias"):
                tensors[f"{at}.{block(i)}.linear.{part}"] = tensors[f"{at}.{block(1)}.linear.{part}"].clone()
        put(output.format(head), V, E, 0.125)
    return tensors


def mlp():
    return config(), head_tensors(1, str, "hydra_lm_head.{}")


def deeper_heads_of_an_earlier_state():
    tensors = {name: t.bfloat16() for name, t in head_tensors(3, str, "hydra_lm_head.{}").items()}
    return config(hydra_num_layers=3, hidden_state_offset=2), tensors


def prefix():
    """Hydra++: a layer over the states, heads of four blocks, and dropouts that have numbers but no tensors."""
    tensors = head_tensors(4, lambda i: 2 * i + 1, "hydra_lm_head.{}.1")
    at = "prefix_embeding_layer"
    tensors |= layer_tensors(prefix_shape(), f"{at}.layers.0", E)
    tensors[f"{at}.norm.weight"] = 1 + normal(E, std=0.3)
    tensors[f"{at}.embed_tokens.weight"] = normal(V, E, std=1)
    tensors[f"{at}.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    return config(hydra_num_layers=4, hydra_head_arch="prefix-mlp"), {name: t.half() for name, t in tensors.items()}


LAYOUTS = {"mlp": mlp, "deeper heads of an earlier state": deeper_heads_of_an_earlier_state, "prefix": prefix}


def prefix_shape():
    """As the target's layers are."""
    return Shape(hidden=E, ffn=96, heads=4, kv_heads=2, head_dim=16, vocab=V, theta=500000.0)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    directory = tmp_path_factory.mktemp("target") / "model"
    save(directory, "llama", TARGET)
    return directory, Reference(directory)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_heads_in_each_published_layout_give_the_logits_of_their_description(layout, target, tmp_path):
    directory, reference = target
    torch.manual_seed(list(LAYOUTS).index(layout))
    keys, tensors = LAYOUTS[layout]()
    (tmp_path / "config.json").write_text(json.dumps(keys))
    save_file({name: t.contiguous() for name, t in tensors.items()}, tmp_path / "model.safetensors")
    tokens = random_prompt(40, V)
    np.asarray(tokens, dtype=np.int32).tofile(tmp_path / "tokens.bin")
    command = [program("hydra_head_tool"), directory, tmp_path, "--tokens", tmp_path / "tokens.bin", "--logits",
               tmp_path / "logits.bin"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    chains = json.loads(done.stdout)["chains"]
    rows = len(tokens) - 1
    ours = np.fromfile(tmp_path / "logits.bin", dtype=np.float32).reshape(rows, HEADS, V)

    offset, num_layers = keys["hidden_state_offset"], TARGET["num_hidden_layers"]
    with torch.no_grad():
        heads = Hydra(keys, tensors, reference.model.get_input_embeddings().weight, prefix_shape())
        states = heads.begin(states_of(reference, tokens, (num_layers - offset,) if offset else ()))
        theirs, lengths = [], []
        for row in range(rows):
            said = [heads.head(i, states[row], [tokens[row + 1], *chains[row][:i]]) for i in range(HEADS)]
            theirs.append(torch.stack([logits for logits, _ in said]))
            lengths.append([length for _, length in said])
    theirs, lengths = torch.stack(theirs).numpy(), np.asarray(lengths)
    path = reference.chain(len(tokens)) + heads.longest_path(len(tokens))
    angle = np.arange(1, rows + 1)[:, None] * 6 * U * (num_layers + 1)
    allowed = 2 * (LAMBDA * np.sqrt(path) * U + angle) * lengths
    error = np.abs(ours - theirs).max(-1)
    print(f"\n{layout}: largest error {error.max():.3g}, {(error / allowed).max():.3f} of what is allowed")
    assert (error <= allowed).all()
    assert chains == ours.argmax(-1).tolist()


def test_a_file_may_leave_out_what_is_written_again(target, tmp_path):
    """Some converters drop tensors that are others once more."""
    torch.manual_seed(5)
    tokens = random_prompt(12, V)
    np.asarray(tokens, dtype=np.int32).tofile(tmp_path / "tokens.bin")
    keys, tensors = prefix()
    (tmp_path / "config.json").write_text(json.dumps(keys))
    answers = []
    for dropped in ((), (".5.linear.", ".7.linear.", "embed_tokens", "inv_freq")):
        kept = {name: t.contiguous() for name, t in tensors.items() if not any(part in name for part in dropped)}
        assert (len(kept) < len(tensors)) == bool(dropped)
        save_file(kept, tmp_path / "model.safetensors")
        command = [program("hydra_head_tool"), target[0], tmp_path, "--tokens", tmp_path / "tokens.bin", "--logits",
                   tmp_path / "logits.bin"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        answers.append((done.stdout, (tmp_path / "logits.bin").read_bytes()))
    assert answers[0] == answers[1]
