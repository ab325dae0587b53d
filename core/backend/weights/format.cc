#include "core/backend/weights/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace quire::backend {
namespace {

// Of kNamedFormats.
constexpr std::array kNames = {"f32", "bf16", "f16", "int8", "int4", "w8a8", "w4a8", "w16a16", "fp8"};
static_assert(kNames.size() == kNamedFormats.size());

std::string element_text(Format format) {
  switch (format.element) {
    case Format::Element::kF32:
      return "f32";
    case Format::Element::kBF16:
      return "bf16";
    case Format::Element::kF16:
      return "f16";
    case Format::Element::kInt:
      return fmt::format("int{}", format.bits);
    case Format::Element::kE4M3:
      return "fp8";
    case Format::Element::kBlocks:
      return std::string(layout_of(format.blocks).name);
  }
  return "?";
}

}  // namespace

std::size_t stored_bytes(Format format, std::size_t count) {
  if (!format.is_blocks()) return count * bytes_of(format);
  const BlockLayout& layout = layout_of(format.blocks);
  CHECK_EQ(count % layout.elements, 0u);
  return count / layout.elements * layout.bytes;
}

std::size_t row_bytes(Format stored, std::size_t k) {
  return stored_bytes(stored, k) + (has_stored_scales(stored) ? sizeof(float) : 0);
}

std::string name_of(Format format) {
  if (const auto* named = std::ranges::find(kNamedFormats, format); named != kNamedFormats.end()) {
    return kNames[static_cast<std::size_t>(named - kNamedFormats.begin())];
  }
  std::string text = element_text(format);
  if (format.scale != Format::Scale::kNone) {
    const char* scale = format.scale == Format::Scale::kF32 ? "f32" : "bf16";
    text += format.group == 0 ? fmt::format(" with an {} scale per output", scale)
                              : fmt::format(" in groups of {} with {} scales", format.group, scale);
    text += format.scale_place == Format::ScalePlace::kAmongCodes ? " among the codes" : "";
  }
  if (format.zero_point != Format::ZeroPoint::kNone) text += ", with zero points";
  if (format.activation == Format::Activation::kBF16) text += ", times bf16";
  if (format.activation == Format::Activation::kInt8) text += ", times int8";
  if (format.activation == Format::Activation::kInt8PerRow) text += ", times int8 with a scale for a row";
  return text;
}

}  // namespace quire::backend
