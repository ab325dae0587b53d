// Layout of weights, and of the rows that they multiply, in device memory: a lane's 16 bytes are what the tensor cores
// take of it, so that weights go from memory to registers and are multiplied there.
// Shape   a weight is cut into tiles of 16 outputs, a tile into steps of 64 inputs. Eight tiles are a group (the last
//         may have fewer), whose first steps are adjacent, then their second ones, and so on: one bulk copy brings a
//         step of all of them. Outputs and inputs that are only padding are zero bits, which meet zeros of the rows.
//         Lane and word are those of matrix.h and integer_matrix.h. A step:
//           kBF16, kW16A16  2,048 bytes: 4 parts of 16 inputs; a lane has 16 bytes of each, its fragment
//           kInt8, kFp8     1,024: 2 parts of 32 inputs; a lane's 16 bytes are its numbers of two fragments; the two
//                           halves of a fragment's word are bytes 0 and 2, or 1 and 3, of a word here
//           kW8A8           1,024: 2 parts of 32 inputs; a lane has 16 bytes of each, its fragment
//           kInt4           576: a lane has 16 bytes, 4 per 16 inputs, in nibbles that hold q + 8; then the groups'
//                           scales
//           kW4A8           576: a lane has 16 bytes, 8 per 32 inputs, in nibbles that hold q in two's complement;
//                           then scales
//           kBlocks         128 bytes for each bit of a code, in planes as on the CPU (core/cpu/blocks/block_panels.h):
//                           of a plane of w bits a lane has w words; bits w · t .. of word j are word (8 / w) j + t of
//                           its two fragments of 32 inputs. Then scales, for each of 8 outputs g. Of kF16 and kBF16: s
//                           of each group, then m of each, outputs g and g + 8. Of kIntegers: f16 of s for g and g + 8,
//                           those of m; then the integers of s of each group for g and g + 8, then those of m. Of
//                           kF32: for each scale of the step, s for g and for g + 8 in f32; then, of types that have
//                           them, a word of zeros in the same order. Codes of FP8 lie as those of kFp8
//           kF32, kF16      no steps: [K][N'], inputs outside, outputs padded to 32
//         Scales, in bf16: for each of 8 outputs g, both groups of 32 inputs; for each group, outputs g and g + 8.
//         Rows, in tiles of 8 rows and halves of steps. bf16: a half is 512 bytes, 16 per lane; int8: 256 bytes, 8 per
//         lane; for block-quantised weights 512 bytes, 16 per lane, which also has one of the row's numbers for these
//         32 inputs (RowsOfBlocks). Blocks of 128 rows (warpgroup_matrix.h): step by step 16 tiles of 8 rows; a tile is
//         8 times 8 inputs of row after row, 16 bytes each.
// Thread  any; pure.
// Source  weights in fragment order: Marlin (Frantar et al. 2024); the rest ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/tensors.h"
#include "gpu/device/integer_matrix.h"
#include "gpu/device/matrix.h"

namespace quire::gpu {

inline constexpr std::uint32_t kStepInputs = 64;
// Inputs of a slice, whose sum is a number of its own: a row's quantization group in w8a8 and w4a8.
inline constexpr std::uint32_t kSliceInputs = 256;
inline constexpr std::uint32_t kSliceSteps = kSliceInputs / kStepInputs;
inline constexpr std::uint32_t kGroupInputs = 32;  // inputs of a kInt4 or kW4A8 group, which has its own scale

constexpr std::uint32_t round_up(std::uint32_t count, std::uint32_t unit) { return (count + unit - 1) / unit * unit; }
constexpr std::uint32_t pieces_of(std::uint32_t count, std::uint32_t size) { return (count + size - 1) / size; }

constexpr std::uint32_t num_tiles(std::uint32_t num_outputs) { return pieces_of(num_outputs, kTileOutputs); }
constexpr std::uint32_t num_steps(std::uint32_t num_inputs) { return pieces_of(num_inputs, kStepInputs); }
constexpr std::uint32_t num_slices(std::uint32_t num_inputs) { return pieces_of(num_inputs, kSliceInputs); }

// True: in steps, as above.
constexpr bool in_tiles(backend::Format format) {
  return format.element != backend::Format::Element::kF32 && format.element != backend::Format::Element::kF16;
}
// Blocks whose codes are e4m3fn.
constexpr bool is_fp8(const backend::BlockLayout& layout) { return layout.floats.size() == 256; }
constexpr bool is_fp8_blocks(backend::Format format) {
  return format.is_blocks() && is_fp8(backend::layout_of(format.blocks));
}
// True: the tensor cores multiply the format. False: f32, f16, and other blocks times f32, multiplied output by output
// as on the CPU.
constexpr bool by_tensor_cores(backend::Format format) {
  if (format.is_blocks()) return is_fp8_blocks(format) || format.activation != backend::Format::Activation::kF32;
  return in_tiles(format);
}
// True: rows are int8. False: rows are bf16.
constexpr bool in_integers(backend::Format format) { return format.in_integers(); }
// True: a row has a scale for each slice of its inputs. Those of rows for blocks lie beside their codes.
constexpr bool has_row_scales(backend::Format format) { return in_integers(format) && !format.is_blocks(); }
constexpr bool in_nibbles(backend::Format format) { return format.bits == 4; }
// True: bytes that are widened to bf16 for the tensor cores.
constexpr bool in_wide_bytes(backend::Format format) { return format.bits == 8 && !in_integers(format); }

inline constexpr std::uint32_t kNibbleBytes = 512;  // codes of a step

// The bits of codes of 4 inputs that lie in one word, of 4 inputs in the next word, and so on.
struct BlockPlane {
  std::uint32_t bits = 0;   // 0: there is no such plane
  std::uint32_t first = 0;  // byte of a step
  std::uint32_t shift = 0;  // of its bits in a code

  constexpr std::uint32_t words() const { return 8 / bits; }  // of fragments, that a word has bits of
};

// A type of blocks as kernels see it: backend::BlockLayout, and the places in a step.
struct BlockShape {
  std::uint32_t bits = 0;
  std::uint32_t group = kGroupInputs;
  backend::BlockScales scales = backend::BlockScales::kF16;
  std::uint32_t kinds = 1;  // 2: scales and minima
  std::int32_t zero = 0;
  bool has_table = false;
  std::uint64_t values[2] = {};              // of codes 0..7 and 8..15, int8
  std::uint32_t scale_inputs = kStepInputs;  // of kF32: inputs of a step that share s
  bool has_zeros = false;
  bool is_fp8 = false;
  bool has_floats = false;
  float floats[16] = {};  // of codes

  constexpr std::uint32_t groups() const { return kStepInputs / group; }
  constexpr bool has_integers() const { return scales == backend::BlockScales::kIntegers; }
  constexpr bool has_wide_scales() const { return scales == backend::BlockScales::kF32; }
  constexpr std::uint32_t wide_scales() const { return kStepInputs / scale_inputs; }
  constexpr std::uint32_t code_bytes() const { return bits * kWarp * 4; }
  constexpr std::uint32_t scale_words() const {  // of outputs g and g + 8
    if (has_wide_scales()) return 2 * wide_scales() + (has_zeros ? 1 : 0);
    return has_integers() ? kinds + kinds * groups() / 2 : kinds * groups();
  }
  constexpr std::uint32_t step_bytes() const { return code_bytes() + kTileOutputs / 2 * scale_words() * 4; }
  constexpr BlockPlane low() const { return {backend::low_plane_bits(bits), 0, 0}; }
  constexpr BlockPlane high() const { return {bits - low().bits, low().bits * kWarp * 4, low().bits}; }

  // Bytes of a step: of an f16 or bf16 (of kIntegers, group is 0), and of an integer.
  constexpr std::uint32_t half_at(std::uint32_t kind, std::uint32_t group_of_step, std::uint32_t output) const {
    const std::uint32_t word = has_integers() ? kind : kind * groups() + group_of_step;
    return scales_of(output) + word * 4 + output / 8 * 2;
  }
  constexpr std::uint32_t integer_at(std::uint32_t kind, std::uint32_t group_of_step, std::uint32_t output) const {
    return scales_of(output) + kinds * 4 + (kind * groups() + group_of_step) * 2 + output / 8;
  }
  // Of kF32: of an f32, and of a zero.
  constexpr std::uint32_t wide_at(std::uint32_t scale_of_step, std::uint32_t output) const {
    return scales_of(output) + (scale_of_step * 2 + output / 8) * 4;
  }
  constexpr std::uint32_t zero_at(std::uint32_t scale_of_step, std::uint32_t output) const {
    return scales_of(output) + wide_scales() * 8 + scale_of_step * 2 + output / 8;
  }

 private:
  constexpr std::uint32_t scales_of(std::uint32_t output) const {
    return code_bytes() + output % 8 * scale_words() * 4;
  }
};
constexpr BlockShape block_shape(backend::BlockType type) {
  const backend::BlockLayout& layout = backend::layout_of(type);
  BlockShape shape{layout.bits, layout.group, layout.scales, layout.has_minima ? 2u : 1u, layout.zero};
  shape.has_table = !layout.values.empty();
  for (std::uint32_t code = 0; code < layout.values.size(); ++code) {
    shape.values[code / 8] |= std::uint64_t{static_cast<std::uint8_t>(layout.values[code])} << code % 8 * 8;
  }
  shape.scale_inputs = layout.elements < kStepInputs ? layout.elements : kStepInputs;
  shape.has_zeros = layout.has_zeros;
  shape.is_fp8 = is_fp8(layout);
  shape.has_floats = layout.floats.size() == 16;
  for (std::uint32_t code = 0; shape.has_floats && code < 16; ++code) shape.floats[code] = layout.floats[code];
  return shape;
}

// The place of a code's bits in a plane: byte of the step, and first bit of that byte.
struct BitPlace {
  std::uint32_t byte = 0;
  std::uint32_t shift = 0;
};
constexpr BitPlace place_in_plane(const BlockPlane& plane, std::uint32_t output, std::uint32_t input) {
  const IntegerPlace at = integer_place(output, input % kIntegerInputs);
  const std::uint32_t word = input / kIntegerInputs * 4 + at.word;
  return {plane.first + (at.lane * plane.bits + word / plane.words()) * 4 + at.byte, word % plane.words() * plane.bits};
}

constexpr std::uint32_t step_bytes(backend::Format format) {
  if (format.is_blocks()) return block_shape(format.blocks).step_bytes();
  if (in_nibbles(format)) return kNibbleBytes + 64;
  return has_output_scales(format) ? 1024 : 2048;
}

// Place of a number within its step, in units of its size: 2 bytes, a byte, a nibble.
constexpr std::uint32_t place_in_step(backend::Format format, std::uint32_t output, std::uint32_t input) {
  if (in_integers(format)) {
    const IntegerPlace at = integer_place(output, input % kIntegerInputs);
    const std::uint32_t part = input / kIntegerInputs;
    if (!in_nibbles(format)) return part * 512 + at.lane * 16 + at.word * 4 + at.byte;
    return at.lane * 32 + part * 16 + at.word / 2 * 8 + at.byte * 2 + at.word % 2;
  }
  const std::uint32_t part = input / kTileInputs;
  const std::uint32_t at = place_in_tile(output, input % kTileInputs);
  const std::uint32_t lane = at / 8;
  const std::uint32_t word = at % 8 / 2;
  const std::uint32_t half = at % 2;
  if (in_wide_bytes(format)) {
    return part / 2 * 512 + lane * 16 + part % 2 * 8 + word / 2 * 4 + half * 2 + word % 2;
  }
  if (in_nibbles(format)) return lane * 32 + part * 8 + word + half * 4;
  return part * 256 + at;
}

// The place of a code's bits in a plane of a type of blocks.
constexpr BitPlace place_of_code(const BlockShape& shape, const BlockPlane& plane, std::uint32_t output,
                                 std::uint32_t input) {
  if (shape.is_fp8) return {place_in_step(backend::Format::kFp8, output, input), 0};
  return place_in_plane(plane, output, input);
}

// Place of a group's scale within its step, in bytes.
constexpr std::uint32_t scale_in_step(std::uint32_t output, std::uint32_t input) {
  return kNibbleBytes + output % 8 * 8 + input / kGroupInputs * 4 + output / 8 * 2;
}

// Number of tiles in the tile's group: also the distance, in steps, from one of its steps to the next.
inline constexpr std::uint32_t kGroupTiles = 8;
constexpr std::uint32_t tiles_of_group(std::uint32_t num_outputs, std::uint32_t tile) {
  const std::uint32_t left = num_tiles(num_outputs) - tile / kGroupTiles * kGroupTiles;
  return left < kGroupTiles ? left : kGroupTiles;
}
// Byte offset of a tile's step.
constexpr std::size_t step_at(std::uint32_t bytes_of_step, std::uint32_t num_outputs, std::uint32_t num_inputs,
                              std::uint32_t tile, std::uint32_t step) {
  const std::size_t before = std::size_t{tile / kGroupTiles * kGroupTiles} * num_steps(num_inputs);
  return (before + std::size_t{step} * tiles_of_group(num_outputs, tile) + tile % kGroupTiles) * bytes_of_step;
}

// Place of a number of f32 and f16, in units of its size.
constexpr std::size_t place_in_columns(std::uint32_t num_outputs, std::uint32_t output, std::uint32_t input) {
  return std::size_t{input} * round_up(num_outputs, kWarp) + output;
}

// Bytes of a weight's numbers, including the scales of groups.
constexpr std::size_t number_bytes(backend::Format format, std::uint32_t num_outputs, std::uint32_t num_inputs) {
  if (in_tiles(format)) return std::size_t{num_tiles(num_outputs)} * num_steps(num_inputs) * step_bytes(format);
  return bytes_of(format) * num_inputs * round_up(num_outputs, kWarp);
}

// Places of a row's number, in units of its size: 2 bytes, or one.
inline constexpr std::uint32_t kRowBlock = 128;
inline constexpr std::uint32_t kRowStep = kTileRows * kStepInputs;  // numbers of a step in a tile of rows
constexpr std::size_t place_in_rows(std::uint32_t num_inputs, std::uint32_t row, std::uint32_t input) {
  const std::size_t step = std::size_t{row / kTileRows} * num_steps(num_inputs) + input / kStepInputs;
  const std::uint32_t lane = row % kTileRows * 4 + input % 8 / 2;
  return step * kRowStep + input % kStepInputs / 32 * 256 + lane * 8 + input % 32 / 8 * 2 + input % 2;
}
constexpr std::size_t place_in_integer_rows(std::uint32_t num_inputs, std::uint32_t row, std::uint32_t input) {
  const std::size_t step = std::size_t{row / kTileRows} * num_steps(num_inputs) + input / kStepInputs;
  const std::uint32_t lane = row % kTileRows * 4 + input % 16 / 4;
  return step * kRowStep + input % kStepInputs / 32 * 256 + lane * 8 + input % 32 / 16 * 4 + input % 4;
}
constexpr std::size_t place_in_row_blocks(std::uint32_t num_inputs, std::uint32_t row, std::uint32_t input) {
  const std::size_t step = std::size_t{row / kRowBlock} * num_steps(num_inputs) + input / kStepInputs;
  const std::size_t tile = step * (kRowBlock / kTileRows) + row % kRowBlock / kTileRows;
  return tile * kRowStep + input % kStepInputs / 8 * 64 + row % kTileRows * 8 + input % 8;
}

}  // namespace quire::gpu
