// Matrices of floats of 4 or 8 bits with scales, in rows of kFp8 or of blocks: FP8, NVFP4, MXFP4, and NF4 and FP4 of
// bitsandbytes.
// Owner   borrows the tensors' data.
// Thread  one, at start.
// Fails   StartError naming the tensor: a type or shape that does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/source/safetensors.h"

namespace quire::model {

// number = code · scale. Codes F8_E4M3 [N, K]; scales: one for all; [N] or [N, 1]; [N, G], of K/G inputs each; or
// those of blocks, [ceil(N/block_outputs), ceil(K/block_inputs)]. Of several matrices, both have their number in front.
struct Fp8Tensors {
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  std::uint64_t block_outputs = 128;
  std::uint64_t block_inputs = 128;
};
Tensor fp8_tensor(const std::string& name, const Fp8Tensors& from);

// number = (code · scale) · factor, or / divisor: one number for all. Codes U8 [N, K/2], of an even input in the low
// half; scales F8_E4M3 [N, K/16].
struct Nvfp4Tensors {
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* factor = nullptr;  // or a divisor
  bool divides = false;
};
Tensor nvfp4_tensor(const std::string& name, const Nvfp4Tensors& from);

// number = code · 2^(scale - 127). Codes U8, two inputs in a byte, the even one in the low half: [.., K/2], or
// [.., K/32, 16]; scales U8 [.., K/32].
Tensor mxfp4_tensor(const std::string& name, const Tensor& codes, const Tensor& scales);

// number = table[code] · scale, for each `block` numbers of the rows one behind the other. Codes are bytes, the first
// of two in the high half, whatever type the tensor says (bnb_4bit_quant_storage).
struct TableTensors {
  const Tensor* codes = nullptr;
  const Tensor* table = nullptr;   // F32 [16]: NF4's or FP4's
  const Tensor* scales = nullptr;  // F32, or U8: nested_table[scale] · nested_scales[i / nested_block] + nested_offset
  const Tensor* nested_table = nullptr;
  const Tensor* nested_scales = nullptr;
  std::uint64_t nested_block = 256;
  float nested_offset = 0.0f;
  std::uint64_t block = 64;
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
};
Tensor table_tensor(const std::string& name, const TableTensors& from);

}  // namespace quire::model
