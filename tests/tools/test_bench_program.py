"""`quire bench` and the program behind it: quire-bench is found beside quire, and a build of quire compiles none of it."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}


def run(*command, env=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, env=ENVIRONMENT | (env or {}))


def test_help_through_the_server_is_the_programs_own():
    through, itself = run(BUILD / "quire", "bench", "--help"), run(BUILD / "quire-bench", "--help")
    assert through.returncode == itself.returncode == 0 and through.stderr == ""
    assert through.stdout == itself.stdout and "Usage: quire bench " in through.stdout
    assert all(flag in through.stdout for flag in ("--mode", "--scenario", "--threads", "QUIRE_THREADS"))


def test_errors_are_reported_as_by_every_command():
    flags = ("--runs", "0", "--thread", "1", "--port", "8000")
    result = run(BUILD / "quire", "bench", *flags, env={"QUIRE_BLOCK_SIZE": "17"})
    assert result.returncode == 2 and result.stdout == ""
    for part in ("quire: 4 problems", "--runs '0'", "unknown flag --thread: did you mean --threads?",
                 "unknown flag --port: it belongs to serve, doctor, not to bench", "--block-size 17: expected a multiple of 16"):  # fmt: skip
        assert part in result.stderr


def test_it_is_found_through_a_link_and_by_a_name_in_the_path(tmp_path):
    (tmp_path / "linked").symlink_to(BUILD.resolve() / "quire")
    assert run(tmp_path / "linked", "bench", "--help").returncode == 0
    assert run("quire", "bench", "--help", env={"PATH": f"{BUILD}:{os.environ['PATH']}"}).returncode == 0


def test_a_missing_program_is_reported_with_how_to_build_it(tmp_path):
    shutil.copy(BUILD / "quire", tmp_path / "quire")
    for args in ([], ["--help"], ["--mode", "nothing"]):
        result = run(tmp_path / "quire", "bench", *args)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == (
            f"quire: quire bench runs the program quire-bench, which is not in {tmp_path}; "
            "build it: cmake --build build/release --target quire-bench\n"
        )
    assert "bench" in run(tmp_path / "quire", "--help").stdout


def test_a_program_that_cannot_be_run_is_reported_with_the_reason(tmp_path):
    shutil.copy(BUILD / "quire", tmp_path / "quire")
    (tmp_path / "quire-bench").write_text("no program")
    result = run(tmp_path / "quire", "bench")
    assert result.returncode == 2 and f"quire bench cannot run {tmp_path}/quire-bench: Permission denied" in result.stderr


def test_a_build_of_the_server_reads_no_measuring_tool_and_no_simulator():
    if shutil.which("ninja") is None or not (BUILD / "build.ninja").is_file():
        pytest.skip("there is no build directory of ninja's")

    def inputs_of(target):
        done = run("ninja", "-C", BUILD, "-t", "inputs", target)
        assert done.returncode == 0, done.stderr
        sources = [pathlib.Path(line) for line in done.stdout.splitlines() if line.startswith(str(ROOT))]
        return {path.relative_to(ROOT).as_posix() for path in sources}

    kept_out = ("tools/", "gpu/simulated/")
    assert "app/main.cc" in inputs_of("quire")
    assert [path for path in inputs_of("quire") if path.startswith(kept_out)] == []
    assert [path for path in inputs_of("quire-bench") if path.startswith(kept_out)] != []
