// Storing of K and V and attention on a device: what a step's rows need there, and which kernels take which of them.
//   kF32, and heads of more than 256 dimensions (kInt4: 128): the plain kernel, with the bits of the CPU; all else goes
//   through the tensor cores.
// Owner   GpuOps. Room for any step within the limits is there from reserve() on, for layers of two kinds (window,
//         heads of a kv head); that of a third is taken in its first step.
// Thread  engine.
// Fails   reserve(): StartError, out of memory. Steps beyond the limits are our bug: CHECK.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "gpu/attention_plan.h"
#include "gpu/kernels/rope_store.h"
#include "gpu/runtime/device.h"
#include "gpu/steps.h"
#include "gpu/tensors.h"

namespace quire::gpu {

struct AttentionLimits {
  std::uint32_t max_rows = 0;           // T
  std::uint32_t max_table_entries = 0;  // of all sequences' block tables
  std::uint32_t depth = 1;              // steps in flight
};

class Attention {
 public:
  static constexpr std::uint32_t kMostHeadsOfGroup = 128;  // query heads of a kv head

  static bool in_tiles(const KvLayout& layout);  // so that the tensor cores take it

  Attention(Device& device, const AttentionLimits& limits);

  // While starting, of every cache.
  void reserve(const backend::KvShape& shape);

  // Of every step, first. What `batch` views must outlive the step. bucket: of a step that is to be captured, so many
  // rows fill its grids, and units are padded likewise; 0: of another.
  void begin(const backend::Batch& batch, const BatchView& on_device, std::uint32_t bucket);
  void rope_store(const AttentionView& spec, float* qkv, const DeviceCache& cache);
  void attend(const AttentionView& spec, const float* qkv, const DeviceCache& cache, float* out);
  void read_accumulated_scores(std::span<std::uint64_t> out);

 private:
  // A part of a plan on the device.
  template <typename T>
  struct Part {
    const T* first = nullptr;
    std::uint32_t count = 0;
  };
  using Units = Part<AttentionUnit>;
  // A plan, sent by one copy.
  struct Placed {
    AttentionShape shape;
    StepUpload upload;
    Units narrow{};
    Units wide{};
    Units narrow_accumulating{};
    Units wide_accumulating{};
    Part<RowParts> row_parts{};
    Part<std::uint32_t> rows_in_parts{};
  };

  const Placed& placed(const AttentionShape& shape);
  Placed make_placed() const;
  void send_plan(Placed& work) const;
  void run_units(const AttendTilesArgs& args, backend::KvType type, const Units& narrow, const Units& wide);
  template <typename Kernel>
  void start(const Entry<Kernel>& kernel, AttendTilesArgs args, const Units& units);
  void grow(DeviceMemory& room, std::size_t bytes, const char* what);

  Device& device_;
  const AttentionLimits limits_;
  backend::Batch batch_;
  BatchView on_device_;
  std::uint32_t grid_rows_ = 0;  // T, or the bucket
  bool pads_ = false;
  std::vector<Placed> placed_;  // of this step the first num_placed_
  std::size_t num_placed_ = 0;
  std::size_t most_units_ = 0;               // of spans, in any step and layer
  std::size_t least_part_ = ~std::size_t{};  // bytes, of all kv heads, of the cache where these are fewest
  DeviceMemory parts_;
  bool stores_groups_ = false;    // int4
  std::uint32_t num_groups_ = 0;  // that have rows in this step
  std::optional<StepUpload> groups_;
  DeviceMemory accumulated_scores_;
  DeviceMemory max_and_sum_;
};

}  // namespace quire::gpu
