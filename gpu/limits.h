// Which models these ops have kernels for, found out from a config before anything is packed: what is beyond would end the process in
// its first step.
//   heads of up to 512 dimensions
//   up to 128 query heads of a kv head where attention goes through the tensor cores
//   matrices of up to 4,194,240 outputs
//   no float16 weights: the tensor cores' kernels have none, and one by one a token would take ten times as long
// Thread  any; pure.
// Source  ours: the room of a block's threads (kernels/attention.h), of units (attention.h), and how high a grid of CUDA may be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/tensors.h"

namespace quire::gpu {

struct ModelShape {
  std::uint32_t hidden = 0;        // E
  std::uint32_t ffn = 0;           // F
  std::uint32_t num_heads = 0;     // H
  std::uint32_t num_kv_heads = 0;  // G
  std::uint32_t head_dim = 0;      // D
  backend::KvType kv = backend::KvType::kBF16;
  backend::WeightType weights = backend::WeightType::kBF16;  // of most of them, as they are packed
};

// What is beyond, each in the words of config.json with what it is and the limit; empty: nothing.
std::vector<std::string> beyond_limits(const ModelShape& shape);

}  // namespace quire::gpu
