// Packing of a checkpoint's weights into the layout of the GPU kernels (gpu/device/weight_layout.h), in host memory.
// Thread  any; pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/backend/tensors.h"

namespace quire::gpu {

struct Packed {
  backend::WeightShape shape;
  std::vector<std::byte> bytes;
};

Packed pack(std::span<const backend::HostMatrix> matrices, std::span<const std::span<const float>> biases,
            std::optional<backend::Format> quantize);

}  // namespace quire::gpu
