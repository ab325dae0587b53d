// Layout of 16 tokens of one head in memory in each KvType, and the meaning of its numbers in f32.
//   f32   K [D][16]; V [16][W]                                    W: D padded to 16
//   bf16  K [D/2][16][2]; V [16][W]
//   fp8   K [D][16]; V [16][W]
//   int8  K [D][16], scales [16]; V [16][W], scales [16]          scales in f32
//   int4  K [D/2][16], steps [D]; V [16][W/32][16], steps [16]    W: D padded to 32; steps and their lowests in bf16
// With a latent a token's K and V are one row [D], K, of which V is the last L numbers. A group is [16][W], a row being
// V, then the rest of K, each padded to 16; for int8 there follow the scales [16] of V and those of the rest. panel()
// turns a group's K into a panel.
// int8: scale = max |x| / 127, code = x / scale to the nearest, ties to even. A token with a NaN or an infinity is all
// NaN, so that a fault is never rounded away.
// int4: for each channel of K over the 16 tokens, and for each token of V over its channels: lowest = min x rounded
// down to bf16, step = (max x - lowest) / 15 rounded up to bf16, code = (x - lowest) / step to the nearest, value =
// code * step + lowest, rounded once, because the product is exact: off by half a step at most. A number that is not
// finite makes all that share its step NaN. Two codes a byte: in K a token's of channels d (low four bits) and d + 1,
// in V those of d and d + 16.
// Shape   K is one panel (isa/kernels.h): tokens are the outputs, D is k. V is stored row by row; the codes of its
//         padding are zero. Kernels read both as they are (isa/gemm.inc, isa/span.inc).
// Thread  any; different tokens of a group may be stored by different threads.
// Equals  storing is plain scalar arithmetic on every instruction set: one IEEE operation a line, nothing fused.
// Source  ours; e4m3fn: OCP 8-bit Floating Point Specification 1.0; keys per channel, values per token: KIVI (Liu et
//         al. 2024), with 16 tokens a group instead of 32 and the steps in bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/tensors.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

class GroupCodec {
 public:
  // latent: L, or 0 for K and V by themselves. Not of int4.
  GroupCodec(backend::KvType type, std::uint32_t head_dim, std::uint32_t latent = 0);

  std::size_t bytes() const { return bytes_; }        // of a group
  std::size_t v_offset() const { return v_offset_; }  // offset of V
  std::size_t v_row_bytes() const { return v_row_bytes_; }

  // Of a latent: the group's K as panel_type() has it [D][16], in panel_bytes().
  void panel(const Kernels& kernels, const std::byte* group, std::byte* panel) const;
  backend::KvType panel_type() const;
  std::size_t panel_bytes() const;

  // Stores all sixteen tokens at once, from their rows of K and V: the only way for int4.
  void store_all(std::byte* group, const float* const (&k)[16], const float* const (&v)[16]) const;
  // Stores token `lane` of the group; not for int4. With a latent v is not used.
  void store(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;
  // Copies token `from_lane` of one group to token `to_lane` of another, or of the same: the stored bits. Not for int4.
  void copy(const std::byte* from, std::uint32_t from_lane, std::byte* to, std::uint32_t to_lane) const;
  // Fills groups with what reads as NaN. bytes: of whole groups.
  void poison(std::byte* groups, std::size_t bytes) const;

 private:
  void store_latent(std::byte* group, std::uint32_t lane, const float* k) const;
  void store_fp8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;
  void store_int8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;

  // With a latent, int8: the scales of V, then those of the rest of K.
  float* latent_scales(std::byte* group) const { return reinterpret_cast<float*>(group + 16 * v_row_bytes_); }
  const float* latent_scales(const std::byte* group) const {
    return reinterpret_cast<const float*>(group + 16 * v_row_bytes_);
  }
  // Offsets of scales or steps, which lie behind the codes.
  std::size_t k_scales_offset() const { return v_offset_ - k_scale_bytes_; }
  std::size_t v_scales_offset() const { return v_offset_ + 16 * v_row_bytes_; }

  backend::KvType type_;
  std::uint32_t head_dim_;    // D
  std::uint32_t latent_;      // L
  std::uint32_t padded_dim_;  // W
  std::size_t k_scale_bytes_ = 0;
  std::size_t v_offset_ = 0;
  std::size_t v_row_bytes_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace quire::cpu
