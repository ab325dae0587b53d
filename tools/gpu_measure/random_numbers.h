// Random numbers in device memory: one piece per type is uploaded from the host, then copied on the device repeatedly.
//   For weights and caches of measurements; results computed from them mean nothing.
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

  // A weight as from `ops`.adopt(): allocated by the ops, then filled here.
  std::unique_ptr<backend::Weight> weight(backend::Ops& ops, const backend::WeightShape& shape);
  void fill_cache(backend::KvCache& cache);
  void fill_cache(backend::KvCache& cache, std::byte all_alike);
  void fill(void* to, std::size_t bytes,
            // `bytes_of_number`: 4: f32, 2: bf16, 1: any byte that is not a NaN in fp8.
            std::size_t bytes_of_number);

 private:
  void copy_piece(const DeviceMemory& piece, void* to, std::size_t bytes);

  Device& device_;
  DeviceMemory f32_;
  DeviceMemory bf16_;
  DeviceMemory f16_;
  DeviceMemory bytes_;
};

}  // namespace quire::gpu::measure
