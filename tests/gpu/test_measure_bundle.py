"""The three groups of gpu/measure.sh where nothing is installed but Python: in a root directory that holds the tree, the programs with
the libraries that tools/gpu_measure/bundle.sh takes along, and what Python itself needs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

from measure_stages import BUILD, ROOT, STAGES

pytest.importorskip("torch", reason="the checkpoint that is served is drawn with it")
import tiny_model  # noqa: E402

PROGRAMS = ["quire-simulated", "quire_gpu_measure", "tests/gpu_test"]
TOOLS = ["bash", "dirname", "env", "sh", "cat", "uname", "nproc", "readlink"]
LIBC = re.compile(r"/(libc|libm|libdl|librt|libpthread|libresolv|libutil|ld-linux[^/]*)\.so")


def needed(program):
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "not found" not in said, said
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", said)]


def put(root, path, at=None):
    to = root / str(at or path).lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists():
        shutil.copy(path, to)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The root directory."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the root directory")
    root = tmp_path_factory.mktemp("bare")
    python = pathlib.Path(sys.executable).resolve()
    for tool in [shutil.which(name) for name in TOOLS] + [python]:
        put(root, tool)
        for library in needed(tool):
            put(root, library)
    modules = pathlib.Path(sysconfig.get_path("stdlib"))
    shutil.copytree(modules, root / str(modules).lstrip("/"), ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__", "*.a"))
    for module in (modules / "lib-dynload").glob("*.so"):
        for library in needed(module):
            put(root, library)
    for name in PROGRAMS:
        put(root, BUILD / name, f"/bundle/{pathlib.Path(name).name}")
        for library in needed(BUILD / name):
            put(root, library, library if LIBC.search(str(library)) else f"/bundle/lib/{library.name}")
    for folder in ("gpu", "tools/gpu_measure", "loadtest"):
        shutil.copytree(ROOT / folder, root / "tree" / folder)
    tiny_model.save(root / "model")
    for folder in ("tmp", "dev/shm"):  # semaphores are in the latter
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "dev" / "null").touch()
    return root


def within(root, *command):
    return subprocess.run([shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin"), root, *command], capture_output=True, text=True, timeout=1200,
                          env={"PATH": "/usr/bin:/bin", "PYTHON": str(pathlib.Path(sys.executable).resolve()), "LD_LIBRARY_PATH": "/bundle/lib", "HOME": "/tmp"})


@pytest.mark.parametrize("words", [["roofline"], ["decode", "--model", "8b"], ["gaps", "--model", "1b"]], ids=" ".join)
def test_a_stage_of_real_shapes_passes_there_on_a_device_that_runs_nothing(bare, words):
    done = within(bare, "/bundle/quire_gpu_measure", *words, "--device", "null", "--seconds", "20")
    assert done.returncode == 0, done.stderr[-1500:]
    assert json.loads(done.stdout.splitlines()[-1])["device"] == "null"


@pytest.mark.parametrize("group", sorted(STAGES))
def test_a_group_runs_where_no_library_of_ours_is_installed(bare, group):
    within(bare, shutil.which("bash"), "/tree/gpu/measure.sh", "--device", "simulated", "--build", "/bundle", "--group", group, "--out", f"/tmp/{group}",
           "--work", "/tmp/work", "--serve-model", "/model")
    lines = [json.loads(line) for line in (bare / "tmp" / group / "measure.jsonl").read_text().splitlines()]
    failed = {line["stage"]: line for line in lines if not line["ok"]}
    assert set(failed) <= {"families", "torch ceilings", "transformers"}, json.dumps(failed, indent=1)  # there is no PyTorch
    assert {line["stage"] for line in lines} == {"probe", "build", *STAGES[group]}
