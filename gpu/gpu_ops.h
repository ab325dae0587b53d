// The GPU backend: the ops of core/backend as kernels on a device, with their equations. Bits equal the CPU's, except:
//   linear of bf16, w16a16, int8, fp8 and int4 weights: rows, and the numbers of int4, are rounded to bf16; the tensor
//   cores multiply, in an order that is the same for any number of rows (gpu/kernels/linear.h).
//   linear of blocks times int8: the inputs of every 256 have a sum of their own, and these are added in order.
//   attend, unless the cache is f32: q and the softmax weights are rounded to bf16 (gpu/kernels/attention_tiles.h).
//   choose runs on the device, except for what gpu/chooser.h leaves to the host. Its bits are the host sampler's.
// Thread  made by any; then the engine thread.
// Fails   StartError: out of memory.
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend/ops.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// Limits of a step. Everything that a step needs is allocated before the first.
struct GpuOptions {
  std::uint32_t max_rows = 512;             // T
  std::uint32_t max_table_entries = 65536;  // of all sequences' block tables, of one group of layers
  std::uint32_t num_groups = 1;             // groups of layers, the most of all caches
  std::uint32_t max_kept_groups = 8192;     // words, of all sequences
  std::uint32_t depth = 1;                  // steps in flight
  // Decode steps of up to this many rows, one row per sequence, are captured (gpu/steps.h), but no more rows than the
  // smallest row buffer has. 0: none.
  std::uint32_t capture = 0;
  // Uses sm_90a's warpgroup instructions, if the device has them, for many rows by weights that are multiplied in bf16
  // (gpu/kernels/linear_warpgroups.h). Same bits: measured on an H200 (tools/gpu_measure, stage strict).
  bool linear_warpgroups = true;
  // Programmatic dependent launch, if the device has it: a kernel starts before the previous one ends. Same bits.
  bool overlap = true;
  // Percentage of a multiprocessor's L1 and shared memory that is shared memory, the same for all kernels; the rest is
  // L1 cache. -1: the driver chooses for each kernel, and a kernel with another split waits until the previous one has
  // left. Same bits.
  int carveout = -1;
};

std::unique_ptr<backend::Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options);

// True if a GPU multiplies weights of that format.
bool takes(backend::Format format);
bool rounds_rows(backend::Format format);
// Bytes on the device of a packed weight of N outputs and K inputs, without its bias.
std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format format);
// Bytes on the device of a KV block, all places.
std::uint64_t kv_block_bytes(const backend::KvShape& shape);
// Bytes on the device of an int4 residual group, all layers; 0 for other types.
std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape);

}  // namespace quire::gpu
