// Block-quantised rows: their codes and scales, and their numbers in f32. Types with a name of ggml are stored as GGUF
// does; those with /g in their names are the form that quantised safetensors are brought into (core/model/source).
//   number = s · v + m   s and, if the type has minima, m: of the number's group; v: the code less a zero, or a value
//                        that a table has for it
// Shape   a row is whole blocks of `elements` numbers in `bytes` bytes, which may be unaligned. A block of a /g type: s
//         as f32, then, if the type has zeros, the group's zero as int8, then the codes, from the lowest bit on.
// Thread  any; pure.
// Equals  the reference dequantisation of gguf 0.19, bit for bit: s, m and s · v are exact, so that only types with
//         minima round, once, when m is added. /g types: s · v rounds once, and is exact if s has the bits of an f16
//         or bf16 and v is an integer.
// Source  the block layouts of ggml; OCP Microscaling Formats 1.0 for E2M1, E8M0 and E4M3; the tables of bitsandbytes
//         for NF4 (Dettmers et al. 2023) and FP4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/float_bits.h"

namespace quire::backend {

enum class BlockType : std::uint8_t {
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kNVFP4,  // without the factor that such a matrix has besides (has_own_factor())
  // Integers in groups of 32, 64 or 128 inputs, with one zero for all, or (kUint) with a zero for each group.
  kInt2G32,
  kInt2G64,
  kInt2G128,
  kInt3G32,
  kInt3G64,
  kInt3G128,
  kInt4G32,
  kInt4G64,
  kInt4G128,
  kInt8G32,
  kInt8G64,
  kInt8G128,
  kUint4G32,
  kUint4G64,
  kUint4G128,
  kUint8G32,
  kUint8G64,
  kUint8G128,
  // Codes that stand for f32: they are not multiplied in integers.
  kFp8G32,  // e4m3fn
  kFp8G64,
  kFp8G128,
  kNf4G32,
  kNf4G64,
  kFp4G32,
  kFp4G64,
};

// Storage of s and m.
enum class BlockScales : std::uint8_t {
  kF16,       // one of each for a group
  kBF16,      // likewise
  kIntegers,  // an integer for a group, times an f16 of all 256 numbers; m = -(f16 · integer)
  kF32,       // one of s for a block
};

struct BlockLayout {
  BlockType type;
  std::string_view name;  // "Q4_K"
  std::uint32_t elements;
  std::uint32_t bytes;
  std::uint32_t bits;   // of a code
  std::uint32_t group;  // numbers that are summed before they are scaled, 16 or 32; they share s and m
  BlockScales scales;
  bool has_minima;
  std::int32_t zero;                         // v = code - zero, less the group's if the type has zeros
  std::span<const std::int8_t> values = {};  // or v = values[code]
  std::span<const float> floats = {};        // or v = floats[code]
  bool has_zeros = false;

  constexpr bool is_in_floats() const { return !floats.empty(); }
  constexpr std::uint32_t scale_group() const { return scales == BlockScales::kF32 ? elements : group; }
  // Of a type in integers, without its group's zero.
  std::int32_t value(std::uint32_t code) const {
    return values.empty() ? static_cast<std::int32_t>(code) - zero : values[code];
  }
};

// A code's bits lie in two planes on every device: these lowest ones, and the others, if there are any.
constexpr std::uint32_t low_plane_bits(std::uint32_t bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

inline constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::array<std::int8_t, 16> kE2M1Doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline constexpr std::array<float, 256> kE4M3Values = [] {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code) values[code] = f32_of_fp8(static_cast<std::uint8_t>(code));
  return values;
}();
inline constexpr std::array<float, 16> kNf4Values = {-1.0f,
                                                     -0.6961928009986877f,
                                                     -0.5250730514526367f,
                                                     -0.39491748809814453f,
                                                     -0.28444138169288635f,
                                                     -0.18477343022823334f,
                                                     -0.09105003625154495f,
                                                     0.0f,
                                                     0.07958029955625534f,
                                                     0.16093020141124725f,
                                                     0.24611230194568634f,
                                                     0.33791524171829224f,
                                                     0.44070982933044434f,
                                                     0.5626170039176941f,
                                                     0.7229568362236023f,
                                                     1.0f};
inline constexpr std::array<float, 16> kFp4Values = {
    0.0f, 0.0625f / 12,  8.0f / 12,  1.0f,  4.0f / 12,  0.5f,  2.0f / 12,  0.25f,
    0.0f, -0.0625f / 12, -8.0f / 12, -1.0f, -4.0f / 12, -0.5f, -2.0f / 12, -0.25f};

constexpr BlockLayout grouped_ints(BlockType type, std::string_view name, std::uint32_t group, std::uint32_t bits) {
  return {type,  name,           group, 4 + group * bits / 8, bits, bits < 4 ? 16u : 32u, BlockScales::kF32,
          false, 1 << (bits - 1)};
}
constexpr BlockLayout grouped_uints(BlockType type, std::string_view name, std::uint32_t group, std::uint32_t bits) {
  BlockLayout layout = grouped_ints(type, name, group, bits);
  ++layout.bytes;
  layout.has_zeros = true;
  return layout;
}
constexpr BlockLayout grouped_floats(BlockType type, std::string_view name, std::uint32_t group,
                                     std::span<const float> floats) {
  BlockLayout layout = grouped_ints(type, name, group, floats.size() == 256 ? 8 : 4);
  layout.floats = floats;
  return layout;
}

inline constexpr BlockLayout kBlockLayouts[] = {
    {BlockType::kQ4_0, "Q4_0", 32, 18, 4, 32, BlockScales::kF16, false, 8},
    {BlockType::kQ4_1, "Q4_1", 32, 20, 4, 32, BlockScales::kF16, true, 0},
    {BlockType::kQ5_0, "Q5_0", 32, 22, 5, 32, BlockScales::kF16, false, 16},
    {BlockType::kQ5_1, "Q5_1", 32, 24, 5, 32, BlockScales::kF16, true, 0},
    {BlockType::kQ8_0, "Q8_0", 32, 34, 8, 32, BlockScales::kF16, false, 128},
    {BlockType::kQ2_K, "Q2_K", 256, 84, 2, 16, BlockScales::kIntegers, true, 0},
    {BlockType::kQ3_K, "Q3_K", 256, 110, 3, 16, BlockScales::kIntegers, false, 4},
    {BlockType::kQ4_K, "Q4_K", 256, 144, 4, 32, BlockScales::kIntegers, true, 0},
    {BlockType::kQ5_K, "Q5_K", 256, 176, 5, 32, BlockScales::kIntegers, true, 0},
    {BlockType::kQ6_K, "Q6_K", 256, 210, 6, 16, BlockScales::kIntegers, false, 32},
    {BlockType::kIQ4_NL, "IQ4_NL", 32, 18, 4, 32, BlockScales::kF16, false, 0, kIq4Values},
    {BlockType::kIQ4_XS, "IQ4_XS", 256, 136, 4, 32, BlockScales::kIntegers, false, 0, kIq4Values},
    {BlockType::kMXFP4, "MXFP4", 32, 17, 4, 32, BlockScales::kBF16, false, 0, kE2M1Doubled},
    {BlockType::kNVFP4, "NVFP4", 64, 36, 4, 16, BlockScales::kF16, false, 0, kE2M1Doubled},
    grouped_ints(BlockType::kInt2G32, "int2/g32", 32, 2),
    grouped_ints(BlockType::kInt2G64, "int2/g64", 64, 2),
    grouped_ints(BlockType::kInt2G128, "int2/g128", 128, 2),
    grouped_ints(BlockType::kInt3G32, "int3/g32", 32, 3),
    grouped_ints(BlockType::kInt3G64, "int3/g64", 64, 3),
    grouped_ints(BlockType::kInt3G128, "int3/g128", 128, 3),
    grouped_ints(BlockType::kInt4G32, "int4/g32", 32, 4),
    grouped_ints(BlockType::kInt4G64, "int4/g64", 64, 4),
    grouped_ints(BlockType::kInt4G128, "int4/g128", 128, 4),
    grouped_ints(BlockType::kInt8G32, "int8/g32", 32, 8),
    grouped_ints(BlockType::kInt8G64, "int8/g64", 64, 8),
    grouped_ints(BlockType::kInt8G128, "int8/g128", 128, 8),
    grouped_uints(BlockType::kUint4G32, "uint4/g32", 32, 4),
    grouped_uints(BlockType::kUint4G64, "uint4/g64", 64, 4),
    grouped_uints(BlockType::kUint4G128, "uint4/g128", 128, 4),
    grouped_uints(BlockType::kUint8G32, "uint8/g32", 32, 8),
    grouped_uints(BlockType::kUint8G64, "uint8/g64", 64, 8),
    grouped_uints(BlockType::kUint8G128, "uint8/g128", 128, 8),
    grouped_floats(BlockType::kFp8G32, "fp8/g32", 32, kE4M3Values),
    grouped_floats(BlockType::kFp8G64, "fp8/g64", 64, kE4M3Values),
    grouped_floats(BlockType::kFp8G128, "fp8/g128", 128, kE4M3Values),
    grouped_floats(BlockType::kNf4G32, "nf4/g32", 32, kNf4Values),
    grouped_floats(BlockType::kNf4G64, "nf4/g64", 64, kNf4Values),
    grouped_floats(BlockType::kFp4G32, "fp4/g32", 32, kFp4Values),
    grouped_floats(BlockType::kFp4G64, "fp4/g64", 64, kFp4Values),
};

constexpr std::span<const BlockLayout> block_layouts() { return kBlockLayouts; }
// The types that GGUF files store.
constexpr std::span<const BlockLayout> block_layouts_of_files() {
  return block_layouts().first(static_cast<std::size_t>(BlockType::kInt2G32));
}
constexpr const BlockLayout& layout_of(BlockType type) { return kBlockLayouts[static_cast<std::size_t>(type)]; }
static_assert([] {
  for (const BlockLayout& layout : kBlockLayouts) {
    if (layout_of(layout.type).type != layout.type) return false;
  }
  return true;
}());
std::optional<BlockType> block_type_named(std::string_view name);

// The type of a file that can hold the same numbers as a /g type of integers, if its scales are f16s: Q4_0 has 4 bits
// less 8, Q5_0 5 bits less 16, Q8_0 8 bits, all a scale for each 32 numbers. Nothing: there is none.
std::optional<BlockType> file_type_like(BlockType grouped);

// The type of such codes in groups of 32, 64 or 128 with the same zeros and values as `like`; nothing: there is none.
std::optional<BlockType> with_group(BlockType like, std::uint32_t group);

// Codes and scales of at most 256 numbers of a row.
struct CodedBlocks {
  static constexpr std::uint32_t kMostNumbers = 256;
  static constexpr std::uint32_t kMostGroups = kMostNumbers / 16;
  static constexpr std::uint32_t kMostScales = kMostNumbers / 32;  // of kF32

  std::array<std::uint8_t, kMostNumbers> codes{};
  // Bits of s and m of each group; of kIntegers, [0] has the f16 of all.
  std::array<std::uint16_t, kMostGroups> scales{};
  std::array<std::uint16_t, kMostGroups> minima{};
  std::array<std::int8_t, kMostGroups> scale_factors{};    // of kIntegers
  std::array<std::int8_t, kMostGroups> minimum_factors{};  // likewise
  std::array<float, kMostScales> wide_scales{};            // of kF32, of each scale_group()
  std::array<std::int8_t, kMostScales> zeros{};            // likewise, of types that have them

  float scale(const BlockLayout& layout, std::uint32_t group) const;
  float minimum(const BlockLayout& layout, std::uint32_t group) const;  // of a type that has them
  std::int32_t zero(const BlockLayout& layout, std::uint32_t group) const {
    return layout.has_zeros ? zeros[group * layout.group / layout.elements] : 0;
  }
};

// Reads the first `count` numbers of whole blocks: a multiple of `elements`, at most 256.
CodedBlocks read_blocks(const BlockLayout& layout, const std::byte* source, std::uint32_t count);

// The first out.size() of the codes' numbers.
void numbers_of(const BlockLayout& layout, const CodedBlocks& coded, std::span<float> out);

// `out` has a multiple of the block's elements.
void widen_blocks(BlockType type, const std::byte* source, std::span<float> out);

}  // namespace quire::backend
