"""layers.txt is law: who may include whom, without a cycle."""

import re

import pytest

from tree import ROOT, files


def read_law(text):
    law = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            layer, allowed = line.split(":")
            law[layer.strip()] = allowed.split()
    return law


LAW = read_law((ROOT / "layers.txt").read_text())


def layer_of(path, law):
    return next((layer for layer in sorted(law, key=len, reverse=True) if path.startswith(layer + "/")), None)


def broken_includes(path, text, law):
    own = layer_of(path, law)
    if own is None:
        return [f"{path}: its directory has no line in layers.txt"]
    broken = []
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.MULTILINE):
        quote, included = match.groups()
        layer = layer_of(included, law)
        if quote == '"' and layer is None:
            broken.append(f"{path}: \"{included}\" is not written from the root of the tree")
        elif quote == "<" and layer is not None:
            broken.append(f"{path}: <{included}> is ours and wants quotes")
        elif layer is not None and layer != own and layer not in law[own]:
            broken.append(f"{path}: includes {included}, but layers.txt does not let {own} include {layer}")
    return broken


def find_cycle(law):
    done, path = set(), []

    def visit(layer):
        if layer in path:
            return path[path.index(layer) :] + [layer]
        if layer not in done:
            path.append(layer)
            for below in law[layer]:
                if cycle := visit(below):
                    return cycle
            path.pop()
            done.add(layer)
        return None

    return next((cycle for layer in law if (cycle := visit(layer))), None)


@pytest.mark.parametrize("layer", sorted(LAW))
def test_a_layer_includes_only_what_its_line_allows(layer):
    broken = [b for path, text in files(layer) for b in broken_includes(path, text, LAW)]
    assert not broken, "\n".join(broken)


def test_every_directory_of_sources_has_a_line():
    present = {layer_of(path, LAW) or path for path, _ in files("core", "api", "app", "gpu", "tools")}
    assert present <= set(LAW)


def test_a_line_names_only_layers_that_have_lines():
    assert {below for allowed in LAW.values() for below in allowed} <= set(LAW)


def test_the_graph_has_no_cycle():
    assert find_cycle(LAW) is None


def test_the_engine_and_the_api_do_not_see_each_other():
    assert "api" not in LAW["core/engine"] and "core/engine" not in LAW["api"]


def reached_from(layer, law):
    """The layer, all that it may include, and so on: what a program made of it links."""
    reached, open_layers = set(), [layer]
    while open_layers:
        if (one := open_layers.pop()) not in reached:
            reached.add(one)
            open_layers += law[one]
    return reached


def test_the_server_links_neither_a_measuring_tool_nor_the_simulated_gpu():
    reached = reached_from("app", LAW)
    assert {"core/engine", "api", "gpu"} <= reached
    assert [layer for layer in reached if layer.startswith(("tools", "gpu/simulated"))] == []


def test_what_is_reached_over_several_lines_is_found():
    assert reached_from("a", {"a": ["b"], "b": ["c"], "c": [], "d": ["a"]}) == {"a", "b", "c"}


SMALL = {"core/base": [], "core/kv": ["core/base"], "api": ["core/base"]}


@pytest.mark.parametrize(
    "path, text",
    [
        ("core/base/a.h", '#include "core/kv/pool.h"\n'),
        ("core/kv/a.cc", '#include "core/base/result.h"\n  #  include "api/http/session.h"\n'),
        ("core/kv/a.cc", '#include "pool.h"\n'),
        ("core/kv/a.cc", "#include <core/base/result.h>\n"),
        ("core/new/a.cc", ""),
    ],
)
def test_a_broken_include_is_found(path, text):
    assert len(broken_includes(path, text, SMALL)) == 1


def test_a_lawful_include_is_left_alone():
    assert broken_includes("core/kv/a.cc", '#include "core/kv/a.h"\n\n#include <vector>\n#include "core/base/x.h"\n', SMALL) == []


def test_a_cycle_is_found():
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["a"], "d": []}) == ["a", "b", "c", "a"]
