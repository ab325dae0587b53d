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
    return {layer: expanded(allowed, law) for layer, allowed in law.items()}


def expanded(allowed, law):
    """"api/*" is every layer below api."""
    return [one for word in allowed for one in ([l for l in law if l.startswith(word[:-1])] if word.endswith("/*") else [word])]


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


def directory_of(path):
    return path.rpartition("/")[0]


def included_directories(sources):
    """Directory → directories that its files include, as (file, included) pairs."""
    known = {directory_of(path) for path, _ in sources}
    edges = {}
    for path, text in sources:
        for included in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.MULTILINE):
            own, other = directory_of(path), directory_of(included)
            if other != own and other in known:
                edges.setdefault((own, other), []).append(f"{path} includes {included}")
    return edges


def mutual_pairs(sources):
    """Directories that include each other, with the fewer of the includes that make it so."""
    edges = included_directories(sources)
    return {
        (a, b): min(edges[a, b], edges[b, a], key=len) for a, b in edges if a < b and (b, a) in edges
    }


def units_of(sources):
    """Directory → its units: files of one name, whatever their suffix."""
    units = {}
    for path, _ in sources:
        units.setdefault(directory_of(path), set()).add(path.rpartition("/")[2].split(".")[0])
    return units


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
    present = {layer_of(path, LAW) or path for path, _ in files("core", "api", "app", "gpu", "hub", "tools")}
    assert present <= set(LAW)


def test_a_line_names_only_layers_that_have_lines():
    assert {below for allowed in LAW.values() for below in allowed} <= set(LAW)


def test_the_graph_has_no_cycle():
    assert find_cycle(LAW) is None


SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".inc")
MAX_UNITS = 12
# Directories of more units, and how many: the numbers may only shrink. One that is a registry (a file for each entry of
# a table) is "registry" here, and has no limit.
LARGER = {
    "core/base": 15,
    "core/chat": 20,
    "core/cpu": 15,
    "core/cpu/isa": 18,
    "core/grammar/schema": 14,
    "core/model/arch": "registry",
    "core/sample": 17,
    "core/speculate/heads": 16,
    "core/text": 13,
    "gpu/device": 17,
    "gpu/kernels": 23,
    "tools/bench": 16,
    "tools/gpu_measure": 16,
}


def sources_of_the_product():
    return list(files("core", "api", "app", "gpu", "hub", "tools", suffixes=SUFFIXES))


def test_no_two_directories_include_each_other():
    pairs = mutual_pairs(sources_of_the_product())
    assert not pairs, "\n".join(f"{a} and {b}: " + "; ".join(why) for (a, b), why in pairs.items())


def test_a_directory_has_twelve_units_at_most():
    counts = {place: len(units) for place, units in units_of(sources_of_the_product()).items()}
    wrong = [
        f"{place} has {count} units, and {LARGER.get(place, MAX_UNITS)} is its limit (LARGER)"
        for place, count in sorted(counts.items())
        if LARGER.get(place) != "registry" and count > LARGER.get(place, MAX_UNITS)
    ]
    smaller = [
        f"{place} has {counts.get(place, 0)} units: lower its number in LARGER, or take it off"
        for place, limit in LARGER.items()
        if limit != "registry" and counts.get(place, 0) < limit
    ]
    assert not wrong + smaller, "\n".join(wrong + smaller)


def test_the_engine_and_the_api_do_not_see_each_other():
    assert not [below for below in LAW["core/engine"] if below.startswith("api")]
    assert not [layer for layer in LAW if layer.startswith("api") and "core/engine" in LAW[layer]]


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
    assert {"core/engine", "api/http", "gpu"} <= reached
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


def test_an_allowed_include_is_left_alone():
    assert broken_includes("core/kv/a.cc", '#include "core/kv/a.h"\n\n#include <vector>\n#include "core/base/x.h"\n', SMALL) == []


def test_a_mutual_pair_is_found_and_named():
    one_way = [("a/x.h", '#include "a/b/y.h"\n'), ("a/b/y.h", '#include "c/z.h"\n'), ("c/z.h", "")]
    assert mutual_pairs(one_way) == {}
    both = [*one_way, ("a/b/w.cc", '  #include "a/x.h"\n')]
    assert mutual_pairs(both) == {("a", "a/b"): ["a/x.h includes a/b/y.h"]}


def test_units_are_counted_by_name():
    assert {place: len(units) for place, units in units_of([("a/x.h", ""), ("a/x.cc", ""), ("a/y.inc", ""), ("b/x.h", "")]).items()} == {
        "a": 2,
        "b": 1,
    }


def test_a_cycle_is_found():
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["a"], "d": []}) == ["a", "b", "c", "a"]
