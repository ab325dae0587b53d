"""loadtest/compare_drafters.py: what it measures and makes, without a server."""

import json
import re

import compare_drafters
import safetensors
import torch
from safetensors.torch import load_file

METHODS_PAGE = compare_drafters.PAGE.read_text().split("## Which method", 1)[1].split("Measured", 1)[0]


def tensors_of(folder):
    return dict(safetensors.deserialize((folder / "model.safetensors").read_bytes()))


def test_every_method_that_is_described_has_a_row():
    described = re.findall(r"^\| `(\w+)` \|", METHODS_PAGE, re.M)
    shown = [re.match(r"`(\w+)`", variant.name)[1] for variant in compare_drafters.VARIANTS]
    assert set(shown) == set(described) and len(described) > 10
    for variant, method in zip(compare_drafters.VARIANTS, shown, strict=True):
        assert variant.config is None or variant.config["method"] == method


def test_the_first_layers_are_the_targets_own_bytes(tmp_path):
    compare_drafters.write_first_layers(2, tmp_path / "cut")
    whole, cut = tensors_of(compare_drafters.ROOT / "models" / "stories"), tensors_of(tmp_path / "cut")
    assert cut == {name: told for name, told in whole.items() if not re.search(r"layers\.[2-5]\.", name)}
    assert len(cut) < len(whole) and json.loads((tmp_path / "cut" / "config.json").read_text())["num_hidden_layers"] == 2


def test_what_is_widened_is_the_targets_own_numbers_and_zeros(tmp_path):
    compare_drafters.write_widened(1000, tmp_path / "wide")
    source = compare_drafters.ROOT / "models" / "stories"
    whole, wide = load_file(source / "model.safetensors"), load_file(tmp_path / "wide" / "model.safetensors")
    assert whole.keys() == wide.keys()
    for name, numbers in whole.items():
        rows, columns = (*numbers.shape, 1)[:2]
        corner = wide[name][:rows].reshape(wide[name][:rows].shape[0], -1)[:, :columns]
        assert torch.equal(corner.reshape(numbers.shape), numbers) and wide[name].count_nonzero() == numbers.count_nonzero()
        assert (list(wide[name].shape) == list(numbers.shape)) == ("mlp" not in name)
    configs = [json.loads((folder / "config.json").read_text()) for folder in (source, tmp_path / "wide")]
    assert configs[0] | {"intermediate_size": 1000} == configs[1]
    assert (tmp_path / "wide" / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()


def test_a_row_whose_file_could_not_be_made_is_not_measured():
    paths = {"<one>": "/a", "<two>": None}
    assert compare_drafters.with_paths({"model": ["b", "<one>"]}, paths) == {"model": ["b", "/a"]}
    assert compare_drafters.with_paths({"datastore": "<two>"}, paths) is None
    assert compare_drafters.with_paths(None, paths) is None


def test_prescribed_answers_are_the_documents_before_them_but_for_what_is_changed():
    for before, text in (*compare_drafters.editing(), *compare_drafters.json_records()):
        words = before.split()
        same = sum(word in words for word in text.split())
        assert 0.9 * len(text.split()) < same and text not in before
