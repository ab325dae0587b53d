#include "core/cpu/pack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/check.h"
#include "core/base/float_bits.h"

namespace quire::cpu {
namespace {

using backend::DType;
using backend::HostMatrix;

constexpr std::uint32_t kGroup = 16;

// Elements of k copied for all 16 outputs before the next: that part of the panel stays in the first cache. Even.
constexpr std::uint32_t kPart = 256;

// Copies a row's elements into its lane of a panel, element i to `out + i * 16`. T is the element, or for bf16 a pair of
// them, whose word order is the layout's. The source may be unaligned.
template <typename T>
void fill_lane(const std::byte* source, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i, source += sizeof(T)) std::memcpy(out + i * kGroup, source, sizeof(T));
}

// Elements [first, last) of a row; `first` is even.
void pack_part(const std::byte* row, std::size_t first, std::size_t last, DType dtype, std::uint32_t lane,
               std::byte* panel) {
  const std::byte* source = row + first * backend::bytes_of(dtype);
  const std::size_t count = last - first;
  if (dtype == DType::kF32) {
    fill_lane(source, count, reinterpret_cast<std::uint32_t*>(panel) + first * kGroup + lane);
  } else if (dtype == DType::kF16) {
    fill_lane(source, count, reinterpret_cast<std::uint16_t*>(panel) + first * kGroup + lane);
  } else {
    auto* words = reinterpret_cast<std::uint32_t*>(panel) + first / 2 * kGroup + lane;
    fill_lane(source, count / 2, words);
    if (count % 2 != 0) std::memcpy(words + count / 2 * kGroup, source + (count - 1) * 2, 2);  // the high half stays 0
  }
}

// Finds the rows of the concatenated matrices.
struct Rows {
  std::span<const HostMatrix> matrices;
  std::size_t row_bytes;

  const std::byte* row(std::uint32_t output) const {
    std::size_t matrix = 0;
    while (output >= matrices[matrix].n) output -= matrices[matrix++].n;
    return static_cast<const std::byte*>(matrices[matrix].data) + output * row_bytes;
  }
};

}  // namespace

std::unique_ptr<PackedWeight> pack_weight(std::span<const HostMatrix> matrices,
                                          std::span<const std::span<const float>> biases, Team& team) {
  CHECK(!matrices.empty());
  CHECK(biases.empty() || biases.size() == matrices.size());
  const std::uint32_t k = matrices.front().k;
  const DType dtype = matrices.front().dtype;
  CHECK_GT(k, 0u);
  std::uint32_t n = 0;
  bool has_bias = false;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    CHECK_EQ(matrices[i].k, k);
    CHECK(matrices[i].dtype == dtype);
    CHECK_GT(matrices[i].n, 0u);
    n += matrices[i].n;
    if (!biases.empty() && !biases[i].empty()) {
      CHECK_EQ(biases[i].size(), matrices[i].n);
      has_bias = true;
    }
  }

  auto weight = std::make_unique<PackedWeight>(n, k, dtype, has_bias);
  std::uint32_t next = 0;
  for (std::size_t i = 0; has_bias && i < matrices.size(); next += matrices[i].n, ++i) {
    std::copy(biases[i].begin(), biases[i].end(), weight->bias() + next);
  }

  const Rows rows{matrices, std::size_t{k} * backend::bytes_of(dtype)};
  team.for_chunks(weight->num_panels(), [&](std::uint32_t panel, std::uint32_t) {
    const std::uint32_t lanes = std::min(kGroup, n - panel * kGroup);
    const std::byte* sources[kGroup];
    for (std::uint32_t lane = 0; lane < lanes; ++lane) sources[lane] = rows.row(panel * kGroup + lane);
    for (std::uint32_t first = 0; first < k; first += kPart) {
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        pack_part(sources[lane], first, std::min(k, first + kPart), dtype, lane, weight->panel(panel));
      }
    }
  });
  return weight;
}

void unpack_row(const PackedWeight& w, std::uint32_t row, float* out) {
  const std::byte* panel = w.panel(row / kGroup);
  const std::uint32_t lane = row % kGroup;
  if (w.dtype() == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(panel) + lane;
    for (std::size_t i = 0; i < w.k(); ++i) out[i] = values[i * kGroup];
  } else if (w.dtype() == DType::kF16) {
    const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + lane;
    for (std::size_t i = 0; i < w.k(); ++i) out[i] = f32_of_f16(values[i * kGroup]);
  } else {
    const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + 2 * lane;
    for (std::size_t i = 0; i < w.k(); ++i) out[i] = f32_of_bf16(values[i / 2 * 2 * kGroup + i % 2]);
  }
}

}  // namespace quire::cpu
