"""The kernels as device code: they compile without a warning, spill nothing, and keep to the figures of gpu/budgets.csv.

More registers, or fewer blocks on a multiprocessor, is a regression; what got better is written down: python tests/gpu/test_kernels_compile.py
"""

import csv
import re
import sys

import pytest

from kernel_facts import ARCHITECTURES, ROOT, blocks_that_fit, compiled, launches, need_nvcc, run

pytestmark = pytest.mark.nvcc

BUDGETS = ROOT / "gpu" / "budgets.csv"


def compiler():
    return re.search(r"V(\d+\.\d+\.\d+)", run(["nvcc", "--version"]).stdout)[1]


def figures(architecture):
    """kernel → registers, threads, shared bytes and blocks of a multiprocessor; spills."""
    _, facts = compiled(architecture)
    launched = launches(sorted(facts))
    questions = [(architecture, fact["registers"], fact["shared"], launched[kernel][1], launched[kernel][0]) for kernel, fact in facts.items()]
    blocks = blocks_that_fit(questions) or [None] * len(questions)
    return {kernel: {"registers": fact["registers"], "threads": question[4], "shared": question[2] + question[3],
                  "blocks": fit, "spilled": fact["spilled"]}
            for (kernel, fact), question, fit in zip(facts.items(), questions, blocks)}


def budgets():
    """By kernel and architecture; None where they were written for another compiler."""
    with BUDGETS.open() as file:
        if file.readline().strip() != f"# nvcc {compiler()}":
            return None
        return {(row["kernel"], row["architecture"]): row for row in csv.DictReader(file)}


def check(architecture):
    need_nvcc()
    found = figures(architecture)
    for kernel, figure in found.items():
        assert figure["spilled"] == 0, f"{kernel} spills {figure['spilled']} bytes on {architecture}"
        assert figure["blocks"] != 0, f"no block of {kernel} fits {architecture}"
    allowed = budgets()
    if allowed is None:
        pytest.skip(f"registers are budgeted for another compiler than nvcc {compiler()}; nothing spills")
    assert {kernel for kernel, of in allowed if of == architecture} == set(found)
    for kernel, figure in found.items():
        budget = allowed[kernel, architecture]
        assert figure["registers"] <= int(budget["registers"]), f"{kernel} takes {figure['registers']} registers on {architecture}"
        if figure["blocks"] is not None and budget.get("blocks"):
            assert figure["blocks"] >= int(budget["blocks"]), f"of {kernel} {figure['blocks']} blocks fit {architecture}"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_kernels_keep_to_their_budget(architecture):
    check(architecture)


@pytest.mark.parametrize("architecture", ["sm_89", "sm_100"])
def test_kernels_keep_to_their_budget_on_the_other_architectures(architecture):
    check(architecture)


def test_the_calculator_knows_what_a_multiprocessor_has():
    need_nvcc()
    # 2,048 threads; 65,536 registers, given out to warps by 256; 227 KiB for one block, each block's 1 KiB of the driver's beside.
    asked = [("sm_90a", 32, 0, 0, 256), ("sm_90a", 33, 0, 0, 256), ("sm_90a", 32, 0, 115712, 256), ("sm_90a", 32, 0, 115713, 256),
             ("sm_90a", 32, 0, 232448, 256), ("sm_90a", 255, 0, 0, 512), ("sm_89", 32, 0, 0, 256)]
    fit = blocks_that_fit(asked)
    if fit is None:
        pytest.skip("there is no cuda_occupancy.h here")
    assert fit == [8, 6, 2, 1, 1, 0, 6]


# A layer of a step of one row (8B in bf16): kernels, and how many blocks of each a multiprocessor has: the last of them, of the linear
# ones, where there are blocks for more than all at once.
STEP_OF_ONE_ROW = [("PutInBf16", 1), ("LinearSplit<Bf16Form 1 1>", 1), ("RopeStore", 1), ("AttendBf16", 1), ("MergeSpans", 1),
                   ("PutInBf16", 1), ("LinearSplit<Bf16Form 1 1>", 1), ("PutInBf16", 1), ("LinearSplit<Bf16Form 1 2>", 1), ("PutInBf16", 1)]


def of_a_multiprocessor(row, blocks):
    """Threads, registers and shared bytes that so many blocks take."""
    warps = int(row["threads"]) // 32
    registers = (int(row["registers"]) * 32 + 255) // 256 * 256
    return [blocks * int(row["threads"]), blocks * warps * registers, blocks * (int(row["shared"]) + 1024)]


def test_a_kernel_of_a_step_of_one_row_fits_beside_the_one_before_it():
    # Else it cannot begin before its turn (docs/gpu.md, Steps).
    need_nvcc()
    allowed = budgets()
    if allowed is None:
        pytest.skip("registers are budgeted for another compiler")
    for (first, blocks), (second, _) in zip(STEP_OF_ONE_ROW, STEP_OF_ONE_ROW[1:]):
        one = of_a_multiprocessor(allowed[first, "sm_90a"], blocks)
        other = of_a_multiprocessor(allowed[second, "sm_90a"], 1)
        for a, b, there_are in zip(one, other, (2048, 65536, 233472)):
            assert a + b <= there_are, f"a block of {second} does not fit beside {blocks} of {first}: {one} and {other}"


def write_budgets():
    found_on = {architecture: figures(architecture) for architecture in ARCHITECTURES}
    with BUDGETS.open("w", newline="") as file:
        file.write(f"# nvcc {compiler()}\n")
        writer = csv.writer(file, lineterminator="\n")
        columns = ["registers", "threads", "shared", "blocks"]
        writer.writerow(["kernel", "architecture", *columns])
        for architecture, kernels in found_on.items():
            for kernel, found in sorted(kernels.items()):
                writer.writerow([kernel, architecture, *(found[column] for column in columns)])


if __name__ == "__main__":
    write_budgets()
    sys.exit(0)
