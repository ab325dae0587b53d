// How 16 tokens of one head lie in memory in each KvType, and what their numbers mean in f32.
//   f32   K [D][16], V [16][D padded to 16]                    read as it is
//   bf16  K [D/2][16][2], V [16][D padded to 16]               read as it is
//   fp8   K [D][16], V [16][D]
//   int8  K [D][16], V [16][D], f32 scales: K's [16], V's [16]
//   int4  K [D][8 bytes], V [16][D/2 bytes], bf16: K's steps [D] and lowests [D], V's steps [16] and lowests [16]
// int8: scale = max |x| / 127, code = x / scale to the nearest, ties to even; a token that holds a NaN or an infinity is
// all NaN, so that a fault is never rounded away.
// int4: of each channel of K over the 16 tokens, and of each token of V over its channels: lowest = min x rounded down to
// bf16, step = (max x - lowest) / 15 rounded up to bf16, code = (x - lowest) / step to the nearest, value = code * step +
// lowest: off by half a step at most. A fault makes all that share its step NaN. Two codes a byte: the first half of the 16 tokens (K) or D
// channels (V) lies in the low four bits, the other in the high ones.
// Shape   K as one panel (isa/kernels.h: tokens are the outputs, D is k), V row by row, its padding zero.
// Thread  any; different tokens of a group may be stored by different threads.
// Equals  plain scalar arithmetic on every instruction set: one IEEE operation a line, nothing fused.
// Source  ours; e4m3fn: OCP 8-bit Floating Point Specification 1.0; keys per channel, values per token: KIVI (Liu et al.
//         2024), with 16 tokens a group instead of 32 and the steps in bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/tensors.h"

namespace quire::cpu {

class GroupCodec {
 public:
  GroupCodec(backend::KvType type, std::uint32_t head_dim);

  std::size_t bytes() const { return bytes_; }        // of a group
  std::size_t v_offset() const { return v_offset_; }  // where V begins
  // Whether the kernels read the group as it is: else widen() first.
  bool is_plain() const { return type_ == backend::KvType::kF32 || type_ == backend::KvType::kBF16; }

  // All sixteen tokens at once, by their rows of K and V: the only way for int4.
  void store_all(std::byte* group, const float* const (&k)[16], const float* const (&v)[16]) const;
  // Token `lane` of the group; not for int4.
  void store(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;
  // K as a panel of f32 [D][16], V as rows of f32 [16][D padded to 16]. Not for plain types.
  void widen(const std::byte* group, float* k, float* v) const;
  // Groups that read as NaN. `bytes`: of whole groups.
  void poison(std::byte* groups, std::size_t bytes) const;

 private:
  void store_fp8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;
  void store_int8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const;
  void widen_fp8(const std::byte* group, float* k, float* v) const;
  void widen_int8(const std::byte* group, float* k, float* v) const;
  void widen_int4(const std::byte* group, float* k, float* v) const;

  backend::KvType type_;
  std::uint32_t head_dim_;    // D
  std::uint32_t padded_dim_;  // D padded to 16
  std::size_t v_offset_ = 0;
  std::size_t scales_offset_ = 0;  // int8's scales, int4's steps
  std::size_t bytes_ = 0;
};

}  // namespace quire::cpu
