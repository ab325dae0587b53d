// How 16 tokens of one head lie in memory in each KvType, and what their numbers mean in f32.
//   f32   K [D][16], V [16][D padded to 16]                    read as it is
//   bf16  K [D/2][16][2], V [16][D padded to 16]               read as it is
//   fp8   K [D][16], V [16][D]
//   int8  K [D][16], V [16][D], f32 scales: K's [16], V's [16]
// int8: scale = max |x| / 127, code = x / scale to the nearest, ties to even; a token that holds a NaN or an infinity is
// all NaN, so that a fault is never rounded away.
// Shape   K as one panel (isa/kernels.h: tokens are the outputs, D is k), V row by row, its padding zero.
// Thread  any; different tokens of a group may be stored by different threads.
// Equals  plain scalar arithmetic on every instruction set: one IEEE operation a line, nothing fused.
// Source  ours; e4m3fn: OCP 8-bit Floating Point Specification 1.0.
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

  // Token `lane` of the group.
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

  backend::KvType type_;
  std::uint32_t head_dim_;    // D
  std::uint32_t padded_dim_;  // D padded to 16
  std::size_t v_offset_ = 0;
  std::size_t scales_offset_ = 0;  // int8
  std::size_t bytes_ = 0;
};

}  // namespace quire::cpu
