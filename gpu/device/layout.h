// Layout of device memory as functions of indices, the same for packing on the host and for kernels.
// Shape   letters as in core/backend/tensors.h. Offsets are in elements unless they say bytes.
//   weights, and the rows that they multiply: weight_layout.h
//   K and V  kF32    K [D][16], V [16][D]
//            others  tiles of 16 × 16 in the order of the tensor cores' lanes: K as positions × D, V as D × positions,
//                    tile after tile, so that a lane's eight numbers of a tile are adjacent. In kInt4 number i of the
//                    eight is the four bits from bit 4 (i div 2) + 16 (i mod 2) on of one word
//   rows     [rows][width]
// Thread  any; pure.
// Source  ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/tensors.h"
#include "core/base/kv_constants.h"
#include "gpu/device/weight_layout.h"

namespace quire::gpu {

// One layer of the KV cache, in bytes: groups of 16 positions by block and kv head. A group is codes of K, codes of V,
// scales.
struct KvLayout {
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t block_tokens = 0;
  backend::KvType type = backend::KvType::kF32;
  std::size_t block_stride = 0;  // from a block of the cache, which has other layers too, to the next

  static constexpr std::uint32_t kGroup = kGroupTokens;

  // Numbers stored per position; those that only pad a tile are 0.
  constexpr std::uint32_t width() const { return in_tiles(type) ? round_up(head_dim, kTileInputs) : head_dim; }
  // Bytes of a group's K codes; V has as many.
  constexpr std::size_t code_bytes() const { return std::size_t{kGroup} * width() * bits_of(type) / 8; }
  constexpr std::size_t k_scales_at() const { return 2 * code_bytes(); }
  constexpr std::size_t v_scales_at() const { return k_scales_at() + scale_bytes(width()); }
  constexpr std::size_t group_bytes() const { return v_scales_at() + scale_bytes(kGroup); }
  // Bytes of the layer in a block.
  constexpr std::size_t block_bytes() const { return block_tokens / kGroup * num_kv_heads * group_bytes(); }
  constexpr std::size_t group_at(std::uint32_t head, std::uint32_t slot) const {
    const std::uint32_t offset = slot % block_tokens;
    return slot / block_tokens * block_stride + (head * (block_tokens / kGroup) + offset / kGroup) * group_bytes();
  }
  // Index of a code in its group's K or V. `slot` may be the position in the group alone.
  constexpr std::uint32_t k_place(std::uint32_t slot, std::uint32_t d) const {
    if (!in_tiles(type)) return d * kGroup + slot % kGroup;
    return d / kTileInputs * kTileOutputs * kTileInputs + place_in_tile(slot % kGroup, d % kTileInputs);
  }
  constexpr std::uint32_t v_place(std::uint32_t slot, std::uint32_t d) const {
    if (!in_tiles(type)) return slot % kGroup * head_dim + d;
    return d / kTileOutputs * kTileOutputs * kTileInputs + place_in_tile(d % kTileOutputs, slot % kGroup);
  }

  static constexpr bool in_tiles(backend::KvType type) { return type != backend::KvType::kF32; }
  static constexpr std::uint32_t bits_of(backend::KvType type) {
    if (type == backend::KvType::kF32) return 32;
    if (type == backend::KvType::kBF16) return 16;
    return type == backend::KvType::kInt4 ? 4 : 8;
  }

 private:
  // int8: an f32 per position. int4: steps, then lowests, in bf16: of K per channel, of V per position.
  constexpr std::size_t scale_bytes(std::uint32_t int4_count) const {
    if (type == backend::KvType::kInt8) return kGroup * sizeof(float);
    return type == backend::KvType::kInt4 ? std::size_t{int4_count} * 4 : 0;
  }
};

}  // namespace quire::gpu
