#include "core/model/quantized/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::model {

void refuse_tensor(const Tensor& tensor, const std::string& why) {
  throw StartError(tensor.file + ": tensor '" + log_safe(tensor.name) + "' " + why);
}

void expect_numbers(const Tensor& codes, const std::vector<std::uint64_t>& shape) {
  if (std::ranges::find(shape, 0u) != shape.end()) {
    refuse_tensor(codes, "has shape " + shape_text(codes.shape) + ": there are no numbers in it");
  }
}

void expect_tensor(const Tensor& tensor, std::string_view dtype, const std::vector<std::uint64_t>& shape) {
  if (tensor.dtype != dtype) {
    refuse_tensor(tensor, fmt::format("has dtype {}; expected {}", log_safe(tensor.dtype), dtype));
  }
  if (tensor.shape != shape) {
    refuse_tensor(tensor, "has shape " + shape_text(tensor.shape) + "; expected " + shape_text(shape));
  }
}

void refuse_groups(const Tensor& codes, std::uint64_t group, std::uint64_t inputs) {
  if (group % 32 != 0) refuse_tensor(codes, fmt::format("has groups of {} inputs; expected a multiple of 32", group));
  refuse_tensor(codes, fmt::format("has {} inputs; expected a multiple of 32", inputs));
}

}  // namespace quire::model
