// The CPU backend: packed weights in panels of 16 outputs, a kernel table per instruction set, a fixed team of threads.
// Thread  made by any; then the engine thread, which is worker 0 of the team.
// Fails   StartError: an instruction set that this machine lacks, or memory that is not there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"

namespace quire::cpu {

struct CpuOptions {
  std::uint32_t num_threads = 0;  // 0: as many as the process may run on
  std::string isa = "auto";       // "auto", "scalar", "avx2", "avx512", "avx512vnni"
  std::uint32_t max_rows = 512;   // T never exceeds this: scratch is sized by it
};

std::unique_ptr<backend::Ops> make_cpu_ops(const CpuOptions& options);

// What a weight of N outputs and K inputs takes as packed on this backend, without its bias.
std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::WeightType type);

// What a block of such a cache takes on this backend: all layers, padding and the byte tail.
std::uint64_t kv_block_bytes(const backend::KvShape& shape);

// What each of such a cache's open groups takes; 0 but for int4.
std::uint64_t kv_open_group_bytes(const backend::KvShape& shape);

// Names of the instruction sets this machine can run, slowest first; "scalar" always.
std::vector<std::string> supported_isas();

}  // namespace quire::cpu
