// Checks of the tensors that a quantised matrix consists of.
// Thread  start.
// Fails   StartError naming file and tensor, what it has and what is expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/source/safetensors.h"

namespace quire::model {

[[noreturn]] void refuse_tensor(const Tensor& tensor, const std::string& why);
// Codes of matrices of that shape, which has no extent of 0.
void expect_numbers(const Tensor& codes, const std::vector<std::uint64_t>& shape);
void expect_tensor(const Tensor& tensor, std::string_view dtype, const std::vector<std::uint64_t>& shape);

// Refuses groups of inputs, or a number of inputs, that no format has (stored_format.h).
[[noreturn]] void refuse_groups(const Tensor& codes, std::uint64_t group, std::uint64_t inputs);

}  // namespace quire::model
