// Panels of blocks whose codes stand for f32 (BlockLayout::floats): they are multiplied in f32 alone.
// Shape   for each block's inputs a line of 16 f32, the scales; then the codes, a byte a lane: of 8 bits for each
//         input, of 4 bits for each two, the first in the low half. Scales and codes of a lane beyond N are 0.
// Thread  any; pure. Lanes of a panel may be packed one after another only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/weights/blocks.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

Gemm float_gemm(backend::BlockType type);

// k: a multiple of the type's elements.
std::size_t float_panel_bytes(backend::BlockType type, std::uint32_t k);
// Puts inputs [first, first + count) of one output into its lane, which is zeroed. first: a multiple of 256.
void pack_float_lane(backend::BlockType type, const std::byte* source, std::size_t first, std::uint32_t count,
                     std::uint32_t lane, std::byte* panel);
// An output's inputs [0, out.size()) as widen_blocks() has them.
void unpack_float_lane(backend::BlockType type, const std::byte* panel, std::uint32_t lane, std::span<float> out);

}  // namespace quire::cpu
