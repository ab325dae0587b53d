#include "core/model/quantized/number_grid.h"

#include <cmath>
#include <cstring>
#include <string>

#include "core/base/float_bits.h"
#include "core/base/log.h"
#include "core/model/quantized/checks.h"

namespace quire::model {
namespace {

template <typename Bits, typename Widen>
std::vector<float> widened(const Tensor& tensor, const Widen& widen) {
  std::vector<float> out(tensor.num_elements());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, tensor.data.data() + i * sizeof(Bits), sizeof(Bits));
    out[i] = widen(bits);
  }
  return out;
}

float power_of_e8m0(std::uint8_t exponent) {
  return exponent == 255 ? std::nanf("") : std::ldexp(1.0f, static_cast<int>(exponent) - 127);
}

}  // namespace

bool has_numbers(const Tensor& tensor) {
  const std::string& type = tensor.dtype;
  return type == "F32" || type == "BF16" || type == "F16" || type == "F8_E4M3" || type == "U8" || type == "F8_E8M0";
}

std::vector<float> read_numbers(const Tensor& tensor) {
  const auto read = [&]() -> std::vector<float> {
    if (tensor.dtype == "F32") return widened<float>(tensor, [](float number) { return number; });
    if (tensor.dtype == "BF16") return widened<std::uint16_t>(tensor, f32_of_bf16);
    if (tensor.dtype == "F16") return widened<std::uint16_t>(tensor, f32_of_f16);
    if (tensor.dtype == "F8_E4M3") return widened<std::uint8_t>(tensor, f32_of_fp8);
    if (tensor.dtype == "U8" || tensor.dtype == "F8_E8M0") return widened<std::uint8_t>(tensor, power_of_e8m0);
    refuse_tensor(tensor,
                  "has dtype " + log_safe(tensor.dtype) + "; expected scales in F32, BF16, F16, F8_E4M3 or F8_E8M0");
  };
  std::vector<float> out = read();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(out[i]))
      refuse_tensor(tensor, "has a scale that is not a finite number, at " + std::to_string(i));
  }
  return out;
}

NumberGrid read_grid(const Tensor& tensor, bool transposed) {
  NumberGrid grid;
  const std::uint64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  const std::uint64_t columns = tensor.shape.size() < 2 ? 1 : tensor.shape[1];
  grid.outputs = transposed ? columns : rows;
  grid.groups = transposed ? rows : columns;
  grid.numbers = read_numbers(tensor);
  if (!transposed) return grid;
  std::vector<float> turned(grid.numbers.size());
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column)
      turned[column * rows + row] = grid.numbers[row * columns + column];
  }
  grid.numbers = std::move(turned);
  return grid;
}

float read_number(const Tensor& tensor) {
  if (tensor.num_elements() != 1)
    refuse_tensor(tensor, "has shape " + shape_text(tensor.shape) + "; expected one number");
  return read_numbers(tensor).front();
}

}  // namespace quire::model
