"""llama.cpp built for this machine, from the sources of the package llama-cpp-python: python loadtest/llama_cpp_build.py DIR

Makes DIR/bin/llama-server, llama-quantize and llama-perplexity, once. It wants CMake, Ninja and a C++ compiler, and takes ten minutes
on two cores.
"""

import pathlib
import shutil
import subprocess
import sys
import tarfile

PACKAGE = "llama-cpp-python==0.3.36"
BUILD_BACKEND = "scikit-build-core==0.11.6"  # pip asks it for the package's name
PROGRAMS = ("llama-quantize", "llama-perplexity", "llama-server")


def unpack(archive, place):
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            inside = member.name.partition("/vendor/llama.cpp/")[2]
            if inside and (member.isfile() or member.isdir()):
                member.name = inside
                tar.extract(member, place, filter="data")


def sources(folder, run):
    place = folder / "sources"
    if not (place / "CMakeLists.txt").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, capture_output=True)
        pip = folder / "venv/bin/pip"
        run([pip, "install", "-q", BUILD_BACKEND])
        run([pip, "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", PACKAGE, "-d", folder])
        (archive,) = folder.glob("llama_cpp_python-*.tar.gz")
        unpack(archive, place)
        archive.unlink()
        shutil.rmtree(folder / "venv")
    return place


def built(folder, programs=PROGRAMS, run=lambda command: subprocess.run(command, check=True)):
    """The folder of the programs. `run` runs a command, and raises where it fails."""
    folder = pathlib.Path(folder).resolve()
    missing = [name for name in programs if not (folder / "bin" / name).exists()]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        run(["cmake", "-S", sources(folder, run), "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON",
             "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DBUILD_SHARED_LIBS=OFF"])  # fmt: skip
        run(["ninja", "-C", folder, *missing])
    return folder / "bin"


if __name__ == "__main__":
    print(built(sys.argv[1]))
