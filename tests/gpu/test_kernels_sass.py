"""The instructions that the kernels come to: wide loads, tensor cores, nothing in local memory, and code for every GPU that is promised."""
import functools
import re

import pytest

from kernel_facts import ARCHITECTURES, FLAGS, KERNELS, ROOT, TOGETHER, architectures_in, compiled, disassembler, instructions, kernel_name, need_nvcc, run, scratch

pytestmark = pytest.mark.nvcc

BULK = ("extern __shared__ std::byte block[]; auto& barrier = *reinterpret_cast<PhaseBarrier*>(block + 1024); barrier.begin(1);"
        " barrier.arrive_and_announce(1024); copy_in_bulk(block, in, 1024, barrier); barrier.wait(0); barrier.arrive();"
        " out[0] = *reinterpret_cast<float*>(block);")
# Wrappers of PTX in gpu/device: the header and a call of each, and the instruction it has to become.
WRAPPERS = {
    "matrix.h add_product": ("Product p; p.c[0] = in[0]; const std::uint32_t a[4] = {word(in, 1), word(in, 2), word(in, 3), word(in, 4)};"
                             " const std::uint32_t b[2] = {word(in, 5), word(in, 6)}; add_product(p, a, b); out[0] = p.c[0] + p.c[3];",
                             r"HMMA\.16816\.F32\.BF16"),
    "integer_matrix.h add_product": ("IntegerProduct p; p.c[0] = word(in, 0); const std::uint32_t a[4] = {word(in, 1), word(in, 2), word(in, 3),"
                                     " word(in, 4)}; const std::uint32_t b[2] = {word(in, 5), word(in, 6)}; add_product(p, a, b);"
                                     " out[0] = static_cast<float>(p.c[0] + p.c[3]);", r"IMMA\.16832\.S8\.S8"),
    "simt.h wait_for_previous_kernel": ("wait_for_previous_kernel(); out[0] = in[0];", "ACQBULK"),
    "simt.h wait_for_previous_kernel, for the next": ("wait_for_previous_kernel(); out[0] = in[0];", "PREEXIT"),
    "stream.h load_once": ("const Words4 w = load_once(reinterpret_cast<const Words4*>(in)); out[0] = __uint_as_float(w.words[0] ^ w.words[1] ^ w.words[2] ^ w.words[3]);",
                           r"LDG\.E\S*128"),
    "stream.h load_fresh": ("out[0] = load_fresh(in);", r"LDG\.E\.STRONG\.GPU|LDG\.E\S*GPU"),
    "codes.h fma_of_pair": ("out[0] = __uint_as_float(fma_of_pair(word(in, 0), word(in, 1), word(in, 2)));", r"HFMA2\S*BF16|HFMA2\.BF16"),
    "kv_fragment.h will_read": ("will_read(reinterpret_cast<const std::byte*>(in), 4096); out[0] = 1.0f;", r"UBLKPF"),
    "kv_fragment.h load_fragment": ("const auto raw = load_fragment(reinterpret_cast<const RawKvFragment<quire::backend::KvType::kBF16>*>(in));"
                                    " out[0] = __uint_as_float(raw.bits.words[0] ^ raw.bits.words[1] ^ raw.bits.words[2] ^ raw.bits.words[3]);", r"LDG\.E\S*128"),
    "softmax.h exp_near": ("out[0] = exp_near(in[0]);", r"MUFU\.EX2"),
    "softmax.h highest": ("out[0] = highest(in[0], in[1]);", r"FMNMX\S*NAN"),
    "softmax.h bf16_pair": ("out[0] = __uint_as_float(bf16_pair(in[0], in[1]));", r"F2FP\.BF16"),
    "codes.h add_pairs": ("out[0] = __uint_as_float(add_pairs(word(in, 0), word(in, 1)));", r"HFMA2\S*BF16|HFMA2\.BF16|HADD2\S*BF16"),
    **{f"warpgroup_matrix.h WarpgroupProducts<{rows}>": (
        f"extern __shared__ std::byte block[]; WarpgroupProducts<{rows}>::Sums s = {{}}; const std::uint32_t a[4] = {{word(in, 1),"
        f" word(in, 2), word(in, 3), word(in, 4)}}; WarpgroupProducts<{rows}> products; products.begin(s);"
        " products.add(s, a, RowsInShared{shared_address(block), 128, 1024}.descriptor()); products.finish(s);"
        f" out[threadIdx.x] = s[0].c[0] + s[{rows // 8 - 1}].c[3];", rf"HGMMA\.64x{rows}x16\.F32\.BF16") for rows in (32, 64, 128)},
    "warpgroup_matrix.h show_to_products": ("extern __shared__ float numbers[]; numbers[threadIdx.x] = in[0]; show_to_products(); out[0] = numbers[threadIdx.x ^ 1];",
                                            r"FENCE\.VIEW\.ASYNC"),
    "bulk_copies.h copy_in_bulk": (BULK, r"UBLKCP"),
    "bulk_copies.h PhaseBarrier begins": (BULK, r"SYNCS\.EXCH"),
    "bulk_copies.h PhaseBarrier, arrivals": (BULK, r"SYNCS\.ARRIVE"),
    "bulk_copies.h PhaseBarrier, waiting": (BULK, r"SYNCS\.PHASECHK"),
    "copies.h Copies of 16 bytes": ("extern __shared__ Words4 quads[]; Copies copies; copies.add(quads, reinterpret_cast<const Words4*>(in));"
                                    " copies.end_group(); copies.wait<0>(); sync_block(); out[0] = __uint_as_float(quads[0].words[1]);",
                                    r"LDGSTS\.E\S*128"),
    "copies.h Copies of 8 bytes": ("extern __shared__ Words2 pairs[]; Copies copies; copies.add(pairs, reinterpret_cast<const Words2*>(in));"
                                   " copies.end_group(); copies.wait<0>(); sync_block(); out[0] = __uint_as_float(pairs[0].words[1]);",
                                   r"LDGSTS\.E\S*64"),
    "peers.h post": ("post(reinterpret_cast<LlWord*>(out), {word(in, 0), word(in, 1)});", r"STG?\.E\.64\.STRONG\.SYS"),
    "peers.h look": ("const LlWord ll_word = look(reinterpret_cast<const LlWord*>(in)); out[0] = __uint_as_float(ll_word.data ^ ll_word.epoch);",
                     r"LDG?\.E\.64\.STRONG\.SYS"),
}


@functools.cache
def code(architecture):
    """kernel → its instructions."""
    need_nvcc()
    disassembler()
    paths, _ = compiled(architecture)
    return {kernel_name(symbol): lines for (symbol, of), lines in instructions(paths).items() if of == architecture}


def with_opcode(lines, pattern):
    # An instruction may stand behind a predicate: @!P0 LDG.E.128 …
    return [line for line in lines if re.match(rf"(@!?U?P\w+\s+)?({pattern})", line)]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_nothing_lies_in_local_memory(architecture):
    kernels = code(architecture)
    assert len(kernels) >= 10
    for kernel, lines in kernels.items():
        assert len(lines) > 10, kernel
        assert not with_opcode(lines, r"LDL|STL"), f"{kernel} on {architecture}"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_kernels_of_tiles_use_tensor_cores_and_wide_loads(architecture):
    tiles = {kernel: lines for kernel, lines in code(architecture).items() if re.match(r"Linear(Wide|Split)<", kernel)}
    assert tiles
    for kernel, lines in tiles.items():
        assert with_opcode(lines, r"HMMA|IMMA|HGMMA|QGMMA"), kernel
        assert with_opcode(lines, r"LDG\.E\S*\.128|LDGSTS\.E\S*\.128|UBLKCP"), f"{kernel} reads no 128 bits at once on {architecture}"


def test_sm_90a_multiplies_by_warpgroups_and_copies_in_bulk():
    kernels = {kernel: lines for kernel, lines in code("sm_90a").items() if kernel.startswith("LinearWarpgroups<")}
    assert len(kernels) == 16  # four types, of many outputs and few, 128 rows and 64
    for kernel, lines in kernels.items():
        tiles, rows = re.match(r"LinearWarpgroups<\w+ (\d+) (\d+)>", kernel).groups()
        of_group = int(rows) * int(tiles) // 8
        products = [number for number, line in enumerate(lines) if with_opcode([line], rf"HGMMA\.64x{of_group}x16\.F32\.BF16")]
        assert len(products) == 16 + 4, kernel  # of a slice, and of a step of one that is not whole
        waits = [number for number, line in enumerate(lines) if with_opcode([line], r"WARPGROUP\.DEPBAR")]
        ahead = [number for number in waits if "0x1" in lines[number]]
        # Of half a step, or of a whole one, weights come while as many are multiplied.
        assert len(ahead) == (7 if of_group == 128 else 3), kernel
        first = next(number for number in range(len(products)) if products[number] < ahead[0] < products[number + 4])
        slice_of = [number for number in products if products[max(first - 3, 0)] <= number][:16]
        assert slice_of[0] < ahead[0] and ahead[-1] < slice_of[-1], kernel
        assert with_opcode(lines[slice_of[-1]:slice_of[-1] + 8], r"WARPGROUP\.DEPBAR"), kernel
        assert with_opcode(lines, "UBLKCP") and with_opcode(lines, r"SYNCS\.PHASECHK"), kernel
        assert with_opcode(lines, r"LDS\S*\.(128|64)"), kernel  # weights
    assert not any(kernel.startswith("LinearWarpgroups") for kernel in code("sm_80"))


def test_a_product_and_a_sum_are_two_roundings_where_no_fma_is_asked_for():
    kernels = code("sm_90a")
    assert with_opcode(kernels["AllReduce"], "FADD") and not with_opcode(kernels["AllReduce"], "FFMA")
    assert with_opcode(kernels["LinearDot"] if "LinearDot" in kernels else kernels["NormRows"], "FFMA")


def test_kernels_touch_nothing_but_weights_before_their_turn():
    for kernel, lines in code("sm_90a").items():
        turns = [number for number, line in enumerate(lines) if with_opcode([line], "ACQBULK")]
        assert len(turns) == 1, f"{kernel} takes its turn {len(turns)} times"
        before, behind = lines[:turns[0]], lines[turns[0]:]
        assert not with_opcode(before, r"STG|ST\.|RED|ATOM"), kernel
        assert bool(with_opcode(before, r"LDG|LD\.|UBLKCP")) == bool(re.match("Linear(Wide|Split|Warpgroups)<", kernel)), kernel
        assert with_opcode(behind, "PREEXIT"), f"{kernel} lets nobody begin early"
        # Such a load may be moved before the turn, and may find what was there before it.
        assert not with_opcode(lines, r"LDG\S*CONSTANT"), kernel
    for kernel, lines in code("sm_80").items():
        assert not with_opcode(lines, "ACQBULK|PREEXIT"), kernel


def test_the_logarithm_of_a_mass_looks_at_the_mass():
    """nvcc 13.0 makes a constant of std::countl_zero of 64 bits: every log probability of a GPU was the same."""
    need_nvcc()
    disassembler()
    path = f"{scratch().name}/mass.cu"
    with open(path, "w") as file:
        file.write('#include "core/sample/logprob.h"\nextern "C" __global__ void of_mass(const unsigned long* in, double* out)'
                   " { out[0] = quire::sample::log_of_mass(in[0]); }\n")
    done = run(["nvcc", *FLAGS, "-gencode", "arch=compute_90a,code=sm_90a", "-c", path, "-o", f"{scratch().name}/mass.o"])
    assert done.returncode == 0, done.stderr
    (lines,) = instructions([f"{scratch().name}/mass.o"]).values()
    assert with_opcode(lines, "FLO"), lines


def test_every_ptx_wrapper_compiled_alone_is_its_instruction():
    need_nvcc()
    disassembler()
    headers = {path.name: path.read_text() for path in (ROOT / "gpu" / "device").glob("*.h")}
    with_asm = {name for name, text in headers.items() if re.search(r"\basm\b", text)}
    listed = {wrapper.split()[0] for wrapper in WRAPPERS}
    assert with_asm <= listed, f"PTX without a line here: {sorted(with_asm - listed)}"
    assert "matrix.h" in with_asm
    wrappers = {name: what for name, what in WRAPPERS.items() if name.split()[0] in with_asm}
    source = "".join(f'#include "gpu/device/{name}"\n' for name in sorted(with_asm))
    source += "using namespace quire::gpu;\n__device__ std::uint32_t word(const float* in, int i) { return __float_as_uint(in[i]); }\n"
    for number, (body, _) in enumerate(wrappers.values()):
        source += f'extern "C" __global__ void wrapper_{number}(const float* in, float* out) {{ {body} }}\n'
    path = f"{scratch().name}/wrappers.cu"
    with open(path, "w") as file:
        file.write(source)
    done = run(["nvcc", *FLAGS, "-gencode", "arch=compute_90a,code=sm_90a", "-c", path, "-o", f"{scratch().name}/wrappers.o"])
    assert done.returncode == 0, done.stderr
    found = {symbol: lines for (symbol, _), lines in instructions([f"{scratch().name}/wrappers.o"]).items()}
    for number, (name, (_, pattern)) in enumerate(wrappers.items()):
        assert with_opcode(found[f"wrapper_{number}"], pattern), f"{name}: {found[f'wrapper_{number}']}"


def test_the_object_holds_code_for_every_gpu_that_the_preset_names():
    need_nvcc()
    lists = (ROOT / "gpu" / "cuda" / "CMakeLists.txt").read_text()
    named = re.search(r'QUIRE_CUDA_ARCHITECTURES "([^"]+)"', lists)[1].split(";")
    assert [f"sm_{one}" for one in named] == ARCHITECTURES
    built = {path: architectures_in(path) for some in TOGETHER for path in compiled(some[0])[0]}
    of_all = [found for path, found in built.items() if "sm90a" not in path.name]
    assert sorted(one for found in of_all for one in found) == sorted(len(KERNELS) * ARCHITECTURES)
    assert [found for path, found in built.items() if "sm90a" in path.name] == [{"sm_90a"}]
