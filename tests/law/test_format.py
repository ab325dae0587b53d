"""clang-format has the last word on layout: .clang-format, version 16."""

import shutil
import subprocess

import pytest

from tree import CPP, ROOT, files


def test_every_source_is_formatted():
    program = shutil.which("clang-format-16")
    assert program, "clang-format-16 is missing"
    paths = [path for path, _ in files("core", "api", "app", "gpu", "tools", "tests", suffixes=CPP)]
    done = subprocess.run([program, "--dry-run", "-Werror", *paths], cwd=ROOT, capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
    if done.returncode != 0:
        pytest.fail("clang-format-16 -i would change: " + " ".join(wrong), pytrace=False)


def test_a_badly_formatted_text_is_found(tmp_path):
    bad = tmp_path / "bad.cc"
    bad.write_text("int  main( ) {return 0 ;}\n")
    style = f"--style=file:{ROOT / '.clang-format'}"
    done = subprocess.run(["clang-format-16", style, "--dry-run", "-Werror", str(bad)], capture_output=True)
    assert done.returncode != 0
