#include "core/backend/weights/blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/base/float_bits.h"

namespace quire::backend {
namespace {

using enum BlockScales;

// The bytes of one block.
class Block {
 public:
  explicit Block(const std::byte* bytes) : bytes_(bytes) {}

  std::uint32_t byte(std::uint32_t at) const { return std::to_integer<std::uint32_t>(bytes_[at]); }
  std::uint16_t word(std::uint32_t at) const { return static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8); }
  // Element i of 32 in 16 bytes: low halves first.
  std::uint32_t nibble(std::uint32_t at, std::uint32_t i) const { return byte(at + i % 16) >> (i / 16 * 4) & 15; }
  // Bit i of four bytes.
  std::uint32_t bit(std::uint32_t at, std::uint32_t i) const { return byte(at + i / 8) >> (i % 8) & 1; }
  // Element i of 256 in 64 bytes, and in 128: 32 neighbours have the same bits of 32 bytes.
  std::uint32_t two_bits(std::uint32_t at, std::uint32_t i) const {
    return byte(at + 32 * (i / 128) + i % 32) >> (i % 128 / 32 * 2) & 3;
  }
  std::uint32_t four_bits(std::uint32_t at, std::uint32_t i) const {
    return byte(at + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
  }

 private:
  const std::byte* bytes_;
};

// bf16 of 2^(e - 128); 2^-128 for e = 0.
std::uint16_t half_power_of_e8m0(std::uint32_t e) {
  return static_cast<std::uint16_t>(e >= 2 ? (e - 1) << 7 : 0x20u << e);
}

// f16 of half of an unsigned E4M3. As in ggml, 0x7f stands for 0 and the highest bit for nothing.
std::uint16_t half_of_ue4m3(std::uint32_t bits) {
  if (bits == 0x7f) return 0;
  std::uint32_t exponent = bits >> 3 & 15;
  std::uint32_t fraction = bits & 7;
  if (exponent == 0) {  // fraction · 2^-10
    if (fraction == 0) return 0;
    exponent = 1;
    for (; fraction < 8; fraction *= 2) --exponent;
    fraction -= 8;
  }
  return static_cast<std::uint16_t>((exponent + 7) << 10 | fraction << 7);
}

// Scales and minima of Q4_K and Q5_K: eight of each, 6 bits each, in 12 bytes.
void read_six_bits(const Block& block, std::uint32_t at, CodedBlocks& out) {
  for (std::uint32_t j = 0; j < 4; ++j) {
    const std::uint32_t scale = block.byte(at + j);
    const std::uint32_t minimum = block.byte(at + j + 4);
    const std::uint32_t low = block.byte(at + j + 8);
    out.scale_factors[j] = static_cast<std::int8_t>(scale & 63);
    out.minimum_factors[j] = static_cast<std::int8_t>(minimum & 63);
    out.scale_factors[j + 4] = static_cast<std::int8_t>((low & 15) | scale >> 6 << 4);
    out.minimum_factors[j + 4] = static_cast<std::int8_t>(low >> 4 | minimum >> 6 << 4);
  }
}

// The scales of a block of 256.
void read_integer_scales(const BlockLayout& layout, const Block& block, CodedBlocks& out) {
  using enum BlockType;
  const auto less_32 = [](std::uint32_t bits) {
    return static_cast<std::int8_t>(static_cast<std::int32_t>(bits) - 32);
  };
  if (layout.type == kQ2_K) {
    out.scales[0] = block.word(80);
    out.minima[0] = block.word(82);
    for (std::uint32_t j = 0; j < 16; ++j) {
      out.scale_factors[j] = static_cast<std::int8_t>(block.byte(j) & 15);
      out.minimum_factors[j] = static_cast<std::int8_t>(block.byte(j) >> 4);
    }
  } else if (layout.type == kQ3_K) {
    out.scales[0] = block.word(108);
    for (std::uint32_t j = 0; j < 16; ++j) {
      const std::uint32_t low = block.byte(96 + j % 8) >> (j / 8 * 4) & 15;
      out.scale_factors[j] = less_32(low | (block.byte(104 + j % 4) >> (j / 4 * 2) & 3) << 4);
    }
  } else if (layout.type == kQ6_K) {
    out.scales[0] = block.word(208);
    for (std::uint32_t j = 0; j < 16; ++j) out.scale_factors[j] = static_cast<std::int8_t>(block.byte(192 + j));
  } else if (layout.type == kIQ4_XS) {
    out.scales[0] = block.word(0);
    for (std::uint32_t j = 0; j < 8; ++j) {
      const std::uint32_t low = block.byte(4 + j / 2) >> (j % 2 * 4) & 15;
      out.scale_factors[j] = less_32(low | (block.word(2) >> (2 * j) & 3u) << 4);
    }
  } else {
    out.scales[0] = block.word(0);
    out.minima[0] = block.word(2);
    read_six_bits(block, 4, out);
  }
}

// The scales of a smaller block, of the groups from `group` on.
void read_group_scales(const BlockLayout& layout, const Block& block, std::uint32_t group, CodedBlocks& out) {
  if (layout.scales == kF32) {
    const std::uint32_t index = group * layout.group / layout.elements;
    out.wide_scales[index] = std::bit_cast<float>(block.word(0) | std::uint32_t{block.word(2)} << 16);
    if (layout.has_zeros) out.zeros[index] = static_cast<std::int8_t>(block.byte(4));
    return;
  }
  if (layout.type == BlockType::kNVFP4) {
    for (std::uint32_t j = 0; j < 4; ++j) out.scales[group + j] = half_of_ue4m3(block.byte(j));
    return;
  }
  out.scales[group] = layout.type == BlockType::kMXFP4 ? half_power_of_e8m0(block.byte(0)) : block.word(0);
  if (layout.has_minima) out.minima[group] = block.word(2);
}

// Code i of those that lie one behind the other, from the lowest bit on.
std::uint32_t code_in_order(const BlockLayout& layout, const Block& block, std::uint32_t i) {
  const std::uint32_t begin = layout.has_zeros ? 5 : 4;
  const std::uint32_t bit = i * layout.bits;
  std::uint32_t bits = block.byte(begin + bit / 8) >> (bit % 8);
  if (bit % 8 + layout.bits > 8) bits |= block.byte(begin + bit / 8 + 1) << (8 - bit % 8);
  return bits & ((1u << layout.bits) - 1);
}

std::uint32_t code(const BlockLayout& layout, const Block& block, std::uint32_t i) {
  using enum BlockType;
  switch (layout.type) {
    case kQ4_0:
    case kIQ4_NL:
      return block.nibble(2, i);
    case kQ4_1:
      return block.nibble(4, i);
    case kQ5_0:
      return block.nibble(6, i) | block.bit(2, i) << 4;
    case kQ5_1:
      return block.nibble(8, i) | block.bit(4, i) << 4;
    case kQ8_0:
      return block.byte(2 + i) ^ 128;
    case kQ2_K:
      return block.two_bits(16, i);
    case kQ3_K:
      return block.two_bits(32, i) | (block.byte(i % 32) >> (i / 32) & 1) << 2;
    case kQ4_K:
      return block.four_bits(16, i);
    case kQ5_K:
      return block.four_bits(48, i) | (block.byte(16 + i % 32) >> (i / 32) & 1) << 4;
    case kQ6_K: {
      const std::uint32_t run = i % 128 / 32;
      const std::uint32_t low = block.byte(64 * (i / 128) + i % 32 + 32 * (run % 2)) >> (run / 2 * 4) & 15;
      return low | block.two_bits(128, i) << 4;
    }
    case kIQ4_XS:
      return block.nibble(8 + 16 * (i / 32), i % 32);
    case kMXFP4:
      return block.nibble(1, i);
    case kNVFP4:
      return block.byte(4 + 8 * (i / 16) + i % 8) >> (i % 16 / 8 * 4) & 15;
    default:
      return code_in_order(layout, block, i);
  }
}

}  // namespace

std::optional<BlockType> block_type_named(std::string_view name) {
  const auto* found = std::ranges::find(kBlockLayouts, name, &BlockLayout::name);
  return found == std::end(kBlockLayouts) ? std::nullopt : std::optional(found->type);
}

std::optional<BlockType> file_type_like(BlockType grouped) {
  const BlockLayout& layout = layout_of(grouped);
  if (layout.scales != kF32 || layout.is_in_floats() || (layout.has_zeros && layout.bits == 8)) return std::nullopt;
  return layout.has_zeros ? BlockType::kQ5_0 : layout.bits == 8 ? BlockType::kQ8_0 : BlockType::kQ4_0;
}

std::optional<BlockType> with_group(BlockType like, std::uint32_t group) {
  const BlockLayout& wanted = layout_of(like);
  const auto fits = [&](const BlockLayout& one) {
    return one.scales == kF32 && one.elements == group && one.bits == wanted.bits &&
           one.has_zeros == wanted.has_zeros && one.floats.data() == wanted.floats.data();
  };
  const auto* found = std::ranges::find_if(kBlockLayouts, fits);
  return found == std::end(kBlockLayouts) ? std::nullopt : std::optional(found->type);
}

float CodedBlocks::scale(const BlockLayout& layout, std::uint32_t group) const {
  if (layout.scales == kF32) return wide_scales[group * layout.group / layout.elements];
  if (layout.scales == kIntegers) return f32_of_f16(scales[0]) * static_cast<float>(scale_factors[group]);
  return layout.scales == kBF16 ? f32_of_bf16(scales[group]) : f32_of_f16(scales[group]);
}

float CodedBlocks::minimum(const BlockLayout& layout, std::uint32_t group) const {
  if (layout.scales == kIntegers) return -(f32_of_f16(minima[0]) * static_cast<float>(minimum_factors[group]));
  return f32_of_f16(minima[group]);
}

CodedBlocks read_blocks(const BlockLayout& layout, const std::byte* source, std::uint32_t count) {
  CHECK_LE(count, CodedBlocks::kMostNumbers);
  CHECK_EQ(count % layout.elements, 0u);
  CodedBlocks out;
  for (std::uint32_t first = 0; first < count; first += layout.elements, source += layout.bytes) {
    const Block block(source);
    for (std::uint32_t i = 0; i < layout.elements; ++i) {
      out.codes[first + i] = static_cast<std::uint8_t>(code(layout, block, i));
    }
    if (layout.scales == kIntegers) {
      read_integer_scales(layout, block, out);
    } else {
      read_group_scales(layout, block, first / layout.group, out);
    }
  }
  return out;
}

void numbers_of(const BlockLayout& layout, const CodedBlocks& coded, std::span<float> out) {
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const std::uint32_t group = i / layout.group;
    const float value = layout.is_in_floats()
                            ? layout.floats[coded.codes[i]]
                            : static_cast<float>(layout.value(coded.codes[i]) - coded.zero(layout, group));
    const float product = coded.scale(layout, group) * value;
    out[i] = layout.has_minima ? product + coded.minimum(layout, group) : product;
  }
}

void widen_blocks(BlockType type, const std::byte* source, std::span<float> out) {
  const BlockLayout& layout = layout_of(type);
  for (std::size_t first = 0; first < out.size(); first += CodedBlocks::kMostNumbers) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(out.size() - first, CodedBlocks::kMostNumbers));
    numbers_of(layout, read_blocks(layout, source, count), out.subspan(first, count));
    source += count / layout.elements * layout.bytes;
  }
}

}  // namespace quire::backend
