"""The kernels as device code: they compile without a warning, spill nothing, and keep to the registers of gpu/budgets.csv.

A figure above its budget is a regression; one below it lowers the budget: python tests/gpu/test_kernels_compile.py
"""

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = ROOT / "gpu" / "budgets.csv"
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr", "-Xptxas", "-v", f"-I{ROOT}"]
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def plain_name(kernel):
    """Linear<quire::gpu::Int8Form, 1u, 2u> as Linear-Int8Form-1-2."""
    return re.sub(r"\W+", "-", re.sub(r"quire::gpu::|(?<=\d)u\b", "", kernel)).strip("-")


def compiled(architecture, directory):
    """By kernel: registers, and bytes of stack and spills together."""
    virtual = architecture.replace("sm_", "compute_")
    command = ["nvcc", *FLAGS, "-gencode", f"arch={virtual},code={architecture}", "-c", ROOT / "gpu/cuda/kernels.cu"]
    done = subprocess.run([*command, "-o", directory / "kernels.o"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    kernels, name = {}, None
    for line in done.stderr.splitlines():
        if match := ENTRY.search(line):
            name = subprocess.run(["c++filt", match[1]], capture_output=True, text=True).stdout
            name = plain_name(re.search(r"enter<quire::gpu::(.+)>\(", name)[1])
            kernels[name] = [0, 0]
        elif match := STACK.search(line):
            kernels[name][1] = sum(map(int, match.groups()))
        elif match := REGISTERS.search(line):
            kernels[name][0] = int(match[1])
    return kernels


def compiler():
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, timeout=60).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", said)[1]


def budgets():
    """By kernel and architecture; None where they were written for another compiler."""
    with BUDGETS.open() as file:
        if file.readline().strip() != f"# nvcc {compiler()}":
            return None
        return {(row["kernel"], row["architecture"]): int(row["registers"]) for row in csv.DictReader(file)}


def check(architecture, directory):
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc here: kernels are compiled as host code alone")
    kernels = compiled(architecture, directory)
    for kernel, (_, spilled) in kernels.items():
        assert spilled == 0, f"{kernel} spills {spilled} bytes on {architecture}"
    allowed = budgets()
    if allowed is None:
        pytest.skip(f"registers are budgeted for another compiler than nvcc {compiler()}; nothing spills")
    assert {kernel for kernel, of in allowed if of == architecture} == set(kernels)
    for kernel, (registers, _) in kernels.items():
        assert registers <= allowed[kernel, architecture], f"{kernel} takes {registers} registers on {architecture}"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_kernels_keep_to_their_budget(architecture, tmp_path):
    check(architecture, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("architecture", ["sm_89", "sm_100"])
def test_kernels_keep_to_their_budget_on_the_other_architectures(architecture, tmp_path):
    check(architecture, tmp_path)


def write_budgets(directory):
    with BUDGETS.open("w", newline="") as file:
        file.write(f"# nvcc {compiler()}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "architecture", "registers"])
        for architecture in ["sm_80", "sm_89", "sm_90a", "sm_100"]:
            for kernel, (registers, _) in sorted(compiled(architecture, directory).items()):
                writer.writerow([kernel, architecture, registers])


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_budgets(Path(scratch))
    sys.exit(0)
