// The GPU backend: core/backend's ops as kernels on a device, with its equations and, but for what follows, its bits.
//   linear, of bf16, w16a16, int8, fp8 and int4: rows are rounded to bf16, and so are int4's numbers; the tensor cores multiply, in an
//   order that is the same for any number of rows (gpu/kernels/linear.h).
//   attend, but of caches of f32: q and the weights of V are rounded to bf16 likewise (gpu/kernels/attention_tiles.h).
//   choose: on the device, but for what gpu/chooser.h leaves to the host.
// Thread  made by any; then the engine thread.
// Fails   StartError: what it does not have, or memory that is not there.
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend/ops.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// A step never exceeds these: all that it needs is there before the first.
struct GpuOptions {
  std::uint32_t max_rows = 512;             // T
  std::uint32_t max_table_entries = 65536;  // of all sequences' block tables
  std::uint32_t max_kept_groups = 8192;     // words, of all sequences
  std::uint32_t depth = 1;                  // steps in flight
  // Steps of up to so many rows that decode, one of each sequence, are captured (gpu/steps.h), and of no more
  // than the smallest row buffer has room for. 0: none.
  std::uint32_t capture = 0;
  // Use sm_90a's warpgroup instructions, where the device has them, for many rows by weights that are multiplied in bf16
  // (gpu/kernels/linear_warpgroups.h).
  // No other bits: measured on an H200 (tools/gpu_measure, stage strict).
  bool linear_warpgroups = true;
  bool overlap = true;  // kernels begin before their turn, where the device can do it: no other bits
  // How much of what a multiprocessor has is shared memory, in percent, for all kernels alike; the rest is
  // first-level cache. -1: the driver chooses for each, and where two kernels differ the second waits for the first
  // to leave. No other bits.
  int carveout = -1;
};

std::unique_ptr<backend::Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options);

// What a weight of N outputs and K inputs takes on the device as packed, without its bias.
std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::WeightType type);
// What a block of such a cache takes on the device: all layers.
std::uint64_t kv_block_bytes(const backend::KvShape& shape);
// What an open group takes beside them: all layers. 0 but for int4.
std::uint64_t kv_open_group_bytes(const backend::KvShape& shape);

}  // namespace quire::gpu
