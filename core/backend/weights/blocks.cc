#include "core/backend/weights/blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/base/float_bits.h"

namespace quire::backend {
namespace {

constexpr BlockLayout kLayouts[] = {
    {BlockType::kQ4_0, "Q4_0", 32, 18},     {BlockType::kQ4_1, "Q4_1", 32, 20},
    {BlockType::kQ5_0, "Q5_0", 32, 22},     {BlockType::kQ5_1, "Q5_1", 32, 24},
    {BlockType::kQ8_0, "Q8_0", 32, 34},     {BlockType::kQ2_K, "Q2_K", 256, 84},
    {BlockType::kQ3_K, "Q3_K", 256, 110},   {BlockType::kQ4_K, "Q4_K", 256, 144},
    {BlockType::kQ5_K, "Q5_K", 256, 176},   {BlockType::kQ6_K, "Q6_K", 256, 210},
    {BlockType::kIQ4_NL, "IQ4_NL", 32, 18}, {BlockType::kIQ4_XS, "IQ4_XS", 256, 136},
    {BlockType::kMXFP4, "MXFP4", 32, 17},   {BlockType::kNVFP4, "NVFP4", 64, 36},
};

constexpr std::array<std::int8_t, 16> kIq4 = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr std::array<std::int8_t, 16> kE2M1Doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The bytes of one block.
class Block {
 public:
  explicit Block(const std::byte* bytes) : bytes_(bytes) {}

  std::uint32_t byte(std::uint32_t at) const { return std::to_integer<std::uint32_t>(bytes_[at]); }
  std::int32_t code(std::uint32_t at) const { return static_cast<std::int8_t>(bytes_[at]); }
  std::uint32_t word(std::uint32_t at) const { return byte(at) | byte(at + 1) << 8; }
  float half(std::uint32_t at) const { return f32_of_f16(static_cast<std::uint16_t>(word(at))); }
  // Element i of 32 in 16 bytes: low halves first.
  std::uint32_t nibble(std::uint32_t at, std::uint32_t i) const { return byte(at + i % 16) >> (i / 16 * 4) & 15; }
  // Bit i of four bytes.
  std::uint32_t bit(std::uint32_t at, std::uint32_t i) const { return byte(at + i / 8) >> (i % 8) & 1; }

 private:
  const std::byte* bytes_;
};

float as_float(std::int64_t value) { return static_cast<float>(value); }

// Scale and minimum of 32 elements of Q4_K and Q5_K: 6 bits each, in 12 bytes.
struct ScaleAndMinimum {
  std::uint32_t scale;
  std::uint32_t minimum;
};
ScaleAndMinimum six_bits(const Block& block, std::uint32_t at, std::uint32_t j) {
  if (j < 4) return {block.byte(at + j) & 63, block.byte(at + j + 4) & 63};
  return {(block.byte(at + j + 4) & 15) | (block.byte(at + j - 4) >> 6) << 4,
          (block.byte(at + j + 4) >> 4) | (block.byte(at + j) >> 6) << 4};
}

// Two bits of Q2_K and Q3_K: 128 elements in 32 bytes, 32 of them in the same bits.
std::uint32_t two_bits(const Block& block, std::uint32_t at, std::uint32_t i) {
  return block.byte(at + 32 * (i / 128) + i % 32) >> (i % 128 / 32 * 2) & 3;
}

// 2^(e - 128); 2^-128 for e = 0.
float half_power_of_e8m0(std::uint32_t e) { return std::bit_cast<float>(e >= 2 ? (e - 1) << 23 : 0x00200000u << e); }

// Half of an unsigned E4M3. As in ggml, 0x7f stands for 0 and the highest bit for nothing.
float half_of_ue4m3(std::uint32_t bits) {
  if (bits == 0x7f) return 0.0f;
  const std::uint32_t exponent = bits >> 3 & 15;
  const std::uint32_t fraction = bits & 7;
  if (exponent == 0) return as_float(fraction) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119) << 23 | fraction << 20);
}

float q2_k(const Block& block, std::uint32_t i) {
  const std::uint32_t both = block.byte(i / 16);
  return block.half(80) * as_float(both & 15) * as_float(two_bits(block, 16, i)) - block.half(82) * as_float(both >> 4);
}

float q3_k(const Block& block, std::uint32_t i) {
  const std::uint32_t j = i / 16;
  const std::uint32_t low = block.byte(96 + j % 8) >> (j / 8 * 4) & 15;
  const std::uint32_t high = block.byte(104 + j % 4) >> (j / 4 * 2) & 3;
  const std::int32_t scale = static_cast<std::int32_t>(low | high << 4) - 32;
  const bool is_high = (block.byte(i % 32) >> (i / 32) & 1) != 0;
  const std::int32_t code = static_cast<std::int32_t>(two_bits(block, 32, i)) - (is_high ? 0 : 4);
  return block.half(108) * as_float(scale) * as_float(code);
}

float q4_k(const Block& block, std::uint32_t i) {
  const auto [scale, minimum] = six_bits(block, 4, i / 32);
  const std::uint32_t code = block.byte(16 + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
  return block.half(0) * as_float(scale) * as_float(code) - block.half(2) * as_float(minimum);
}

float q5_k(const Block& block, std::uint32_t i) {
  const auto [scale, minimum] = six_bits(block, 4, i / 32);
  const std::uint32_t low = block.byte(48 + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
  const std::uint32_t high = block.byte(16 + i % 32) >> (i / 32) & 1;
  return block.half(0) * as_float(scale) * as_float(low | high << 4) - block.half(2) * as_float(minimum);
}

float q6_k(const Block& block, std::uint32_t i) {
  const std::uint32_t part = i / 128;
  const std::uint32_t run = i % 128 / 32;
  const std::uint32_t low = block.byte(64 * part + i % 32 + 32 * (run % 2)) >> (run / 2 * 4) & 15;
  const std::uint32_t high = block.byte(128 + 32 * part + i % 32) >> (2 * run) & 3;
  return block.half(208) * as_float(block.code(192 + i / 16)) *
         as_float(static_cast<std::int32_t>(low | high << 4) - 32);
}

float iq4_xs(const Block& block, std::uint32_t i) {
  const std::uint32_t j = i / 32;
  const std::uint32_t low = block.byte(4 + j / 2) >> (j % 2 * 4) & 15;
  const std::uint32_t high = block.word(2) >> (2 * j) & 3;
  const std::int32_t scale = static_cast<std::int32_t>(low | high << 4) - 32;
  return block.half(0) * as_float(scale) * as_float(kIq4[block.nibble(8 + 16 * j, i % 32)]);
}

float nvfp4(const Block& block, std::uint32_t i) {
  const std::uint32_t group = i / 16;
  const std::uint32_t code = block.byte(4 + 8 * group + i % 8) >> (i % 16 / 8 * 4) & 15;
  return half_of_ue4m3(block.byte(group)) * as_float(kE2M1Doubled[code]);
}

float number(BlockType type, const Block& block, std::uint32_t i) {
  using enum BlockType;
  switch (type) {
    case kQ4_0:
      return block.half(0) * as_float(std::int64_t{block.nibble(2, i)} - 8);
    case kQ4_1:
      return block.half(0) * as_float(block.nibble(4, i)) + block.half(2);
    case kQ5_0:
      return block.half(0) * as_float(std::int64_t{block.nibble(6, i) | block.bit(2, i) << 4} - 16);
    case kQ5_1:
      return block.half(0) * as_float(block.nibble(8, i) | block.bit(4, i) << 4) + block.half(2);
    case kQ8_0:
      return block.half(0) * as_float(block.code(2 + i));
    case kQ2_K:
      return q2_k(block, i);
    case kQ3_K:
      return q3_k(block, i);
    case kQ4_K:
      return q4_k(block, i);
    case kQ5_K:
      return q5_k(block, i);
    case kQ6_K:
      return q6_k(block, i);
    case kIQ4_NL:
      return block.half(0) * as_float(kIq4[block.nibble(2, i)]);
    case kIQ4_XS:
      return iq4_xs(block, i);
    case kMXFP4:
      return half_power_of_e8m0(block.byte(0)) * as_float(kE2M1Doubled[block.nibble(1, i)]);
    case kNVFP4:
      return nvfp4(block, i);
  }
  CHECK(false);
  return 0.0f;
}

}  // namespace

std::span<const BlockLayout> block_layouts() { return kLayouts; }

const BlockLayout& layout_of(BlockType type) {
  const BlockLayout& layout = kLayouts[static_cast<std::size_t>(type)];
  CHECK(layout.type == type);
  return layout;
}

std::optional<BlockType> block_type_named(std::string_view name) {
  const auto* found = std::ranges::find(kLayouts, name, &BlockLayout::name);
  return found == std::end(kLayouts) ? std::nullopt : std::optional(found->type);
}

void widen_blocks(BlockType type, const std::byte* source, std::span<float> out) {
  const BlockLayout& layout = layout_of(type);
  CHECK_EQ(out.size() % layout.elements, 0u);
  for (std::size_t first = 0; first < out.size(); first += layout.elements, source += layout.bytes) {
    const Block block(source);
    for (std::uint32_t i = 0; i < layout.elements; ++i) out[first + i] = number(type, block, i);
  }
}

}  // namespace quire::backend
