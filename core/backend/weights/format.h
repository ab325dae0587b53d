// The format of a matrix: how its numbers are stored, what scales them, and what a linear layer multiplies them by.
//   number = element · scale of its group (− zero point · scale)
// Kernels are registered by it (core/cpu/pack.h, gpu/linear_layers.h): a format without a row there is
// refused by name. Every element is read as f32.
// Thread  any; values.
// Source  ours; the fields are those in which the published formats differ (GGUF, GPTQ, AWQ, compressed-tensors).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/backend/weights/blocks.h"

namespace quire::backend {

struct Format {
  enum class Element : std::uint8_t {
    kF32,
    kBF16,
    kF16,
    kInt,     // two's complement, of `bits` bits
    kE4M3,    // fn: without infinities
    kBlocks,  // of `blocks`, with scales of their own; the other fields but `activation` and `scale` say nothing
  };
  enum class Scale : std::uint8_t { kNone, kF32, kBF16 };
  enum class ScalePlace : std::uint8_t {
    kBehind,      // all scales of a matrix behind all its elements
    kAmongCodes,  // the scales of a group beside its elements
  };
  enum class ZeroPoint : std::uint8_t { kNone, kPerGroup };
  // A linear layer's input is taken as it is, or rounded or quantised first (StepOps::multiply).
  // kInt8: with a scale for each group of the row's inputs; kInt8PerRow: with one scale for the row.
  enum class Activation : std::uint8_t { kF32, kBF16, kInt8, kInt8PerRow };

  Element element = Element::kF32;
  std::uint8_t bits = 32;   // of an element
  std::uint16_t group = 0;  // inputs of an output that share a scale; 0: all of them
  Scale scale = Scale::kNone;
  ScalePlace scale_place = ScalePlace::kBehind;
  ZeroPoint zero_point = ZeroPoint::kNone;
  Activation activation = Activation::kF32;
  BlockType blocks = BlockType::kQ4_0;

  static constexpr Format of_blocks(BlockType type, Activation activation = Activation::kF32) {
    Format format;
    format.element = Element::kBlocks;
    format.activation = activation;
    format.blocks = type;
    if (type == BlockType::kNVFP4) format.scale = Scale::kF32;  // of an output: the matrix's factor
    return format;
  }
  constexpr bool is_blocks() const { return element == Element::kBlocks; }
  // True: inputs are int8, and products are those of integers.
  constexpr bool in_integers() const { return in_integers(activation); }
  static constexpr bool in_integers(Activation activation) {
    return activation == Activation::kInt8 || activation == Activation::kInt8PerRow;
  }

  friend constexpr bool operator==(const Format&, const Format&) = default;

  // Elements of a checkpoint in plain precision.
  static const Format kF32;
  static const Format kBF16;
  static const Format kF16;
  // Formats that packing quantises to.
  static const Format kInt8;        // -127..127, stored ones from -128 on, times an f32 scale per output
  static const Format kInt4;        // -8..7 times a bf16 scale per group of 32 inputs of an output
  static const Format kW8A8;        // kInt8's elements, multiplied in integers: linear() quantises its input too
  static const Format kW8A8PerRow;  // the same, its input with a scale for a row: as checkpoints may declare it
  static const Format kW4A8;        // kInt4's elements, multiplied in the same way
  static const Format kW16A16;      // kBF16's elements, multiplied by bf16: linear() rounds its input too
  static const Format kFp8;         // e4m3fn times an f32 scale per output
};

inline constexpr Format Format::kF32 = {};
inline constexpr Format Format::kBF16 = {.element = Element::kBF16, .bits = 16};
inline constexpr Format Format::kF16 = {.element = Element::kF16, .bits = 16};
inline constexpr Format Format::kInt8 = {.element = Element::kInt, .bits = 8, .scale = Scale::kF32};
inline constexpr Format Format::kInt4 = {
    .element = Element::kInt, .bits = 4, .group = 32, .scale = Scale::kBF16, .scale_place = ScalePlace::kAmongCodes};
inline constexpr Format Format::kW8A8 = {
    .element = Element::kInt, .bits = 8, .scale = Scale::kF32, .activation = Activation::kInt8};
inline constexpr Format Format::kW8A8PerRow = {
    .element = Element::kInt, .bits = 8, .scale = Scale::kF32, .activation = Activation::kInt8PerRow};
inline constexpr Format Format::kW4A8 = {.element = Element::kInt,
                                         .bits = 4,
                                         .group = 32,
                                         .scale = Scale::kBF16,
                                         .scale_place = ScalePlace::kAmongCodes,
                                         .activation = Activation::kInt8};
inline constexpr Format Format::kW16A16 = {.element = Element::kBF16, .bits = 16, .activation = Activation::kBF16};
inline constexpr Format Format::kFp8 = {.element = Element::kE4M3, .bits = 8, .scale = Scale::kF32};

// Formats with a short name: those of a checkpoint in plain precision, then those that `--quantize` names.
inline constexpr std::array kNamedFormats = {Format::kF32,  Format::kBF16,   Format::kF16,
                                             Format::kInt8, Format::kInt4,   Format::kW8A8,
                                             Format::kW4A8, Format::kW16A16, Format::kFp8};
inline constexpr std::span kPlainFormats = std::span(kNamedFormats).first<3>();
inline constexpr std::span kQuantizedFormats = std::span(kNamedFormats).subspan<3>();

// True for formats with one scale per output, behind the elements.
constexpr bool has_output_scales(Format format) {
  return format.scale != Format::Scale::kNone && format.group == 0 && format.scale_place == Format::ScalePlace::kBehind;
}
// True for blocks whose matrix has a factor besides, which a product is multiplied by: one of the scales of outputs.
constexpr bool has_own_factor(Format format) { return format.is_blocks() && has_output_scales(format); }
// Bytes of an element of 8 bits or more.
constexpr std::size_t bytes_of(Format format) { return format.bits / 8; }
// True for codes that a checkpoint stores with a scale for each output, kInt8 and kFp8: in a row of a HostMatrix the
// scale, an f32, follows the codes.
constexpr bool has_stored_scales(Format stored) { return has_output_scales(stored) && !stored.is_blocks(); }
// Bytes of `count` inputs of an output as a checkpoint stores them: a plain format, whole blocks, or codes alone.
std::size_t stored_bytes(Format format, std::size_t count);
// Bytes of a whole row of a HostMatrix.
std::size_t row_bytes(Format stored, std::size_t k);

// "bf16", "w8a8", "Q4_K, times int8"; of a format without a short name its fields: "int4 in groups of 64 with f32
// scales".
std::string name_of(Format format);

}  // namespace quire::backend
