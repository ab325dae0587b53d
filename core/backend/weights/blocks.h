// Block-quantised rows as GGUF stores them, and their numbers in f32.
// Shape   a row is whole blocks of `elements` numbers in `bytes` bytes, which may be unaligned.
// Thread  any; pure.
// Equals  the reference dequantisation of gguf 0.19, bit for bit: every number is exact, but for Q4_1, Q5_1, Q2_K, Q4_K
//         and Q5_K, whose one addition or subtraction of exact products rounds once.
// Source  the block layouts of ggml; OCP Microscaling Formats 1.0 for E2M1, E8M0 and E4M3.
#pragma once

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
  kNVFP4,  // without the factor that such a tensor has besides
};

struct BlockLayout {
  BlockType type;
  std::string_view name;  // "Q4_K"
  std::uint32_t elements;
  std::uint32_t bytes;
};

std::span<const BlockLayout> block_layouts();
const BlockLayout& layout_of(BlockType type);
std::optional<BlockType> block_type_named(std::string_view name);

// `out` has a multiple of the block's elements.
void widen_blocks(BlockType type, const std::byte* source, std::span<float> out);

}  // namespace quire::backend
