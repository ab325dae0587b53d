#include "core/cpu/blocks/float_panels.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace quire::cpu {
namespace {

using backend::BlockLayout;
using backend::CodedBlocks;

constexpr std::size_t kScaleBytes = kLanes * sizeof(float);

std::size_t group_bytes(const BlockLayout& layout) { return kScaleBytes + layout.elements * kLanes * layout.bits / 8; }

// The place of the code of input i of a group, relative to the group's begin: its byte and its first bit.
struct FloatPlace {
  FloatPlace(const BlockLayout& layout, std::uint32_t i, std::uint32_t lane)
      : at(kScaleBytes + i * layout.bits / 8 * kLanes + lane), shift(i * layout.bits % 8) {}
  std::size_t at;
  std::uint32_t shift;
};

}  // namespace

Gemm float_gemm(backend::BlockType type) { return backend::layout_of(type).bits == 8 ? kGemmFloats8 : kGemmFloats4; }

std::size_t float_panel_bytes(backend::BlockType type, std::uint32_t k) {
  const BlockLayout& layout = backend::layout_of(type);
  CHECK_EQ(k % layout.elements, 0u);
  return k / layout.elements * group_bytes(layout);
}

void pack_float_lane(backend::BlockType type, const std::byte* source, std::size_t first, std::uint32_t count,
                     std::uint32_t lane, std::byte* panel) {
  const BlockLayout& layout = backend::layout_of(type);
  const CodedBlocks coded = backend::read_blocks(layout, source, count);
  std::byte* group = panel + first / layout.elements * group_bytes(layout);
  for (std::uint32_t begin = 0; begin < count; begin += layout.elements, group += group_bytes(layout)) {
    std::memcpy(group + lane * sizeof(float), &coded.wide_scales[begin / layout.elements], sizeof(float));
    for (std::uint32_t i = 0; i < layout.elements; ++i) {
      const FloatPlace place(layout, i, lane);
      group[place.at] |= static_cast<std::byte>(coded.codes[begin + i] << place.shift);
    }
  }
}

void unpack_float_lane(backend::BlockType type, const std::byte* panel, std::uint32_t lane, std::span<float> out) {
  const BlockLayout& layout = backend::layout_of(type);
  for (std::size_t begin = 0; begin < out.size(); begin += layout.elements, panel += group_bytes(layout)) {
    float scale = 0.0f;
    std::memcpy(&scale, panel + lane * sizeof(float), sizeof(float));
    for (std::uint32_t i = 0; i < layout.elements; ++i) {
      const FloatPlace place(layout, i, lane);
      const std::uint32_t code = std::to_integer<std::uint32_t>(panel[place.at]) >> place.shift;
      out[begin + i] = scale * layout.floats[code & ((1u << layout.bits) - 1)];
    }
  }
}

}  // namespace quire::cpu
