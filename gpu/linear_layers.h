// Linear layers on a device, and what goes before and after them in the same kernels: rows are normed as they are rounded for the tensor
// cores, products added to what is there, or gated (gpu/kernels/linear.h).
// Shape   f32 and f16 have plain rows and store alone.
// Owner   the ops. Scratch for rows grows in reserve(), never later.
// Thread  reserve(): while starting. multiply(): engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// What multiply() needs beside weights and rows, in bytes.
struct LinearScratch {
  std::size_t rows = 0;
  std::size_t row_scales = 0;
};
// For up to max_rows rows. `warpgroups`: they may go through LinearWarpgroups.
LinearScratch linear_scratch(backend::WeightType type, std::uint32_t k, std::uint32_t max_rows, bool warpgroups);

class LinearLayers {
 public:
  // `warpgroups`: many rows by weights that are multiplied in bf16 go through LinearWarpgroups, where the device has it.
  LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups = false);

  void reserve(backend::WeightType type, std::uint32_t k);

  // out[num_rows, …] of the rows, which may be normed first. kGate: N / 2 is a multiple of 16 (can_gate()).
  void multiply(const RowsToPut& rows, std::uint32_t num_rows, const WeightView& w, Finish finish, float* out);

  static bool can_gate(const WeightView& w) { return in_tiles(w.type) && w.n % (2 * kTileOutputs) == 0; }

 private:
  void put_rows(const RowsToPut& rows, std::uint32_t num_rows, backend::WeightType type, bool in_blocks);
  bool has_warpgroups(backend::WeightType type) const;
  template <typename Form>
  void start(const WarpgroupEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args);
  template <typename Form>
  void start(const LinearEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args);

  Device& device_;
  const std::uint32_t max_rows_;
  const bool warpgroups_;
  DeviceMemory rows_;
  DeviceMemory row_scales_;
};

}  // namespace quire::gpu
