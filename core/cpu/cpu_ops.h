// The CPU backend: packed weights in panels of 16 outputs, a kernel table per instruction set, a fixed team of threads.
// Thread  made by any; then the engine thread, which is worker 0 of the team.
// Fails   StartError: an instruction set that this machine lacks, or out of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"

namespace quire::cpu {

struct CpuOptions {
  std::uint32_t num_threads = 0;  // 0: as many as the process may run on
  std::string isa = "auto";       // "auto", "scalar", "avx2", "avx512", "avx512vnni", "avx512bf16"
  std::uint32_t max_rows = 512;   // T never exceeds this; scratch is sized by it
};

std::unique_ptr<backend::Ops> make_cpu_ops(const CpuOptions& options);

// Factory::takes() of this backend.
bool takes(backend::Format format);

// Bytes of a weight of N outputs and K inputs as packed on this backend, without its bias.
std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format format);

// Bytes of a KV block on this backend: all layers, with padding.
std::uint64_t kv_block_bytes(const backend::KvShape& shape);

// Bytes of an int4 residual group; 0 for other types.
std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape);

// Names of the instruction sets this machine can run, slowest first; "scalar" always.
std::vector<std::string> supported_isas();

}  // namespace quire::cpu
