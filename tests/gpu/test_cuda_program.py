"""The program with CUDA in it, on a machine that has no GPU: it starts, serves from the CPU, and says which call found no device.

It is built here, from the preset's settings for one GPU, where nvcc is; $QUIRE_CUDA_BUILD_DIR names one that is built already. Serving
builds nothing: it takes that one, the preset's, or the one built here, and is skipped where there is none.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT = ["--prompt", "Once upon a time", "--max-tokens", "12", "--seed", "5", "--threads", "1"]
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
pytestmark = pytest.mark.nvcc


def run(*command, timeout=300):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, env=PLAIN)


@pytest.fixture(scope="module")
def build():
    if given := os.environ.get("QUIRE_CUDA_BUILD_DIR"):
        return pathlib.Path(given).resolve()
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc here: a program with CUDA cannot be built")
    folder = ROOT / "build" / "cuda-test"
    for command in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQUIRE_CUDA=ON",
                     "-DQUIRE_CUDA_ARCHITECTURES=90a", "-DQUIRE_TESTS=OFF"],
                    ["cmake", "--build", folder, "--target", "quire", "quire-bench", "quire_gpu_measure_program"]):
        done = run(*command, timeout=3000)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def built():
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc here, and so no program with CUDA")
    given = os.environ.get("QUIRE_CUDA_BUILD_DIR")
    folders = [pathlib.Path(given).resolve()] if given else [ROOT / "build" / name for name in ("cuda-release", "cuda-test")]
    if there := [folder for folder in folders if (folder / "quire").is_file()]:
        return max(there, key=lambda folder: (folder / "quire").stat().st_mtime)  # an older one is of older sources
    pytest.skip(f"nobody has built a program with CUDA: none of {', '.join(str(folder / 'quire') for folder in folders)} is there")


@pytest.fixture(scope="module")
def no_gpu():
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a GPU here")


def test_it_needs_no_library_of_the_driver_or_the_toolkit(build):
    for name in ("quire", "quire_gpu_measure"):
        needed = run("ldd", build / name).stdout
        assert "libc.so" in needed and "not found" not in needed
        assert "cuda" not in needed.replace(str(build), ""), needed


@pytest.mark.parametrize("architectures, ptx", [("80;89;90a;100", ["100"]), ("90a", [])])
def test_devices_newer_than_all_that_are_named_find_ptx_of_the_newest(tmp_path, architectures, ptx):
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc here")
    done = run("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQUIRE_CUDA=ON", "-DQUIRE_TESTS=OFF",
               f"-DQUIRE_CUDA_ARCHITECTURES={architectures}")
    assert done.returncode == 0, done.stderr
    (command,) = [line for line in (tmp_path / "build.ninja").read_text().splitlines() if "/nvcc " in line and " linear_kernels.cu" in line.replace("/", " ")]
    assert re.findall(r"code=compute_(\w+)", command) == ptx
    assert re.findall(r"code=sm_(\w+)", command) == architectures.split(";")


def test_without_a_gpu_the_cpu_answers_as_ever(build, no_gpu):
    on_cpu = run(build / "quire", "generate", *PROMPT, "--device", "cpu")
    assert on_cpu.returncode == 0 and len(on_cpu.stdout) > 20, on_cpu.stderr
    by_itself = run(build / "quire", "generate", *PROMPT, "--device", "auto")
    assert (by_itself.returncode, by_itself.stdout) == (0, on_cpu.stdout), by_itself.stderr
    assert "--device auto uses the CPU: cudaGetDeviceCount: " in by_itself.stderr


@contextlib.contextmanager
def serving(program, device, log):
    """Its port; ends well when told to."""
    with open(log, "w") as out, subprocess.Popen([str(program), "serve", "--port", "0", "--threads", "1", "--device", device],
                                                 stdout=out, stderr=subprocess.STDOUT, env=PLAIN) as server:
        try:
            ready = None
            for _ in range(3000):
                if ready := re.search(r"ready in .*http://[^:]+:(\d+)", log.read_text()):
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.wait(timeout=0.1)
                    break
            assert ready, log.read_text()
            yield int(ready[1])
        finally:
            server.terminate()
        assert server.wait(timeout=120) == 0, log.read_text()


def answer(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = {"prompt": PROMPT[1], "max_tokens": 12, "seed": 5}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200, text
    return json.loads(text)["choices"][0]["text"]


def test_without_a_driver_it_starts_and_serves_from_the_cpu(built, no_gpu, tmp_path):
    with serving(built / "quire", "cpu", tmp_path / "cpu.log") as port:
        expected = answer(port)
    with serving(built / "quire", "auto", tmp_path / "auto.log") as port:
        assert answer(port) == expected and len(expected) > 10
    assert "--device auto uses the CPU: cudaGetDeviceCount: " in (tmp_path / "auto.log").read_text()


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["generate", *PROMPT], ["bench"], ["serve", "--plan"]])
def test_a_gpu_that_is_not_there_is_refused_by_the_call_that_failed(build, no_gpu, command):
    done = run(build / "quire", *command, "--device", "cuda:1")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("quire: --device cuda:1: cudaGetDeviceCount: ")
    assert "(cudaError" in done.stderr


def test_measuring_without_a_gpu_is_refused_likewise(build, no_gpu):
    done = run(build / "quire_gpu_measure", "ceilings")
    assert done.returncode == 2
    assert done.stderr.startswith("quire_gpu_measure: cudaGetDeviceCount: ")
