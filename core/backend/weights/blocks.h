// Block-quantised rows as GGUF stores them: their codes and scales, and their numbers in f32.
//   number = s · v + m   s and, if the type has minima, m: of the number's group; v: the code less a zero, or a value
//                        that a table has for it
// Shape   a row is whole blocks of `elements` numbers in `bytes` bytes, which may be unaligned.
// Thread  any; pure.
// Equals  the reference dequantisation of gguf 0.19, bit for bit: s, m and s · v are exact, so that only types with
//         minima round, once, when m is added.
// Source  the block layouts of ggml; OCP Microscaling Formats 1.0 for E2M1, E8M0 and E4M3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

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
};

// Storage of s and m.
enum class BlockScales : std::uint8_t {
  kF16,       // one of each for a group
  kBF16,      // likewise
  kIntegers,  // an integer for a group, times an f16 of all 256 numbers; m = -(f16 · integer)
};

struct BlockLayout {
  BlockType type;
  std::string_view name;  // "Q4_K"
  std::uint32_t elements;
  std::uint32_t bytes;
  std::uint32_t bits;   // of a code
  std::uint32_t group;  // numbers that share s and m: 16 or 32
  BlockScales scales;
  bool has_minima;
  std::int32_t zero;                         // v = code - zero
  std::span<const std::int8_t> values = {};  // or v = values[code]

  std::int32_t value(std::uint32_t code) const {
    return values.empty() ? static_cast<std::int32_t>(code) - zero : values[code];
  }
};

// A code's bits lie in two planes on every device: these lowest ones, and the others, if there are any.
constexpr std::uint32_t low_plane_bits(std::uint32_t bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

inline constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::array<std::int8_t, 16> kE2M1Doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

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
};

constexpr std::span<const BlockLayout> block_layouts() { return kBlockLayouts; }
constexpr const BlockLayout& layout_of(BlockType type) { return kBlockLayouts[static_cast<std::size_t>(type)]; }
static_assert([] {
  for (const BlockLayout& layout : kBlockLayouts) {
    if (layout_of(layout.type).type != layout.type) return false;
  }
  return true;
}());
std::optional<BlockType> block_type_named(std::string_view name);

// Codes and scales of at most 256 numbers of a row.
struct CodedBlocks {
  static constexpr std::uint32_t kMostNumbers = 256;
  static constexpr std::uint32_t kMostGroups = kMostNumbers / 16;

  std::array<std::uint8_t, kMostNumbers> codes{};
  // Bits of s and m of each group; of kIntegers, [0] has the f16 of all.
  std::array<std::uint16_t, kMostGroups> scales{};
  std::array<std::uint16_t, kMostGroups> minima{};
  std::array<std::int8_t, kMostGroups> scale_factors{};    // of kIntegers
  std::array<std::int8_t, kMostGroups> minimum_factors{};  // likewise

  float scale(const BlockLayout& layout, std::uint32_t group) const;
  float minimum(const BlockLayout& layout, std::uint32_t group) const;  // of a type that has them
};

// Reads the first `count` numbers of whole blocks: a multiple of `elements`, at most 256.
CodedBlocks read_blocks(const BlockLayout& layout, const std::byte* source, std::uint32_t count);

// The first out.size() of the codes' numbers.
void numbers_of(const BlockLayout& layout, const CodedBlocks& coded, std::span<float> out);

// `out` has a multiple of the block's elements.
void widen_blocks(BlockType type, const std::byte* source, std::span<float> out);

}  // namespace quire::backend
