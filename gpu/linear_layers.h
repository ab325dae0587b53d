// Linear layers on a device, fused with what comes before and after: rows are normed while they are rounded for the
// tensor cores; products are stored, added to the output, or gated (gpu/kernels/linear.h).
// Shape   weights that the tensor cores do not multiply (by_tensor_cores()): no norm, and Finish::kStore only.
// Owner   GpuOps. Scratch for rows grows in reserve() only.
// Thread  reserve(): while starting. multiply(): engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/backend/device_cast.h"
#include "gpu/runtime/device.h"
#include "gpu/tensors.h"

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

// Tables of the experts' weights of a layer, on the device, made when the layer runs first.
class ExpertTables {
 public:
  // Null if there is none of these weights yet. part: of every expert's list.
  const ExpertWeight* find(backend::ExpertWeights weights, std::size_t part) const;
  const ExpertWeight* make(Device& device, backend::ExpertWeights weights, std::size_t part);

 private:
  struct Table {
    std::vector<ExpertWeight> weights;  // compared at each call: a weight may lie where another one was
    DeviceMemory memory;
  };
  std::map<const void*, Table> tables_;  // by the numbers of expert 0
};

class LinearLayers {
 public:
  // warpgroups: many rows by weights that are multiplied in bf16 use LinearWarpgroups, if the device has its code.
  LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups = false);

  void reserve(backend::Format format, std::uint32_t k);

  // Writes or adds to out[num_rows, …], whose rows are out_width apart, the product of the rows, which may be normed
  // first. kGate: N / 2 is a multiple of 16 (can_gate()).
  void multiply(const RowsToPut& rows, std::uint32_t num_rows, const WeightView& w, const LinearFinish& finish,
                float* out, std::uint32_t out_width);

  // Likewise of rows by expert, num_rows of the step before: one expert's part of the list after the other, side by
  // side. kStore, or kGate if can_gate() of the list. before_table(): called before a table is made.
  void multiply_by_expert(const RowsToPut& rows, backend::ExpertWeights weights, const DeviceRoutes& routes,
                          std::uint32_t num_rows, const LinearFinish& finish, backend::Buffer& out,
                          const std::function<void()>& before_table);
  // Makes room for rows by expert, up to max_rows of the step.
  void reserve_routes(const DeviceRoutes& routes);

  static bool can_gate(const WeightView& w) { return by_tensor_cores(w.format) && w.n % (2 * kTileOutputs) == 0; }
  static bool can_gate(const backend::WeightList& list) { return list.size() == 1 && can_gate(view_of(list[0])); }
  static const WeightView& view_of(const backend::Weight& w) {
    return backend::device_cast<const DeviceWeight>(w).view();
  }

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
  void multiply_part(RowsToPut rows, const DeviceRoutes& routes, std::uint32_t num_rows, const WeightView& w,
                     const ExpertWeight* weights, const LinearFinish& finish, float* out, std::uint32_t out_width);
  template <auto kEntries>
  void start_experts(Index grid, const LinearArgs& args, const ExpertRows& experts);
  template <auto kEntries>
  void start_block_experts(Index grid, const LinearArgs& args, const ExpertRows& experts);
  template <typename Form>
  void start(const WarpgroupEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args);
  template <typename Form>
  void start(const LinearEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args);

  Device& device_;
  std::uint32_t max_rows_;
  const bool warpgroups_;
  std::vector<std::pair<backend::Format, std::uint32_t>> reserved_;  // formats and inputs of reserve()
  ExpertTables experts_;
  DeviceMemory rows_;
  DeviceMemory row_scales_;
};

}  // namespace quire::gpu
