"""A failure planted in each stage of tests/run.sh is on the last page of the run, and the run fails; so are a crash and a time-out."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GATE = pathlib.Path(__file__).parent / "gate.py"

PRESETS = """{"version": 6, "configurePresets": [
%s]}"""
PRESET = """ {"name": "%s", "generator": "Ninja", "binaryDir": "${sourceDir}/build/%s",
  "cacheVariables": {"CMAKE_EXPORT_COMPILE_COMMANDS": "ON"}}"""

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
foreach(name core_a_test gpu_test sim_test api_test tsan_test small_fuzz)
  add_executable(${name} test.cc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
add_library(core STATIC core/engine/a.cc)
"""

# Stands for a GoogleTest binary and for a fuzz target: it writes a report, and fails as the environment says.
BINARY = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
int main(int argc, char** argv) {
  const char* planted = std::getenv("PLANTED");
  const char* name = std::strrchr(argv[0], '/') + 1;
  const char* part = std::getenv("GTEST_SHARD_INDEX");  // its one case is in the first part
  const bool first = part == nullptr || std::strcmp(part, "0") == 0;
  const bool here = first && planted != nullptr && std::strstr(planted, name) != nullptr;
  if (here && std::strstr(planted, "crash") != nullptr) std::abort();
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--gtest_output=xml:", 19) != 0) continue;
    std::FILE* out = std::fopen(argv[i] + 19, "w");
    std::fprintf(out, "<testsuites><testsuite>");
    if (first) std::fprintf(out, "<testcase classname='Small' name='Holds' time='0.2' status='run'/>");
    if (here) std::fprintf(out, "<testcase classname='Small' name='Planted' time='0'><failure message='planted here'/></testcase>");
    std::fprintf(out, "</testsuite></testsuites>");
    std::fclose(out);
  }
  if (here) std::puts("planted here");
  return here ? 1 : 0;
}
"""

RIGHT_THREAD = "int right() { return 1; }\n"
WRONG_THREAD = """struct __attribute__((capability("role"))) Role {} engine_role;
void plan() __attribute__((requires_capability(engine_role)));
void wrong() { plan(); }
"""
PYTEST = """import os
import pytest

@pytest.mark.%s
def test_holds():
    assert os.environ.get("PLANTED") != "%s", "planted here"
"""


@pytest.fixture(scope="session")
def small_tree(tmp_path_factory):
    """A tree of a few files with every stage of tests/run.sh in it."""
    root = tmp_path_factory.mktemp("small")
    texts = {
        "CMakePresets.json": PRESETS % ",\n".join(PRESET % (name, name) for name in ("release", "asan", "tsan", "fuzz")),
        "CMakeLists.txt": CMAKE,
        "test.cc": BINARY,
        "layers.txt": "core/engine :\n",
        ".clang-tidy": "Checks: '-*,misc-definitions-in-headers,readability-else-after-return'\nWarningsAsErrors: '*'\n",
        "core/engine/a.cc": "int sign(int x) {\n  if (x < 0) return -1;\n  return 1;\n}\n",
        "core/model/run/decoder_runner.cc": "int run() { return 0; }\n",
        "tests/thread_roles/right_thread.cc": RIGHT_THREAD,
        "tests/thread_roles/wrong_thread.cc": WRONG_THREAD,
        "tests/law/test_small_law.py": PYTEST % ("usefixtures", "law"),
        "tests/test_small.py": PYTEST % ("usefixtures", "python"),
        "tests/test_small_full.py": PYTEST % ("full", "clients"),
        "tests/gpu/test_small_kernels.py": PYTEST % ("nvcc", "kernels"),
        "tests/test_small_heavy.py": PYTEST % ("heavy", "heavy"),
        "tests/pytest.ini": "[pytest]\nmarkers =\n    full: x\n    heavy: x\n    nvcc: x\n",
        "tests/requirements.txt": (ROOT / "tests/requirements.txt").read_text(),
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    return root


def run_stage(root, stage, planted=""):
    """(exit status, the page from `== times` on) of tests/run.sh with one stage."""
    # Of pytest's plugins the workers alone: the others take seconds to import.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    done = subprocess.run([sys.executable, GATE, "--root", root, "--only", stage], capture_output=True, text=True,
                          env={**os.environ, **plugins, "PLANTED": planted, "QUIRE_JOBS": "2"})
    assert "== times" in done.stdout, done.stdout + done.stderr
    return done.returncode, done.stdout[done.stdout.index("== times"):]


def count(page):
    return tuple(map(int, re.fullmatch(r"(\d+) passed, (\d+) failed", page.splitlines()[-1]).groups()))


# Stage → what is planted (the name that its test looks for), and the cases of the stage.
RUN_TIME = {"law": ("law", 1), "unit": ("core_a_test", 5), "python": ("python", 1), "asan": ("sim_test", 3), "asan-api": ("api_test", 1),
            "tsan": ("tsan_test", 1), "clients": ("clients", 1), "heavy": ("heavy", 1), "kernels": ("kernels", 1), "fuzz": ("small_fuzz", 1)}


@pytest.mark.parametrize("stage", RUN_TIME)
def test_a_failed_case_is_on_the_last_page(small_tree, stage):
    planted, cases = RUN_TIME[stage]
    assert run_stage(small_tree, stage)[0] == 0
    status, page = run_stage(small_tree, stage, planted)
    assert status == 1 and "planted here" in page, page
    assert count(page)[1] == 1 and count(page)[0] >= cases - 1, page


@pytest.mark.parametrize("stage", ["unit", "asan", "asan-api", "tsan", "fuzz"])
def test_a_crash_is_on_the_last_page(small_tree, stage):
    status, page = run_stage(small_tree, stage, RUN_TIME[stage][0] + " crash")
    assert status == 1 and count(page)[1] == 1 and RUN_TIME[stage][0] in page, page


SOURCE_PLANTS = {
    "release": ("test.cc", "int main() { return planted_here; }\n", "planted_here"),
    "roles": ("core/engine/planted.cc", WRONG_THREAD, "planted.cc"),
    "tidy": ("core/engine/planted.cc", "int planted(int x) {\n  if (x < 0) {\n    return 1;\n  } else {\n    return 2;\n  }\n}\n", "else-after-return"),
}


@pytest.mark.parametrize("stage", SOURCE_PLANTS)
def test_a_bad_source_is_on_the_last_page(small_tree, tmp_path, stage):
    root = tmp_path / "tree"
    shutil.copytree(small_tree, root, symlinks=True, ignore=shutil.ignore_patterns("build"))
    name, text, said = SOURCE_PLANTS[stage]
    if stage == "tidy":
        (root / "CMakeLists.txt").write_text(CMAKE.replace("core/engine/a.cc", f"core/engine/a.cc {name}"))
        (root / name).write_text("int planted;\n")
    assert run_stage(root, stage)[0] == 0
    (root / name).write_text(text)
    status, page = run_stage(root, stage)
    assert status == 1 and said in page and count(page)[1] >= 1, page


def test_a_blind_role_check_is_on_the_last_page(small_tree, tmp_path):
    root = tmp_path / "tree"
    shutil.copytree(small_tree, root, symlinks=True, ignore=shutil.ignore_patterns("build"))
    (root / "tests/thread_roles/wrong_thread.cc").write_text(RIGHT_THREAD)
    status, page = run_stage(root, "roles")
    assert status == 1 and "blind" in page, page


def test_stages_after_a_failed_build_are_reported_to_have_run_nothing(small_tree, tmp_path):
    root = tmp_path / "tree"
    shutil.copytree(small_tree, root, symlinks=True, ignore=shutil.ignore_patterns("build"))
    (root / "test.cc").write_text("int main() { return planted_here; }\n")
    status, page = run_stage(root, "release,unit")
    assert status == 1 and "== did not run\n  unit: nothing to run, or nothing that was built" in page, page
