// Launches of K and V storing and of attention: decides what a step's rows need on the device and which kernels take
// which rows.
//   kF32 caches, and heads of more than 256 dimensions (kInt4: 128), take the plain kernel (kernels/attention.h), which
//   has the bits of the CPU; all others take the tensor cores (kernels/attention_tiles.h).
// Owner   GpuOps. reserve() allocates what any step within the limits needs, for layers of two kinds (a kind is a
//         window, a number of query heads per kv head and a width of heads). Buffers for a third kind are allocated in
//         the first step that has one.
// Thread  engine.
// Fails   reserve(): StartError, out of memory. A step beyond the limits is our bug: CHECK.
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
  std::uint32_t max_table_entries = 0;  // of all sequences' block tables, of one group of layers
  std::uint32_t num_groups = 1;
  std::uint32_t depth = 1;  // steps in flight
};

class Attention {
 public:
  static constexpr std::uint32_t kMostHeadsOfGroup = 128;  // query heads per kv head

  static bool in_tiles(const KvLayout& layout);  // true: the tensor cores take it

  Attention(Device& device, const AttentionLimits& limits);

  // Called for every cache, while starting.
  void reserve(const backend::KvShape& shape);

  // Called first in every step. The arrays that `batch` refers to outlive the step. bucket: rows of the captured step's
  // grids, to which units are padded as well; 0: the step is not captured.
  void begin(const backend::Batch& batch, const BatchView& on_device, std::uint32_t bucket);
  // `layer`: in the cache.
  void rope_store(const AttentionView& spec, std::uint32_t layer, float* qkv, const DeviceCache& cache);
  void attend(const AttentionView& spec, std::uint32_t layer, const float* qkv, const DeviceCache& cache, float* out);
  void read_accumulated_scores(std::span<std::uint64_t> out);

 private:
  // One array of a plan, on the device.
  template <typename T>
  struct Part {
    const T* first = nullptr;
    std::uint32_t count = 0;
  };
  using Units = Part<AttentionUnit>;
  // A plan for one kind of layers, sent by one copy.
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

  BatchView batch_of(const DeviceCache& cache, std::uint32_t layer) const;
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
  std::vector<Placed> placed_;  // the first num_placed_ belong to this step
  std::size_t num_placed_ = 0;
  std::size_t most_units_ = 0;               // of one span each, in any step and layer
  std::size_t least_part_ = ~std::size_t{};  // bytes of a part over all kv heads, in the cache with the smallest
  DeviceMemory parts_;
  bool stores_groups_ = false;    // int4
  std::uint32_t num_groups_ = 0;  // groups with rows in this step
  std::optional<StepUpload> groups_;
  DeviceMemory accumulated_scores_;
  DeviceMemory max_and_sum_;
};

}  // namespace quire::gpu
