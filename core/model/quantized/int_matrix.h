// Matrices of integers of 2 to 8 bits with a scale for each output or each group of its inputs, as GPTQ, AWQ,
// compressed-tensors and bitsandbytes store them, in rows of kInt8 or of the /g types of blocks.
//   number = (code - zero) · scale
// Shape   codes [N, K] packed along K or N (IntPacking); scales [N, G] or [G, N]; zeros likewise, packed along N.
// Owner   borrows the tensors' data.
// Thread  one, at start.
// Fails   StartError naming the tensor: a type or shape that does not fit, groups that are no multiple of 32 inputs, a
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/model/source/safetensors.h"

namespace quire::model {

enum class IntPacking : std::uint8_t {
  kBytes,        // I8 [N, K]
  kAlongInputs,  // I32 [N, ceil(K·bits/32)], from the lowest bit on; zeros I32 [ceil(N·bits/32), G]
  kGptq,         // I32 [K·bits/32, N], likewise; zeros I32 [G, N·bits/32]
  kAwq,          // I32 [K, N/8]: of 8 outputs in the order 0 2 4 6 1 3 5 7; zeros I32 [G, N/8]
};

struct IntTensors {
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* zeros = nullptr;  // null: the middle of the codes
  IntPacking packing = IntPacking::kBytes;
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
  std::uint32_t bits = 8;
  std::uint64_t group = 0;         // inputs that share a scale; 0: all
  float divisor = 1.0f;            // of the scales: 127 of bitsandbytes
  const Tensor* groups = nullptr;  // I32 [K], the group of each input; null: those of a group lie together
  bool zeros_less_one = false;     // GPTQ
  bool takes_int8_rows = false;    // CodedMatrix::takes_int8_rows()
};

// The tensor of that name, a matrix [N, K].
Tensor int_tensor(const std::string& name, const IntTensors& from);

}  // namespace quire::model
