#include "core/cpu/tensors.h"

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {
namespace {

using backend::WeightType;

// The layouts of isa/kernels.h.
std::size_t panel_bytes_of(std::uint32_t k, WeightType type) {
  const auto padded = [&](std::size_t step) { return (k + step - 1) / step * step * kLanes; };
  switch (type) {
    case WeightType::kF32:
      return padded(1) * 4;
    case WeightType::kBF16:
    case WeightType::kW16A16:
      return padded(2) * 2;
    case WeightType::kF16:
      return padded(1) * 2;
    case WeightType::kInt8:
    case WeightType::kW8A8:
    case WeightType::kFp8:
      return padded(4);
    case WeightType::kInt4:
    case WeightType::kW4A8:
      return padded(8) / 2 + padded(2 * kInt4Group) / (2 * kInt4Group) * sizeof(std::uint32_t);
  }
  return 0;
}

std::size_t num_panels_of(std::uint32_t n) { return (std::size_t{n} + kLanes - 1) / kLanes; }

std::size_t scale_bytes_of(std::uint32_t n, WeightType type) {
  return backend::has_output_scales(type) ? num_panels_of(n) * kLanes * sizeof(float) : 0;
}

}  // namespace

std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, WeightType type) {
  return num_panels_of(n) * panel_bytes_of(k, type) + scale_bytes_of(n, type);
}

std::size_t packed_bytes(const backend::WeightShape& shape) {
  return weight_bytes(shape.n, shape.k, shape.type) +
         (shape.has_bias ? num_panels_of(shape.n) * kLanes * sizeof(float) : 0);
}

PackedWeight::PackedWeight(const backend::WeightShape& shape, std::span<const std::byte> packed,
                           std::shared_ptr<const void> owner)
    : shape_(shape),
      panel_bytes_(panel_bytes_of(shape.k, shape.type)),
      scales_at_(num_panels_of(shape.n) * panel_bytes_),
      bias_at_(weight_bytes(shape.n, shape.k, shape.type)),
      owner_(std::move(owner)),
      packed_(packed) {
  CHECK_EQ(packed.size(), packed_bytes(shape));
}

PackedWeight::PackedWeight(const backend::WeightShape& shape)
    : shape_(shape),
      panel_bytes_(panel_bytes_of(shape.k, shape.type)),
      scales_at_(num_panels_of(shape.n) * panel_bytes_),
      bias_at_(weight_bytes(shape.n, shape.k, shape.type)),
      memory_(packed_bytes(shape), "a weight"),
      packed_(memory_.data(), memory_.bytes()) {
  if (shape.has_bias) std::fill_n(bias(), std::size_t{num_panels()} * kLanes, -0.0f);
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
