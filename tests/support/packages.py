"""Python packages of a test's own, in an environment for each file of pins: they disagree with each other's and with ours."""

import pathlib
import subprocess
import sys

import pytest

from file_lock import file_lock

PLACE = pathlib.Path(__file__).resolve().parents[2] / "build" / "clients"


def python_with(requirements):
    """The Python of an environment with the packages of that file, made once. Skips where they cannot be had."""
    folder, wanted = PLACE / requirements.stem, requirements.read_text()
    stamp = folder / "installed.txt"
    with file_lock(PLACE / f"{requirements.stem}.lock"):
        if not stamp.exists() or stamp.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=600)
            install([folder / "bin" / "pip", "install", "-q", "-r", requirements], requirements.name)
            stamp.write_text(wanted)
    return folder / "bin" / "python"


def install(command, what):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        pytest.skip(f"{what} cannot be installed: {done.stderr.strip()[-500:]}")
