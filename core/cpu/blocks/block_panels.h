// Panels of block-quantised weights whose codes are integers: in the order of 16 lanes, with their scales. Codes that
// stand for f32: float_panels.h.
// Nothing is rounded; a panel takes a few bits more for each group than the blocks.
// Shape   for each 256 inputs, or what is left at K's end, a chunk: scales, then codes.
//           scales  one lane of 16 after another, rounded up to 64 bytes. Of kF16 and kBF16: s of each group, then m of
//                   each group, 2 bytes a lane. Of kIntegers: the f16 of s, that of m, then the integers of s for each
//                   group, those of m, a byte a lane. Types without minima have no m.
//           codes   for each 32 inputs `bits` lines of 16 32-bit words, in planes of a code's bits: the low 2, 4 or 8,
//                   then the others. In a plane of w bits, a line has 4 · 8 / w inputs: step t of 4 of them has w bits
//                   of each byte of a word from bit w · t on, the byte being the input in the step, the word the lane.
//                   Codes as in CodedBlocks; those of a lane beyond N are 0, and so are its scales.
// Thread  any; pure. Lanes of a panel may be packed one after another only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/weights/blocks.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

// A type as its kernels see it; and the kernels of a type.
const BlockPanel& block_panel(backend::BlockType type);
Gemm block_gemm(backend::BlockType type, bool in_integers);

// k: a multiple of the type's elements.
std::size_t block_panel_bytes(backend::BlockType type, std::uint32_t k);
// Puts inputs [first, first + count) of one output into its lane, which is zeroed. first: a multiple of 256.
void pack_block_lane(backend::BlockType type, const std::byte* source, std::size_t first, std::uint32_t count,
                     std::uint32_t lane, std::byte* panel);
// An output's inputs [0, out.size()) as widen_blocks() has them.
void unpack_block_lane(backend::BlockType type, const std::byte* panel, std::uint32_t lane, std::span<float> out);

}  // namespace quire::cpu
