// Scales of a checkpoint as f32: a tensor of F32, BF16, F16, F8_E4M3 or, as powers of two, U8 or F8_E8M0.
// Owner   borrows the tensor's data.
// Thread  any; pure.
// Fails   StartError naming the tensor: another type, another shape, or a number that is not finite.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/source/safetensors.h"

namespace quire::model {

// Numbers for each of `outputs` outputs and `groups` groups of inputs, in this order.
struct NumberGrid {
  std::uint64_t outputs = 0;
  std::uint64_t groups = 0;
  std::vector<float> numbers;

  float at(std::uint64_t output, std::uint64_t group) const { return numbers[output * groups + group]; }
};

// [outputs, groups], or its transpose.
NumberGrid read_grid(const Tensor& tensor, bool transposed = false);
// All numbers of a tensor, in its order.
std::vector<float> read_numbers(const Tensor& tensor);
// Of a tensor with one number.
float read_number(const Tensor& tensor);
bool has_numbers(const Tensor& tensor);  // its type is one of these

}  // namespace quire::model
