// Storing of K and V and attention on a device: what a step's rows need there, and which kernels take which of them.
//   kF32, and heads of more than 256 dimensions (kInt4: 128): the plain kernel, with the bits of the CPU; all else goes through the
//   tensor cores.
// Owner   GpuOps. Plans and room grow with the longest step yet; room for parts is there from reserve() on.
// Thread  engine.
// Fails   StartError: out of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "gpu/attention_plan.h"
#include "gpu/kernels/rope_store.h"
#include "gpu/runtime/device.h"
#include "gpu/tensors.h"

namespace quire::gpu {

class Attention {
 public:
  Attention(Device& device, std::uint32_t max_rows);

  // While starting, of every cache.
  void reserve(const backend::KvShape& shape);

  // Of every step, first. What `batch` views must outlive the step; `rows` are those of `on_device`.
  void begin(const backend::Batch& batch, std::span<const RowOfBatch> rows, const BatchView& on_device);
  void rope_store(const AttentionView& spec, float* qkv, const DeviceCache& cache);
  void attend(const AttentionView& spec, const float* qkv, const DeviceCache& cache, float* out);
  void read_votes(std::span<std::uint64_t> out);

 private:
  // A plan on the device.
  struct Placed {
    AttentionShape shape;
    AttentionPlan plan;
    DeviceMemory narrow;
    DeviceMemory wide;
    DeviceMemory narrow_voters;
    DeviceMemory wide_voters;
    DeviceMemory row_parts;
    DeviceMemory rows_in_parts;
  };
  struct Units {
    const DeviceMemory& memory;
    std::uint32_t count;
  };

  const Placed& placed(const AttentionShape& shape);
  void run_units(const AttendTilesArgs& args, std::uint32_t num_kv_heads, backend::KvType type, Units narrow,
                 Units wide);
  template <typename T>
  void send(DeviceMemory& to, std::span<const T> values, const char* what);
  void keep_room(DeviceMemory& room, std::size_t bytes, const char* what);

  Device& device_;
  const std::uint32_t max_rows_;
  backend::Batch batch_;
  BatchView on_device_;
  std::vector<Placed> placed_;  // of this step the first num_placed_
  std::size_t num_placed_ = 0;
  std::size_t parts_bytes_ = 0;
  DeviceMemory parts_;
  bool stores_groups_ = false;  // int4
  std::vector<GroupOfStep> host_groups_;
  DeviceMemory groups_;
  DeviceMemory votes_;
  DeviceMemory max_and_sum_;
};

}  // namespace quire::gpu
