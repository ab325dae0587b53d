"""clang-format has the last word on layout: .clang-format, version 16."""

import concurrent.futures
import os
import shutil
import subprocess

import pytest

from tree import CPP, ROOT, files


def test_every_source_is_formatted():
    program = shutil.which("clang-format-16")
    assert program, "clang-format-16 is missing"
    paths = [path for path, _ in files("core", "api", "app", "gpu", "hub", "tools", "tests", suffixes=CPP)]
    workers = os.cpu_count() or 1

    def wrong_of(part):
        done = subprocess.run([program, "--dry-run", "-Werror", *part], cwd=ROOT, capture_output=True, text=True)
        return done.returncode, {line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line}

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(wrong_of, [paths[i::workers] for i in range(workers)]))
    if any(status != 0 for status, _ in results):
        wrong = sorted(set().union(*(names for _, names in results)))
        pytest.fail("clang-format-16 -i would change: " + " ".join(wrong), pytrace=False)


def test_a_badly_formatted_text_is_found(tmp_path):
    bad = tmp_path / "bad.cc"
    bad.write_text("int  main( ) {return 0 ;}\n")
    style = f"--style=file:{ROOT / '.clang-format'}"
    done = subprocess.run(["clang-format-16", style, "--dry-run", "-Werror", str(bad)], capture_output=True)
    assert done.returncode != 0
