"""What a machine with nothing but nvcc needs to build kernels, stages and device tests lies in the tree and in what carry.sh takes along."""
import concurrent.futures
import json
import os
import re
import subprocess

import pytest

from kernel_facts import ROOT, need_nvcc

pytestmark = pytest.mark.nvcc
OWN = re.compile(r"^(/usr/lib/gcc/|/usr/include/(c\+\+/|x86_64-linux-gnu/|[^/]+\.h$|(arpa|asm|asm-generic|bits|gnu|linux|net|netinet|rpc|sys)/)|.*/cuda)")


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    need_nvcc()
    folder = tmp_path_factory.mktemp("gpu-only")
    subprocess.run(["bash", ROOT / "tools/gpu_measure/carry.sh", folder / "carried"], check=True)
    done = subprocess.run(["cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", "-DQUIRE_GPU_ONLY=ON", f"-DQUIRE_CARRIED={folder / 'carried'}",
                           "-DQUIRE_CUDA_ARCHITECTURES=90a", "-DCMAKE_BUILD_TYPE=Release"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def headers_of(command):
    """Of a unit, each by its real path."""
    words = re.sub(r" -o \S+", "", command["command"]).replace(" -c ", " -M ")
    done = subprocess.run(words, shell=True, cwd=command["directory"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return {os.path.realpath(os.path.join(command["directory"], path)) for path in done.stdout.replace("\\\n", " ").split()[1:]}


def test_no_unit_reads_a_header_of_another_library_than_those_carried(configured):
    commands = json.loads((configured / "build" / "compile_commands.json").read_text())
    names = {os.path.basename(command["file"]) for command in commands}
    assert {"cuda_for_simulated.cc", "cuda_device.cc", "strict.cc", "boost_json.cc", "gtest-all.cc"} <= names
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        headers = set().union(*pool.map(headers_of, commands))
    homes = (str(ROOT), str(configured))
    assert sorted(path for path in headers if not path.startswith(homes) and not OWN.match(path)) == []
    assert any("/carried/include/boost/json/" in path for path in headers)


def test_what_is_carried_is_small(configured):
    sizes = [path.stat().st_size for path in (configured / "carried").rglob("*") if path.is_file()]
    assert sum(sizes) < 8 << 20
