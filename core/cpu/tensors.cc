#include "core/cpu/tensors.h"

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"

namespace quire::cpu {
namespace {

using backend::DType;

constexpr std::uint32_t kGroup = 16;

// f32 and f16: [k][16]; bf16: pairs of k in 32-bit words.
std::size_t panel_bytes_of(std::uint32_t k, DType dtype) {
  const std::size_t padded = dtype == DType::kBF16 ? (std::size_t{k} + 1) / 2 * 2 : k;
  return padded * kGroup * backend::bytes_of(dtype);
}

}  // namespace

PackedWeight::PackedWeight(std::uint32_t n, std::uint32_t k, DType dtype, bool has_bias)
    : n_(n),
      k_(k),
      dtype_(dtype),
      panel_bytes_(panel_bytes_of(k, dtype)),
      panels_(num_panels() * panel_bytes_, "a weight") {
  if (!has_bias) return;
  bias_ = Memory(std::size_t{num_panels()} * kGroup * sizeof(float), "a bias");
  std::fill_n(bias_.floats(), std::size_t{num_panels()} * kGroup, -0.0f);
}

HostVector::HostVector(std::span<const float> values)
    : size_(static_cast<std::uint32_t>(values.size())), memory_(values.size_bytes(), "a vector") {
  std::copy(values.begin(), values.end(), memory_.floats());
}

HostRope::HostRope(std::span<const float> cosines, std::span<const float> sines, std::uint32_t half)
    : positions_(0), half_(half), memory_(cosines.size_bytes() + sines.size_bytes(), "a rope table") {
  CHECK_GT(half, 0u);
  CHECK_EQ(cosines.size(), sines.size());
  CHECK_EQ(cosines.size() % half, 0u);
  positions_ = static_cast<std::uint32_t>(cosines.size() / half);
  float* out = memory_.floats();
  for (std::size_t p = 0; p < positions_; ++p, out += 2 * half) {
    std::copy_n(cosines.data() + p * half, half, out);
    std::copy_n(sines.data() + p * half, half, out + half);
  }
}

HostBuffer::HostBuffer(std::uint32_t max_rows, std::uint32_t width)
    : max_rows_(max_rows),
      width_(width),
      stride_(row_stride(width)),
      memory_(max_rows * stride_ * sizeof(float), "a row buffer") {}

}  // namespace quire::cpu
