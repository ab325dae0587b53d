#include "core/cpu/blocks/block_panels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/base/check.h"

namespace quire::cpu {
namespace {

using backend::BlockLayout;
using backend::BlockScales;
using backend::BlockType;
using backend::CodedBlocks;

constexpr std::uint32_t kChunk = kCodedGroup;
constexpr std::uint32_t kRun = 32;   // inputs whose planes lie together
constexpr std::uint32_t kLine = 64;  // bytes
constexpr std::uint32_t kStep = 4;   // inputs in the bytes of a word
static_assert(kChunk == CodedBlocks::kMostNumbers);

struct Plane {
  std::uint32_t bits = 0;
  std::uint32_t line = 0;   // of a run, where it begins
  std::uint32_t shift = 0;  // of its bits in a code
};

// One or two; a plane of 0 bits is not there.
std::array<Plane, 2> planes_of(std::uint32_t bits) {
  const std::uint32_t low = backend::low_plane_bits(bits);
  return {Plane{low, 0, 0}, Plane{bits - low, low, low}};
}

// Byte of a panel's run that has the plane's bits of input i, and the first of these bits.
struct CodePlace {
  CodePlace(const Plane& plane, std::uint32_t i, std::uint32_t lane) {
    const std::uint32_t steps = 8 / plane.bits;  // of a line
    at = (plane.line + i / kStep / steps) * kLine + lane * kStep + i % kStep;
    shift = i / kStep % steps * plane.bits;
  }
  std::uint32_t at;
  std::uint32_t shift;
};

// The places of a chunk's scales, relative to its begin.
class ScalePlaces {
 public:
  ScalePlaces(const BlockLayout& layout, std::uint32_t inputs)
      : layout_(layout),
        in_integers_(layout.scales == BlockScales::kIntegers),
        kinds_(layout.has_minima ? 2 : 1),
        groups_(inputs / layout.scale_group()) {}

  std::size_t half(std::uint32_t kind, std::uint32_t group) const {  // kind 0: s; 1: m
    return in_integers_ ? kind * kHalves : (kind * groups_ + group) * kHalves;
  }
  std::size_t integer(std::uint32_t kind, std::uint32_t group) const {
    return kinds_ * kHalves + (kind * groups_ + group) * kLanes;
  }
  static std::size_t word(std::uint32_t group) { return group * kLanes * sizeof(float); }  // of kF32
  std::size_t zero(std::uint32_t group) const { return word(groups_) + group * kLanes; }
  std::uint32_t groups() const { return groups_; }
  std::size_t bytes() const {
    const bool in_words = layout_.scales == BlockScales::kF32;
    const std::size_t used = in_words       ? (layout_.has_zeros ? zero(groups_) : word(groups_))
                             : in_integers_ ? integer(kinds_, 0)
                                            : half(kinds_, 0);
    return (used + kLine - 1) / kLine * kLine;
  }

 private:
  static constexpr std::size_t kHalves = kLanes * sizeof(std::uint16_t);
  const BlockLayout& layout_;
  bool in_integers_;
  std::uint32_t kinds_;
  std::uint32_t groups_;
};

std::size_t chunk_bytes(const BlockLayout& layout, std::uint32_t inputs) {
  if (inputs == 0) return 0;
  return ScalePlaces(layout, inputs).bytes() + std::size_t{inputs} / kRun * layout.bits * kLine;
}

// Calls scale(number, at) for each of the lane's scales, minima and zeros, of `inputs` inputs, and code(code, shift of
// the bits in the code, mask, at, shift of the bits in the byte) for each plane of each code. at: relative to the
// chunk's begin.
template <typename Scale, typename Code>
void visit_lane(const BlockLayout& layout, CodedBlocks& coded, std::uint32_t inputs, std::uint32_t lane,
                const Scale& scale, const Code& code) {
  const ScalePlaces places(layout, inputs);
  const std::uint32_t groups = places.groups();
  const bool in_integers = layout.scales == BlockScales::kIntegers;
  const bool in_words = layout.scales == BlockScales::kF32;
  for (std::uint32_t group = 0; in_words && group < groups; ++group) {
    scale(coded.wide_scales[group], places.word(group) + lane * sizeof(float));
    if (layout.has_zeros) scale(coded.zeros[group], places.zero(group) + lane);
  }
  for (std::uint32_t kind = 0; !in_words && kind < (layout.has_minima ? 2 : 1); ++kind) {
    auto& halves = kind == 0 ? coded.scales : coded.minima;
    auto& integers = kind == 0 ? coded.scale_factors : coded.minimum_factors;
    for (std::uint32_t group = 0; group < (in_integers ? 1 : groups); ++group) {
      scale(halves[group], places.half(kind, group) + lane * sizeof(std::uint16_t));
    }
    for (std::uint32_t group = 0; in_integers && group < groups; ++group) {
      scale(integers[group], places.integer(kind, group) + lane);
    }
  }
  for (const Plane& plane : planes_of(layout.bits)) {
    for (std::uint32_t i = 0; plane.bits != 0 && i < inputs; ++i) {
      const CodePlace place(plane, i % kRun, lane);
      code(coded.codes[i], plane.shift, (1u << plane.bits) - 1,
           places.bytes() + i / kRun * layout.bits * kLine + place.at, place.shift);
    }
  }
}

BlockPanel made_panel(const BlockLayout& layout) {
  BlockPanel panel;
  panel.scales = static_cast<PanelScales>(layout.scales);
  panel.has_minima = layout.has_minima;
  panel.has_zeros = layout.has_zeros;
  panel.groups_shift = static_cast<std::uint8_t>(std::countr_zero(layout.scale_group() / layout.group));
  panel.inputs = static_cast<std::uint16_t>(layout.scale_group());
  panel.floats = layout.is_in_floats() ? layout.floats.data() : nullptr;
  panel.is_wide = layout.bits == 8 || !layout.values.empty();
  panel.zero = layout.values.empty() ? layout.zero : 128;
  CHECK(!panel.is_wide || panel.zero == 128 || layout.is_in_floats());
  for (std::size_t code = 0; code < layout.values.size(); ++code) {
    panel.values[code] = static_cast<std::uint8_t>(layout.values[code] + panel.zero);
  }
  return panel;
}

}  // namespace

static_assert(static_cast<int>(PanelScales::kF16) == static_cast<int>(BlockScales::kF16));
static_assert(static_cast<int>(PanelScales::kBF16) == static_cast<int>(BlockScales::kBF16));
static_assert(static_cast<int>(PanelScales::kIntegers) == static_cast<int>(BlockScales::kIntegers));
static_assert(static_cast<int>(PanelScales::kF32) == static_cast<int>(BlockScales::kF32));

const BlockPanel& block_panel(BlockType type) {
  static const std::vector<BlockPanel> kPanels = [] {
    std::vector<BlockPanel> panels;
    for (const BlockLayout& layout : backend::block_layouts()) panels.push_back(made_panel(layout));
    return panels;
  }();
  return kPanels[static_cast<std::size_t>(type)];
}

Gemm block_gemm(BlockType type, bool in_integers) {
  const BlockLayout& layout = backend::layout_of(type);
  constexpr std::array kPlaces = {kGemmBlocks2, kGemmBlocks3, kGemmBlocks4, kGemmBlocks5, kGemmBlocks6};
  const Gemm of_table = layout.group == 16 ? kGemmBlocksOfTable16 : kGemmBlocksOfTable;
  const Gemm place = !layout.values.empty() ? of_table : layout.bits == 8 ? kGemmBlocks8 : kPlaces[layout.bits - 2];
  return in_integers ? static_cast<Gemm>(place + kGemmBlocks2A8 - kGemmBlocks2) : place;
}

std::size_t block_panel_bytes(BlockType type, std::uint32_t k) {
  const BlockLayout& layout = backend::layout_of(type);
  CHECK_EQ(k % layout.elements, 0u);
  return k / kChunk * chunk_bytes(layout, kChunk) + chunk_bytes(layout, k % kChunk);
}

void pack_block_lane(BlockType type, const std::byte* source, std::size_t first, std::uint32_t count,
                     std::uint32_t lane, std::byte* panel) {
  const BlockLayout& layout = backend::layout_of(type);
  CodedBlocks coded = backend::read_blocks(layout, source, count);
  std::byte* chunk = panel + first / kChunk * chunk_bytes(layout, kChunk);
  visit_lane(
      layout, coded, count, lane,
      [&](const auto& scale, std::size_t at) { std::memcpy(chunk + at, &scale, sizeof(scale)); },
      [&](std::uint32_t code, std::uint32_t shift, std::uint32_t mask, std::size_t at, std::uint32_t to) {
        chunk[at] |= static_cast<std::byte>((code >> shift & mask) << to);
      });
}

void unpack_block_lane(BlockType type, const std::byte* panel, std::uint32_t lane, std::span<float> out) {
  const BlockLayout& layout = backend::layout_of(type);
  for (std::size_t first = 0; first < out.size(); first += kChunk) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kChunk, out.size() - first));
    const std::byte* chunk = panel + first / kChunk * chunk_bytes(layout, kChunk);
    CodedBlocks coded;
    visit_lane(
        layout, coded, count, lane,
        [&](auto& scale, std::size_t at) { std::memcpy(&scale, chunk + at, sizeof(scale)); },
        [&](std::uint8_t& code, std::uint32_t shift, std::uint32_t mask, std::size_t at, std::uint32_t from) {
          code = static_cast<std::uint8_t>(code | (std::to_integer<std::uint32_t>(chunk[at]) >> from & mask) << shift);
        });
    backend::numbers_of(layout, coded, out.subspan(first, count));
  }
}

}  // namespace quire::cpu
