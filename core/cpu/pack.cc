#include "core/cpu/pack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/backend/quantize.h"
#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {
namespace {

using backend::DType;
using backend::HostMatrix;
using backend::int4_codes;
using backend::int4_scale;
using backend::output_codes;
using backend::output_scale;
using backend::Quantize;
using backend::WeightType;
using backend::widen;

// Elements of k copied for all 16 outputs before the next: that part of the panel stays in the first cache.
constexpr std::uint32_t kPart = 256;
static_assert(kPart % (2 * kInt4Group) == 0);

// Copies a row's elements into its lane of a panel, element i to `out + i * 16`. T is the element, or for bf16 a pair of
// them, whose word order is the layout's. The source may be unaligned.
template <typename T>
void fill_lane(const std::byte* source, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i, source += sizeof(T)) std::memcpy(out + i * kLanes, source, sizeof(T));
}

// Elements [first, last) of a row; `first` is even.
void pack_part(const std::byte* row, std::size_t first, std::size_t last, DType dtype, std::uint32_t lane,
               std::byte* panel) {
  const std::byte* source = row + first * backend::bytes_of(dtype);
  const std::size_t count = last - first;
  if (dtype == DType::kF32) {
    fill_lane(source, count, reinterpret_cast<std::uint32_t*>(panel) + first * kLanes + lane);
  } else if (dtype == DType::kF16) {
    fill_lane(source, count, reinterpret_cast<std::uint16_t*>(panel) + first * kLanes + lane);
  } else {
    auto* words = reinterpret_cast<std::uint32_t*>(panel) + first / 2 * kLanes + lane;
    fill_lane(source, count / 2, words);
    if (count % 2 != 0) std::memcpy(words + count / 2 * kLanes, source + (count - 1) * 2, 2);  // the high half stays 0
  }
}

// The 64 inputs of int4 that share a line of scales, and the line.
constexpr std::size_t kInt4Inputs = 2 * kInt4Group;
constexpr std::size_t kInt4Words = kLanes + kInt4Inputs / 8 * kLanes;  // 32-bit

// Where input i of an output lies in a panel of bf16, behind the output's first.
std::size_t bf16_at(std::size_t i) { return i / 2 * 2 * kLanes + i % 2; }

// Where input i of an output lies in a panel of int8 or fp8 or, four of them in a word, of w8a8.
std::size_t byte_at(std::size_t i, std::uint32_t lane, WeightType type) {
  return type == WeightType::kW8A8 ? (i / 4 * kLanes + lane) * 4 + i % 4 : i * kLanes + lane;
}

// Elements [first, first + w.size()) of an output's lane.
void pack_bytes(std::span<const float> w, std::size_t first, float scale, std::uint32_t lane, WeightType type,
                std::byte* panel) {
  std::byte codes[kPart];
  output_codes(type, w, scale, codes);
  for (std::size_t i = 0; i < w.size(); ++i) panel[byte_at(first + i, lane, type)] = codes[i];
}

void pack_bf16(std::span<const float> w, std::size_t first, std::uint32_t lane, std::byte* panel) {
  auto* halves = reinterpret_cast<std::uint16_t*>(panel) + 2 * lane;
  for (std::size_t i = 0; i < w.size(); ++i) halves[bf16_at(first + i)] = bf16_of_f32(w[i]);
}

void pack_int4(std::span<const float> w, std::size_t first, std::uint32_t lane, std::byte* panel) {
  for (std::size_t start = 0; start < w.size(); start += kInt4Group) {
    const std::span<const float> group = w.subspan(start, std::min<std::size_t>(kInt4Group, w.size() - start));
    const std::size_t k = first + start;
    auto* line = reinterpret_cast<std::uint32_t*>(panel) + k / kInt4Inputs * kInt4Words + lane;
    const std::uint32_t half = k % kInt4Inputs / kInt4Group;
    const std::uint16_t scale = int4_scale(group);
    *line |= std::uint32_t{scale} << 16 * half;  // the panel was zeroed
    std::int8_t codes[kInt4Group];
    int4_codes(group, scale, codes);
    std::uint32_t* words = line + (1 + half * kInt4Group / 8) * kLanes;
    for (std::size_t i = 0; i < group.size(); ++i) {
      words[i / 8 * kLanes] |= static_cast<std::uint32_t>(codes[i] & 15) << kInt4Shift[i % 8];
    }
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
                                          std::span<const std::span<const float>> biases, Quantize quantize,
                                          Team& team) {
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

  const WeightType type = backend::weight_type(dtype, quantize);
  auto weight = std::make_unique<PackedWeight>(backend::WeightShape{n, k, type, has_bias});
  std::uint32_t next = 0;
  for (std::size_t i = 0; has_bias && i < matrices.size(); next += matrices[i].n, ++i) {
    std::copy(biases[i].begin(), biases[i].end(), weight->bias() + next);
  }

  const Rows rows{matrices, std::size_t{k} * backend::bytes_of(dtype)};
  set_float_mode();  // as the team's threads have it
  team.for_chunks(weight->num_panels(), [&](std::uint32_t panel, std::uint32_t) {
    const std::uint32_t lanes = std::min(kLanes, n - panel * kLanes);
    float* scales = weight->scales() == nullptr ? nullptr : weight->scales() + panel * kLanes;
    const std::byte* sources[kLanes];
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      sources[lane] = rows.row(panel * kLanes + lane);
      if (scales != nullptr) scales[lane] = output_scale(type, sources[lane], dtype, k);
    }
    for (std::uint32_t first = 0; first < k; first += kPart) {
      const std::uint32_t last = std::min(k, first + kPart);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        if (quantize == Quantize::kNone) {
          pack_part(sources[lane], first, last, dtype, lane, weight->panel(panel));
          continue;
        }
        float part[kPart];
        const std::span<float> w(part, last - first);
        widen(sources[lane] + first * backend::bytes_of(dtype), dtype, w);
        if (type == WeightType::kW16A16) {
          pack_bf16(w, first, lane, weight->panel(panel));
        } else if (scales != nullptr) {
          pack_bytes(w, first, scales[lane], lane, type, weight->panel(panel));
        } else {
          pack_int4(w, first, lane, weight->panel(panel));
        }
      }
    }
  });
  return weight;
}

void unpack_row(const PackedWeight& w, std::uint32_t row, float* out) {
  const std::byte* panel = w.panel(row / kLanes);
  const std::uint32_t lane = row % kLanes;
  switch (w.type()) {
    case WeightType::kF32: {
      const auto* values = reinterpret_cast<const float*>(panel) + lane;
      for (std::size_t i = 0; i < w.k(); ++i) out[i] = values[i * kLanes];
      return;
    }
    case WeightType::kBF16:
    case WeightType::kW16A16: {
      const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + 2 * lane;
      for (std::size_t i = 0; i < w.k(); ++i) out[i] = f32_of_bf16(values[bf16_at(i)]);
      return;
    }
    case WeightType::kF16: {
      const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + lane;
      for (std::size_t i = 0; i < w.k(); ++i) out[i] = f32_of_f16(values[i * kLanes]);
      return;
    }
    case WeightType::kInt8:
    case WeightType::kW8A8: {
      const auto* codes = reinterpret_cast<const std::int8_t*>(panel);
      const float scale = w.scales()[row];
      for (std::size_t i = 0; i < w.k(); ++i) out[i] = static_cast<float>(codes[byte_at(i, lane, w.type())]) * scale;
      return;
    }
    case WeightType::kFp8: {
      const auto* codes = reinterpret_cast<const std::uint8_t*>(panel);
      const float scale = w.scales()[row];
      for (std::size_t i = 0; i < w.k(); ++i) out[i] = f32_of_fp8(codes[byte_at(i, lane, w.type())]) * scale;
      return;
    }
    case WeightType::kInt4:
    case WeightType::kW4A8: {
      const auto* words = reinterpret_cast<const std::uint32_t*>(panel) + lane;
      for (std::size_t i = 0; i < w.k(); ++i) {
        const std::uint32_t* line = words + i / kInt4Inputs * kInt4Words;
        const std::size_t at = i % kInt4Inputs;
        const std::uint32_t nibble = line[(1 + at / 8) * kLanes] << (28 - kInt4Shift[at % 8]);
        const auto scale = static_cast<std::uint16_t>(line[0] >> 16 * (at / kInt4Group));
        out[i] = static_cast<float>(static_cast<std::int32_t>(nibble) >> 28) * f32_of_bf16(scale);
      }
      return;
    }
  }
}

}  // namespace quire::cpu
