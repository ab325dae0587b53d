"""The kernels as device code: they compile without a warning, spill nothing, and keep to the figures of gpu/budgets.csv.

More registers, or fewer blocks on a multiprocessor, is a regression; what got better is written down: python tests/gpu/test_kernels_compile.py
"""

import csv
import re
import sys
import tempfile

import pytest

from kernel_facts import ARCHITECTURES, ROOT, blocks_that_fit, compiled, launches, need_nvcc, run

BUDGETS = ROOT / "gpu" / "budgets.csv"


def compiler():
    return re.search(r"V(\d+\.\d+\.\d+)", run(["nvcc", "--version"]).stdout)[1]


def figures(architectures, directory):
    """(kernel, architecture) → registers, threads, shared bytes and blocks of a multiprocessor; spills."""
    _, facts = compiled(architectures, directory)
    launched = launches(sorted({kernel for kernel, _ in facts}), directory)
    questions = [(architecture, fact["registers"], fact["shared"], launched[kernel][1], launched[kernel][0])
                 for (kernel, architecture), fact in facts.items()]
    blocks = blocks_that_fit(questions, directory) or [None] * len(questions)
    return {key: {"registers": fact["registers"], "threads": question[4], "shared": question[2] + question[3],
                  "blocks": fit, "spilled": fact["spilled"]}
            for (key, fact), question, fit in zip(facts.items(), questions, blocks)}


def budgets():
    """By kernel and architecture; None where they were written for another compiler."""
    with BUDGETS.open() as file:
        if file.readline().strip() != f"# nvcc {compiler()}":
            return None
        return {(row["kernel"], row["architecture"]): row for row in csv.DictReader(file)}


def check(architectures, directory):
    need_nvcc()
    found = figures(architectures, directory)
    for (kernel, architecture), figure in found.items():
        assert figure["spilled"] == 0, f"{kernel} spills {figure['spilled']} bytes on {architecture}"
        assert figure["blocks"] != 0, f"no block of {kernel} fits {architecture}"
    allowed = budgets()
    if allowed is None:
        pytest.skip(f"registers are budgeted for another compiler than nvcc {compiler()}; nothing spills")
    assert {key for key in allowed if key[1] in architectures} == set(found)
    for (kernel, architecture), figure in found.items():
        budget = allowed[kernel, architecture]
        assert figure["registers"] <= int(budget["registers"]), f"{kernel} takes {figure['registers']} registers on {architecture}"
        if figure["blocks"] is not None and budget.get("blocks"):
            assert figure["blocks"] >= int(budget["blocks"]), f"of {kernel} {figure['blocks']} blocks fit {architecture}"


@pytest.fixture(scope="module")
def directory():
    with tempfile.TemporaryDirectory() as scratch:
        yield scratch


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_kernels_keep_to_their_budget(architecture, directory):
    check((architecture,), directory)


@pytest.mark.full
@pytest.mark.parametrize("architecture", ["sm_89", "sm_100"])
def test_kernels_keep_to_their_budget_on_the_other_architectures(architecture, directory):
    check((architecture,), directory)


def test_the_calculator_knows_what_a_multiprocessor_has(directory):
    need_nvcc()
    # 2,048 threads; 65,536 registers, given out to warps by 256; 227 KiB for one block, each block's 1 KiB of the driver's beside.
    asked = [("sm_90a", 32, 0, 0, 256), ("sm_90a", 33, 0, 0, 256), ("sm_90a", 32, 0, 115712, 256), ("sm_90a", 32, 0, 115713, 256),
             ("sm_90a", 32, 0, 232448, 256), ("sm_90a", 255, 0, 0, 512), ("sm_89", 32, 0, 0, 256)]
    fit = blocks_that_fit(asked, directory)
    if fit is None:
        pytest.skip("there is no cuda_occupancy.h here")
    assert fit == [8, 6, 2, 1, 1, 0, 6]


def write_budgets(directory):
    found = figures(tuple(ARCHITECTURES), directory)
    with BUDGETS.open("w", newline="") as file:
        file.write(f"# nvcc {compiler()}\n")
        writer = csv.writer(file, lineterminator="\n")
        columns = ["registers", "threads", "shared", "blocks"]
        writer.writerow(["kernel", "architecture", *columns])
        for architecture in ARCHITECTURES:
            for kernel in sorted(kernel for kernel, of in found if of == architecture):
                writer.writerow([kernel, architecture, *(found[kernel, architecture][column] for column in columns)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        write_budgets(scratch)
    sys.exit(0)
