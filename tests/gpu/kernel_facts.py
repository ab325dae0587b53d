"""What nvcc makes of gpu/cuda/*.cu: registers, stack, shared memory, blocks that fit, and the instructions themselves."""
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = [ROOT / "gpu" / "cuda" / name for name in ("kernels.cu", "linear_kernels.cu", "block_kernels.cu")]
OF_SM90A = ROOT / "gpu" / "cuda" / "sm90a_kernels.cu"  # has what no other architecture has
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr", f"-I{ROOT}"]
ARCHITECTURES = ["sm_80", "sm_89", "sm_90a", "sm_100"]
TOGETHER = [("sm_80", "sm_90a"), ("sm_89", "sm_100")]  # compiled at once, which takes minutes: what every run looks at, and the rest
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def run(command, timeout=900, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, **options)


def need_nvcc():
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc here: kernels are compiled as host code alone")


def kernel_name(symbol):
    """`Tiles<(KvType)1 3>` of the mangled enter<quire::gpu::Tiles<(quire::backend::KvType)1, 3u>>: no commas, no namespaces."""
    whole = run(["c++filt", symbol]).stdout.strip()
    begin = whole.index("enter<") + len("enter<")
    depth, end = 1, begin
    while depth:
        depth += {"<": 1, ">": -1}.get(whole[end], 0)
        end += 1
    name = re.sub(r"quire::((gpu|backend)::)?|\(anonymous namespace\)::", "", whole[begin:end - 1])
    return re.sub(r"(?<=\d)u\b", "", name).replace(", ", " ").replace(",", " ").replace("> >", ">>").strip()


@functools.cache
def scratch():
    """A directory that goes with the process."""
    return tempfile.TemporaryDirectory()


def compiled(architecture):
    """The objects, and kernel → dict of registers, bytes of stack and spills, static shared bytes."""
    (together,) = [some for some in TOGETHER if architecture in some]
    paths, facts = compiled_together(together)
    return paths, {kernel: fact for (kernel, of), fact in facts.items() if of == architecture}


@functools.cache
def compiled_together(architectures):
    """As compiled(), by (kernel, architecture)."""
    objects, said = [], ""
    sources = [(source, architectures) for source in KERNELS] + [(OF_SM90A, [one for one in architectures if one == "sm_90a"])]
    for source, targets in sources:
        if not targets:
            continue
        words = [word for one in targets for word in ("-gencode", f"arch={one.replace('sm_', 'compute_')},code={one}")]
        out = Path(scratch().name) / f"{source.stem}-{'-'.join(targets)}.o"
        done = run(["nvcc", *FLAGS, "-Xptxas", "-v", *words, "--threads", "2", "-c", source, "-o", out], timeout=1800)
        assert done.returncode == 0, done.stderr
        # A wgmma that is carried out one by one is said as a performance loss alone (C7510), a setmaxnreg that is ignored likewise (C7508).
        assert "warning" not in done.stderr and "Potential Performance Loss" not in done.stderr, done.stderr
        objects.append(out)
        said += done.stderr
    facts, fact = {}, None
    for line in said.splitlines():
        if match := ENTRY.search(line):
            fact = facts.setdefault((kernel_name(match[1]), match[2]), {"registers": 0, "spilled": 0, "shared": 0})
        elif fact is None:
            continue
        elif match := STACK.search(line):
            fact["spilled"] = sum(map(int, match.groups()))
        elif match := REGISTERS.search(line):
            fact["registers"] = int(match[1])
            fact["shared"] = int(found[1]) if (found := SHARED.search(line)) else 0
    assert facts, said
    return objects, facts


# ---- how many blocks fit a multiprocessor: NVIDIA's own arithmetic, on the host

OCCUPANCY = r"""
#include <climits>
#include <cuda_occupancy.h>
#include <cstdio>
int main() {
  cudaOccDeviceProp device;
  cudaOccFuncAttributes function;
  cudaOccDeviceState state;
  int major, minor, threads_of_sm, registers, threads;
  std::size_t shared_of_sm, shared_of_block, fixed, dynamic;
  while (std::scanf("%d %d %d %zu %zu %d %zu %zu %d", &major, &minor, &threads_of_sm, &shared_of_sm, &shared_of_block, &registers, &fixed,
                    &dynamic, &threads) == 9) {
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = threads_of_sm;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared_of_sm;
    device.sharedMemPerBlockOptin = shared_of_block;
    device.reservedSharedMemPerBlock = 1024;
    device.numSms = 1;
    function.maxThreadsPerBlock = 1024;
    function.numRegs = registers;
    function.sharedSizeBytes = fixed;
    function.partitionedGCConfig = PARTITIONED_GC_OFF;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = shared_of_block - fixed;
    function.numBlockBarriers = 1;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, dynamic) != CUDA_OCC_SUCCESS) return 1;
    std::printf("%d\n", result.activeBlocksPerMultiprocessor);
  }
}
"""
# major, minor, threads and shared bytes of a multiprocessor, shared bytes that a block may ask for. CUDA C++ Programming Guide,
# technical specifications per compute capability.
MACHINES = {"sm_80": (8, 0, 2048, 167936, 166912), "sm_89": (8, 9, 1536, 102400, 101376),
            "sm_90a": (9, 0, 2048, 233472, 232448), "sm_100": (10, 0, 2048, 233472, 232448)}


def cuda_include():
    """Where nvcc, which may be a script of somebody's, says that its headers are."""
    said = run(["nvcc", "--dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull]).stderr
    top = re.search(r"TOP=(\S+)", said)
    folders = [*re.findall(r'-I([^"\s]+)', said), *([f"{top[1]}/include", f"{top[1]}/targets/x86_64-linux/include"] if top else [])]
    return next((Path(one) for one in folders if (Path(one) / "cuda_occupancy.h").is_file()), None)


def blocks_that_fit(questions):
    """Of (architecture, registers, static shared, dynamic shared, threads) each; None where the calculator is not installed."""
    include = cuda_include()
    if include is None:
        return None
    source, program = (Path(scratch().name) / name for name in ("occupancy.cc", "occupancy"))
    if not program.exists():
        source.write_text(OCCUPANCY)
        done = run(["g++", "-w", f"-I{include}", source, "-o", program])
        assert done.returncode == 0, done.stderr
    asked = "".join(" ".join(map(str, (*MACHINES[one], *rest))) + "\n" for one, *rest in questions)
    done = run([program], input=asked)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def launches(names):
    """Threads of a block and dynamic shared bytes, by kernel: said by the kernels themselves, compiled for the host."""
    source, program = (Path(scratch().name) / name for name in ("launches.cc", "launches"))
    lines = "".join(f'  say<{name.replace(" ", ", ")}>("{name}");\n' for name in names)
    source.write_text('#include <cstdio>\n#include "gpu/kernels/table.h"\nusing namespace quire;\nusing namespace quire::gpu;\n'
                      'using namespace quire::backend;\n'
                      'template <typename Kernel> void say(const char* name) {\n'
                      '  std::printf("%s,%u,%zu\\n", name, Kernel::kThreads, shared_bytes_of<Kernel>());\n}\n'
                      f'int main() {{\n{lines}}}\n')
    # Only constants are asked for: the simulator that the kernels' host form calls is left out.
    done = run(["g++", "-std=c++20", "-O1", "-w", f"-I{ROOT}", "-Wl,--unresolved-symbols=ignore-all", source, "-o", program])
    assert done.returncode == 0, done.stderr
    rows = (line.rsplit(",", 2) for line in run([program]).stdout.splitlines())
    return {name: (int(threads), int(shared)) for name, threads, shared in rows}


# ---- instructions

def disassembler():
    """cuobjdump with its nvdisasm: of the toolkit, or of the packages in tests/requirements.txt."""
    def find(name, package):
        if found := shutil.which(name):
            return Path(found)
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            return None
        return next((Path(file.locate()) for file in files if file.name == name), None)

    dump, text = find("cuobjdump", "nvidia-cuda-cuobjdump"), find("nvdisasm", "nvidia-cuda-nvdisasm")
    if dump is None or text is None:
        pytest.skip("there is no cuobjdump and nvdisasm here: instructions are not looked at")
    return dump, {**os.environ, "PATH": f"{text.parent}:{os.environ['PATH']}"}


def instructions(paths):
    """(kernel, architecture) → its instructions, a line each."""
    dump, environment = disassembler()
    said = ""
    for path in paths:
        done = run([dump, "-sass", path], env=environment)
        assert done.returncode == 0, done.stderr
        said += done.stdout
    found, architecture, lines = {}, None, None
    for line in said.splitlines():
        if match := re.search(r"code for (sm_\w+)", line):
            architecture = match[1]
        elif match := re.search(r"Function : (\S+)", line):
            lines = found.setdefault((match[1], architecture), [])
        elif lines is not None and (match := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.+?)\s*;", line)):
            lines.append(match[1])
    return found


def architectures_in(path):
    dump, environment = disassembler()
    done = run([dump, "--list-elf", path], env=environment)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"\.(sm_\w+)\.cubin", done.stdout))
