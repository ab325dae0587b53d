// Linear layers on a device, fused with what comes before and after: rows are normed while they are rounded for the
// tensor cores; products are stored, added to the output, or gated (gpu/kernels/linear.h).
// Shape   weights that the tensor cores do not multiply (by_tensor_cores()): no norm, and Finish::kStore only.
// Owner   GpuOps. Scratch for rows grows in reserve() only.
// Thread  reserve(): while starting. multiply(): engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// The end of a product: stored, added to out times a scale, or gated by an activation.
struct LinearFinish {
  Finish kind = Finish::kStore;
  float scale = 1.0f;
  backend::Activation activation = backend::Activation::kSilu;
};

// Bytes that multiply() needs besides weights and rows.
struct LinearScratch {
  std::size_t rows = 0;
  std::size_t row_scales = 0;
};
// Scratch for up to max_rows rows. warpgroups: LinearWarpgroups may be used.
LinearScratch linear_scratch(backend::Format format, std::uint32_t k, std::uint32_t max_rows, bool warpgroups);

bool has_kernels(backend::Format format);
// StartError that names the format if GPUs have none for it.
void expect_kernels(backend::Format format);

class LinearLayers {
 public:
  // warpgroups: many rows by weights that are multiplied in bf16 use LinearWarpgroups, if the device has its code.
  LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups = false);

  void reserve(backend::Format format, std::uint32_t k);

  // Writes or adds to out[num_rows, …], whose rows are out_width apart, the product of the rows, which may be normed
  // first. kGate: N / 2 is a multiple of 16 (can_gate()).
  void multiply(const RowsToPut& rows, std::uint32_t num_rows, const WeightView& w, const LinearFinish& finish,
                float* out, std::uint32_t out_width);

  static bool can_gate(const WeightView& w) { return by_tensor_cores(w.format) && w.n % (2 * kTileOutputs) == 0; }

 private:
  struct FormatKernels;
  friend bool has_kernels(backend::Format format);
  // Null if there are none. A new format is one more row of its table.
  static const FormatKernels* kernels_of(backend::Format format);

  void put_rows(const RowsToPut& rows, std::uint32_t num_rows, backend::Format format, bool in_blocks);
  bool has_warpgroups(backend::Format format) const;
  // The kernels of a form of the table, and of the one with warpgroups if it has them.
  template <auto kEntries, auto kWarpgroupEntries = nullptr>
  void start_form(const LinearGrid& grid, const LinearArgs& args);
  template <auto kEntries>
  void start_blocks(const LinearGrid& grid, const LinearArgs& args);
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
