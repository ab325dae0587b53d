// Kernels by themselves, through the backend's ops: rows, weights, K and V made for them, each timed as a median.
// Shape   weights and K, V go round in `working_set_bytes`, so that they come from memory as in a decode step; rows are
//         small and stay in the caches, as there.
// Owner   the caller; buffers live for one figure.
// Thread  engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/thread_role.h"

namespace quire::tools {

struct KernelFigure {
  std::string kernel;  // "linear", "attend", "norm", "choose"
  std::string what;    // weight type, order of the blocks, kind of sampling
  std::string shape;   // for people
  std::uint32_t rows = 0;
  double seconds = 0;          // of one call
  double bytes = 0;            // that a call has to read
  double flops = 0;            // that a call has to do
  double over_contiguous = 0;  // attend over scattered blocks: its time over that of blocks in order; 0 elsewhere
  double over_private = 0;  // attend over shared blocks: its time over that of as many of each one's own; 0 elsewhere

  double bytes_per_s() const { return bytes / seconds; }
  double flops_per_s() const { return flops / seconds; }
};

struct KernelBenchOptions {
  std::uint64_t working_set_bytes = 0;
  std::uint32_t runs = 5;
  std::function<void(const std::string&)> progress;
};

std::vector<KernelFigure> bench_kernels(backend::Ops& ops, const KernelBenchOptions& options) REQUIRES(engine_role);

// ---- parts, for tests

// The first `count` blocks of a pool in order; or as many, strewn over a pool of `num_blocks` (the same every time). No
// block comes twice.
std::vector<BlockId> contiguous_blocks(std::uint32_t count);
std::vector<BlockId> scattered_blocks(std::uint32_t count, std::uint32_t num_blocks);

}  // namespace quire::tools
