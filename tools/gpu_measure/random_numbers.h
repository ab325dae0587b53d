// Random numbers in device memory, without any coming from the host but one piece: it is copied on and on.
//   Weights and caches for figures only: what is computed of them says nothing.
// Owner   borrows the device.
// Thread  the engine's.
// Source  xorshift64 (Marsaglia 2003).
#pragma once

#include <cstddef>
#include <memory>

#include "core/backend/ops.h"
#include "gpu/runtime/device.h"
#include "gpu/tensors.h"

namespace quire::gpu::measure {

class RandomNumbers {
 public:
  explicit RandomNumbers(Device& device);

  // As `ops` would adopt a packed one: whatever they make room for is there.
  std::unique_ptr<backend::Weight> weight(backend::Ops& ops, const backend::WeightShape& shape);
  void fill_cache(backend::KvCache& cache);
  void fill_cache(backend::KvCache& cache, std::byte all_alike);
  void fill(void* to, std::size_t bytes,
            std::size_t bytes_of_number);  // 4: f32, 2: bf16, 1: whole numbers, or no NaN in fp8

 private:
  void copy_piece(const DeviceMemory& piece, void* to, std::size_t bytes);

  Device& device_;
  DeviceMemory f32_;
  DeviceMemory bf16_;
  DeviceMemory f16_;
  DeviceMemory bytes_;
};

}  // namespace quire::gpu::measure
