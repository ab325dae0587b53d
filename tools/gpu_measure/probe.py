"""Prints facts about this machine as one JSON object: kernel, GPU, driver, tools."""
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess

QUERY = {"name": "name", "capability": "compute_cap", "driver": "driver_version", "memory": "memory.total",
         "sm_clock": "clocks.max.sm", "memory_clock": "clocks.max.memory", "mig": "mig.mode.current"}


def gpu():
    if shutil.which("nvidia-smi") is None:
        return None
    done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader"],
                          capture_output=True, text=True, timeout=50)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return None
    return dict(zip(QUERY, (word.strip() for word in lines[0].split(","))))


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    tools = {name: shutil.which(name) is not None
             for name in ("nvcc", "cmake", "ninja", "ncu", "compute-sanitizer", "cuobjdump", "nvdisasm")}
    kernel = platform.release()
    print(json.dumps({
        "kernel": kernel, "runtime": "firecracker" if "-fc" in kernel else "gvisor" if "gvisor" in platform.version().lower() else "other",
        "cpus": os.cpu_count(), "gpu": gpu(), "tools": tools, "rows": [],
        "packages": {name: version(name) for name in ("torch", "transformers", "triton")}}))


if __name__ == "__main__":
    main()
