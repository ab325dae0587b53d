"""Embeddings over the wire against transformers' hidden states, for tiny random checkpoints with K and V in f32.

Tolerance, derived: to first order a row's hidden state behind the final norm, x, has x·w off by at most t·|x||w| for any w
(golden_support.py, a factor 2 for both sides): so each of its numbers by 2·t·|x|, and the mean of rows by the mean
of that. Normalised vectors are held to their own unnormalised ones: to an ulp of each rounding.
"""
import importlib.util
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
pytest.importorskip("transformers", reason="golden tests need transformers")

from golden_support import ROOT, U, Reference, program, random_prompt  # noqa: E402
from test_against_transformers import save  # noqa: E402

VOCAB = 4096  # of the tokenizer that comes with the checkpoint
CASES = {
    "llama-f32": ("llama", {}, {}),
    "mistral-window-24": ("mistral", {"sliding_window": 24}, {}),
    "qwen3-bf16-tied": ("qwen3", {"tie_word_embeddings": True}, {"dtype": "bfloat16"}),
}
LENGTHS = [1, 2, 17, 300]


@pytest.fixture(scope="module", params=CASES)
def world(request, tmp_path_factory):
    """A server of the checkpoint, and transformers with the same."""
    program("quire")
    family, changes, saving = CASES[request.param]
    directory = tmp_path_factory.mktemp("embeddings") / "model"
    save(directory, family, {"vocab_size": VOCAB, **changes}, **saving)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "models" / "stories" / name, directory / name)
    spec = importlib.util.spec_from_file_location("wire_conftest", ROOT / "tests" / "wire" / "conftest.py")
    wire = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wire)
    running = wire.Server("--model", directory, "--kv-cache-dtype", "f32", "--max-num-batched-tokens", 64)
    reference = Reference(directory)
    reference.frequency_error = 4 * U
    yield running, reference
    assert running.stop() == 0


def hidden_of(reference, ids):
    """Hidden states [T, E] behind the final norm, and how far ours may be from each number of a row."""
    with torch.no_grad():
        out = reference.model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
        widest = float(reference.model.get_output_embeddings().weight.norm(dim=-1).max())
    return out.hidden_states[-1][0].to(torch.float64).numpy(), reference(ids)[1] / widest


def embed(server, ids, **fields):
    answer = server.post_to("/v1/embeddings", {"input": ids, **fields})
    assert answer.status == 200, answer.text
    return [np.array(one["embedding"], dtype=np.float32).astype(np.float64) for one in answer.json["data"]]


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_embeddings_are_the_pooled_hidden_states_of_transformers(world, pooling):
    server, reference = world
    prompts = [random_prompt(length, VOCAB) for length in LENGTHS]
    for ids, told in zip(prompts, embed(server, prompts, pooling=pooling, normalize=False), strict=True):
        rows, tolerance = hidden_of(reference, ids)
        rows, tolerance = (rows[-1:], tolerance[-1:]) if pooling == "last" else (rows, tolerance)
        difference = np.abs(told - rows.mean(axis=0)).max()
        print(f"{len(ids)} tokens: {difference:.3g} off, {difference / tolerance.mean():.3g} of the tolerance")
        assert difference <= tolerance.mean()
        assert np.abs(told).max() > 10 * tolerance.mean(), "the tolerance would let anything pass"


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("dimensions", [None, 1, 5, 128])
def test_dimensions_are_cut_before_the_vector_is_normalised(world, pooling, dimensions):
    server, _ = world
    ids = random_prompt(40, VOCAB)
    plain = embed(server, ids, pooling=pooling, normalize=False)[0][:dimensions]
    told = embed(server, ids, pooling=pooling, **({"dimensions": dimensions} if dimensions else {}))[0]
    assert np.abs(told - plain / np.linalg.norm(plain)).max() <= 4 * U


def test_the_two_poolings_differ(world):
    server, _ = world
    ids = random_prompt(40, VOCAB)
    last, mean = (embed(server, ids, pooling=pooling)[0] for pooling in ("last", "mean"))
    assert np.abs(last - mean).max() > 0.01
