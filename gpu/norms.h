// Launches of norms, and attention specs as kernels see them: RopeStore norms heads by RMS with one scale for all of
// them; every other norm of heads is a kernel before it.
// Thread  engine.
#pragma once

#include <cstdint>

#include "core/backend/attention_spec.h"
#include "gpu/kernels/batch_rows.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

NormView view_of(const backend::Norm& norm);
AttentionView view_of(const backend::AttentionSpec& spec);

// Groups of values of a row that are normed by themselves, side by side.
struct NormGroups {
  backend::Norm norm;
  std::uint32_t width;      // of a group
  std::uint32_t first = 0;  // of the first group's vectors in the norm's
  std::uint32_t count = 1;
  std::uint32_t step = 0;  // from a group's vectors to the next one's
};
// Rows of x and out are `stride` apart; out may be x.
void start_norm(Device& device, const NormGroups& groups, const float* x, std::uint32_t stride, std::uint32_t rows,
                float* out);

// Norms of the heads in qkv that RopeStore leaves out, in place. Rows are `stride` apart.
void norm_heads(Device& device, const backend::AttentionSpec& spec, float* qkv, std::uint32_t stride,
                std::uint32_t rows);

}  // namespace quire::gpu
