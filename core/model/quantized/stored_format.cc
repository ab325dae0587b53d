#include "core/model/quantized/stored_format.h"

namespace quire::model {
namespace {

using backend::BlockType;
using backend::Format;

std::optional<BlockType> int_type(std::uint64_t bits, bool has_zeros) {
  if (bits < 2 || bits > 8) return std::nullopt;
  if (bits == 8) return has_zeros ? BlockType::kUint8G32 : BlockType::kInt8G32;
  if (bits > 4) return BlockType::kInt8G32;
  if (bits == 4) return has_zeros ? BlockType::kUint4G32 : BlockType::kInt4G32;
  const std::uint64_t whole = bits + (has_zeros ? 1 : 0);
  return whole == 2 ? BlockType::kInt2G32 : whole == 3 ? BlockType::kInt3G32 : BlockType::kInt4G32;
}

}  // namespace

std::optional<Format> grouped_format(BlockType like, std::uint64_t group, std::uint64_t inputs) {
  for (std::uint32_t size = 128; size >= 32; size /= 2) {
    const auto type = backend::with_group(like, size);
    if (type && inputs % size == 0 && group % size == 0) return Format::of_blocks(*type);
  }
  return std::nullopt;
}

std::optional<Format> int_format(std::uint64_t bits, bool has_zeros, std::uint64_t group, std::uint64_t inputs) {
  if (bits == 8 && !has_zeros && group == 0) return Format::kInt8;
  const auto type = int_type(bits, has_zeros);
  return type ? grouped_format(*type, group, inputs) : std::nullopt;
}

}  // namespace quire::model
