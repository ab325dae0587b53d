// Single kernels, run through the backend's ops on rows, weights, K and V made for them; each time is a median.
// Shape   calls cycle through `working_set_bytes` of weights and K, V, so that these come from memory, as in a decode
//         step; rows are small and stay in the caches, as there.
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
  std::string shape;   // for printing
  std::uint32_t rows = 0;
  double seconds = 0;  // of one call
  double bytes = 0;    // that a call must read
  double flops = 0;    // that a call must do
  // Attend over scattered blocks: its time divided by that over blocks in order; 0 for other kernels.
  double over_contiguous = 0;
  // Attend over shared blocks: its time divided by that over the same number of unshared blocks; 0 for other kernels.
  double over_private = 0;

  double bytes_per_s() const { return bytes / seconds; }
  double flops_per_s() const { return flops / seconds; }
};

struct KernelBenchOptions {
  std::uint64_t working_set_bytes = 0;
  std::uint32_t runs = 5;
  std::function<void(const std::string&)> progress;
};

std::vector<KernelFigure> bench_kernels(backend::Ops& ops, const KernelBenchOptions& options) REQUIRES(engine_role);

// ---- for tests

// The first `count` blocks of a pool in order; or `count` different blocks in random order from a pool of `num_blocks`,
// the same every time.
std::vector<BlockId> contiguous_blocks(std::uint32_t count);
std::vector<BlockId> scattered_blocks(std::uint32_t count, std::uint32_t num_blocks);

}  // namespace quire::tools
