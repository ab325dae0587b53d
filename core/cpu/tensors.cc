#include "core/cpu/tensors.h"

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

std::size_t num_panels_of(std::uint32_t n) { return (std::size_t{n} + kLanes - 1) / kLanes; }

std::size_t scale_bytes_of(std::uint32_t n, backend::Format format) {
  return backend::has_output_scales(format) ? num_panels_of(n) * kLanes * sizeof(float) : 0;
}

std::size_t columns_at(const backend::WeightShape& shape) {
  return weight_bytes(shape.n, shape.k, shape.format) +
         (shape.has_bias ? num_panels_of(shape.n) * kLanes * sizeof(float) : 0);
}

}  // namespace

std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format format) {
  return num_panels_of(n) * kernels_of(format).panel_bytes(k) + scale_bytes_of(n, format);
}

std::size_t packed_bytes(const backend::WeightShape& shape) {
  return columns_at(shape) + (shape.has_columns ? shape.k * sizeof(std::uint32_t) : 0);
}

PackedWeight::PackedWeight(const backend::WeightShape& shape, std::span<const std::byte> packed,
                           std::shared_ptr<const void> owner)
    : shape_(shape),
      kernels_(kernels_of(shape.format)),
      panel_bytes_(kernels_.panel_bytes(shape.k)),
      scales_at_(num_panels_of(shape.n) * panel_bytes_),
      bias_at_(weight_bytes(shape.n, shape.k, shape.format)),
      columns_at_(columns_at(shape)),
      owner_(std::move(owner)),
      packed_(packed) {
  CHECK_EQ(packed.size(), packed_bytes(shape));
}

PackedWeight::PackedWeight(const backend::WeightShape& shape)
    : shape_(shape),
      kernels_(kernels_of(shape.format)),
      panel_bytes_(kernels_.panel_bytes(shape.k)),
      scales_at_(num_panels_of(shape.n) * panel_bytes_),
      bias_at_(weight_bytes(shape.n, shape.k, shape.format)),
      columns_at_(columns_at(shape)),
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
