// Block-quantised matrices of random bytes, and products with them written out plainly after the equations of
// core/backend/step_ops.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/backend/weights/blocks.h"
#include "core/cpu/blocks/block_panels.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"

namespace quire::cpu::test {

using backend::BlockLayout;
using backend::BlockType;
using Activation = backend::Format::Activation;

// The forms of input that a type is multiplied by.
inline std::vector<Activation> activations_of(const BlockLayout& layout) {
  if (layout.is_in_floats()) return {Activation::kF32};
  return {Activation::kF32, Activation::kInt8};
}

// Where a block's f16 lie; of kF32, its scale.
inline std::vector<std::uint32_t> halves_of(const BlockLayout& layout) {
  switch (layout.type) {
    case BlockType::kQ2_K:
      return {80, 82};
    case BlockType::kQ3_K:
      return {108};
    case BlockType::kQ6_K:
      return {208};
    case BlockType::kMXFP4:
    case BlockType::kNVFP4:
      return {};
    default:
      return layout.has_minima ? std::vector<std::uint32_t>{0, 2} : std::vector<std::uint32_t>{0};
  }
}

inline void put_scale(const BlockLayout& layout, std::uint8_t* at, float scale) {
  if (layout.scales == backend::BlockScales::kF32) {
    std::memcpy(at, &scale, sizeof(scale));
  } else {
    const std::uint16_t half = std::isnan(scale) ? 0x7e00 : f16_of_f32(scale);
    std::memcpy(at, &half, sizeof(half));
  }
}

// Any codes but those of NaN; scales of either sign, up to `size`.
inline Matrix random_blocks(Random& random, const BlockLayout& layout, std::uint32_t n, std::uint32_t k,
                            float size = 0.01f) {
  Matrix out{n, k, Format::of_blocks(layout.type), {}, std::vector<float>(std::size_t{n} * k)};
  const std::size_t count = out.values.size() / layout.elements;
  out.bits.resize(count * layout.bytes);
  for (std::uint8_t& byte : out.bits) byte = static_cast<std::uint8_t>(random.below(256));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint8_t* block = out.bits.data() + i * layout.bytes;
    for (std::uint32_t at = 0; layout.floats.size() == 256 && at < layout.bytes; ++at) {
      if ((block[at] & 0x7f) == 0x7f) block[at] ^= 1;
    }
    for (const std::uint32_t at : halves_of(layout)) put_scale(layout, block + at, random.uniform(size));
    if (layout.type == BlockType::kMXFP4) block[0] = static_cast<std::uint8_t>(100 + random.below(27));
    for (int j = 0; layout.type == BlockType::kNVFP4 && j < 4; ++j) block[j] &= 0x7f;
  }
  backend::widen_blocks(layout.type, reinterpret_cast<const std::byte*>(out.bits.data()), out.values);
  return out;
}

// Sets every byte but the scales' floats.
inline void fill_codes(Matrix& w, const BlockLayout& layout, std::uint8_t byte) {
  for (std::size_t at = 0; at < w.bits.size(); at += layout.bytes) {
    std::uint8_t* block = w.bits.data() + at;
    std::vector<std::uint8_t> all(layout.bytes, byte);
    const std::size_t size = layout.scales == backend::BlockScales::kF32 ? 4 : 2;
    for (const std::uint32_t half : halves_of(layout)) std::memcpy(all.data() + half, block + half, size);
    if (layout.type == BlockType::kMXFP4) all[0] = block[0];
    if (layout.type == BlockType::kNVFP4) std::memcpy(all.data(), block, 4);
    std::memcpy(block, all.data(), all.size());
  }
  backend::widen_blocks(layout.type, reinterpret_cast<const std::byte*>(w.bits.data()), w.values);
}

// Of one output, in integers. by_slices: the inputs of every 256 have a sum of their own, and these are added.
inline float plain_dot_of_blocks(const PlainRow& x, const Matrix& w, const BlockLayout& layout, std::size_t n,
                                 bool by_slices = false) {
  const std::byte* row = reinterpret_cast<const std::byte*>(w.bits.data()) +
                         n * backend::stored_bytes(Format::of_blocks(layout.type), w.k);
  float total = 0.0f;
  float sum = 0.0f;
  for (std::uint32_t first = 0; first < w.k; first += 256) {
    if (by_slices) {
      total += sum;
      sum = 0.0f;
    }
    const std::uint32_t count = std::min(256u, w.k - first);
    const backend::CodedBlocks coded =
        backend::read_blocks(layout, row + backend::stored_bytes(Format::of_blocks(layout.type), first), count);
    for (std::uint32_t group = 0; group < count / layout.group; ++group) {
      std::int64_t dot = 0;
      std::int64_t codes = 0;
      for (std::uint32_t i = group * layout.group; i < (group + 1) * layout.group; ++i) {
        dot += x.codes[first + i] * (layout.value(coded.codes[i]) - coded.zero(layout, group));
        codes += x.codes[first + i];
      }
      const float scale = x.scales[(first + group * layout.group) / 32];
      sum = std::fma(static_cast<float>(dot) * scale, coded.scale(layout, group), sum);
      if (layout.has_minima) sum = std::fma(static_cast<float>(codes) * scale, coded.minimum(layout, group), sum);
    }
  }
  return total + sum;
}

inline std::vector<float> plain_linear_of_blocks(const std::vector<float>& x, const Matrix& w,
                                                 const BlockLayout& layout, Activation activation, std::uint32_t rows,
                                                 std::span<const float> bias = {}, bool by_slices = false) {
  std::vector<float> out;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = std::span(x).subspan(r * w.k, w.k);
    const PlainRow in_integers = quantised_row(row, 32);
    for (std::size_t n = 0; n < w.n; ++n) {
      float sum = 0.0f;
      if (activation == Activation::kInt8) {
        sum = plain_dot_of_blocks(in_integers, w, layout, n, by_slices);
      } else {
        for (std::size_t k = 0; k < w.k; ++k) sum = std::fma(row[k], w.values[n * w.k + k], sum);
      }
      out.push_back(bias.empty() ? sum : sum + bias[n]);
    }
  }
  return out;
}

inline std::string text_of(const BlockLayout& layout, Activation activation) {
  return backend::name_of(Format::of_blocks(layout.type, activation));
}

}  // namespace quire::cpu::test
