// Limits of the GPU kernels, checked against a model's config before anything is packed. A model beyond them would end
// the process in its first step.
//   heads of up to 512 dimensions
//   up to 128 query heads per kv head if attention uses the tensor cores
//   matrices of up to 4,194,240 outputs
//   mixtures of up to 512 experts, of which a row has up to 32, in up to 64 groups
//   no latent attention: there are no kernels for it yet
//   no float16 weights: the tensor-core kernels do not take them, and without tensor cores a token would take ten times
//   as long
// Thread  any; pure.
// Source  ours: the threads of a block (kernels/attention.h), the room for units (attention.h), and CUDA's limit of
//         gridDim.y.
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
  backend::Format weights = backend::Format::kBF16;  // type of most weights, after packing
  std::uint32_t num_experts = 0;                     // of a layer; 0: it is dense
  std::uint32_t top_experts = 0;                     // of a row
  std::uint32_t num_expert_groups = 1;
  bool has_latent = false;  // K and V are one row (KvLayer::latent)
};

// One text per exceeded limit: the field of config.json, its value and the limit. Empty: the model is supported.
std::vector<std::string> beyond_limits(const ModelShape& shape);

}  // namespace quire::gpu
