// What this backend has kernels for: asked by whoever packs, keeps K and V, or chooses a device. The one list of it.
// Thread  any; pure.
#pragma once

#include <string>

#include "core/backend/tensors.h"

namespace quire::gpu {

constexpr bool supports(backend::WeightType /*all of them*/) { return true; }
constexpr bool supports(backend::KvType /*all of them*/) { return true; }

// "f32, bf16": those of `all` that it has kernels for.
template <typename Type, std::size_t count>
std::string names_of_supported(const Type (&all)[count]) {
  std::string names;
  for (const Type type : all) {
    if (supports(type)) names += (names.empty() ? "" : ", ") + std::string(backend::name_of(type));
  }
  return names;
}

}  // namespace quire::gpu
