#include "core/model/quantized/float_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/model/quantized/checks.h"
#include "core/model/quantized/number_grid.h"
#include "core/model/quantized/stored_format.h"

namespace quire::model {
namespace {

using backend::BlockType;
using backend::Format;
using Shape = std::vector<std::uint64_t>;

// Its rows are written by a function.
class WrittenMatrix final : public CodedMatrix {
 public:
  using Write = std::function<void(std::uint64_t matrix, std::span<std::byte> rows)>;
  WrittenMatrix(std::vector<FileBytes> parts, Write write) : CodedMatrix(std::move(parts)), write_(std::move(write)) {}
  void read(std::uint64_t matrix, backend::Format, std::span<std::byte> rows) const override { write_(matrix, rows); }

 private:
  Write write_;
};

Tensor coded_tensor(const std::string& name, const Tensor& codes, Shape shape, Format format,
                    std::vector<FileBytes> parts, WrittenMatrix::Write write) {
  expect_numbers(codes, shape);
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.file = codes.file;
  tensor.set_coded(format, std::make_shared<WrittenMatrix>(std::move(parts), std::move(write)));
  return tensor;
}

void expect_matrix(const Tensor& codes, std::string_view dtype) {
  if (codes.shape.size() != 2) {
    refuse_tensor(codes, "has shape " + shape_text(codes.shape) + "; expected a matrix [outputs, inputs]");
  }
  expect_tensor(codes, dtype, codes.shape);
}

std::uint64_t parts_of(std::uint64_t size, std::uint64_t part) { return (size + part - 1) / part; }

// The extents of the part of a matrix that shares a scale.
struct ScaledPart {
  std::uint64_t outputs;
  std::uint64_t inputs;
};
ScaledPart scaled_part(const Fp8Tensors& from) {
  const std::uint64_t n = from.codes->shape[from.codes->shape.size() - 2];
  const std::uint64_t k = from.codes->shape.back();
  // Of one matrix, where there are several.
  const auto first = from.scales->shape.begin() + (from.codes->shape.size() == 3 ? 1 : 0);
  Shape shape(first, from.scales->shape.end());
  if (shape.size() == 4 && shape[1] == 1 && shape[3] == 1) shape = {shape[0], shape[2]};  // ModelOpt's blocks
  const bool is_matrix = shape.size() == 2;
  if (shape == Shape{n} || shape == Shape{n, 1}) return {1, k};
  if (is_matrix && shape[0] == parts_of(n, from.block_outputs) && shape[1] == parts_of(k, from.block_inputs)) {
    return {from.block_outputs, from.block_inputs};
  }
  if (is_matrix && shape[0] == n && shape[1] != 0 && k % shape[1] == 0) return {1, k / shape[1]};
  if (std::ranges::all_of(shape, [](std::uint64_t extent) { return extent == 1; })) return {n, k};
  refuse_tensor(
      *from.scales,
      fmt::format("has shape {}; expected one scale, one for each of {} outputs, or {} for blocks of {} by {}",
                  shape_text(shape), n,
                  shape_text(Shape{parts_of(n, from.block_outputs), parts_of(k, from.block_inputs)}),
                  from.block_outputs, from.block_inputs));
}

// Two codes of 4 bits in a byte, the even one in the low half.
std::byte nibble(FileBytes codes, std::uint64_t i) { return codes[i / 2] >> (i % 2 * 4) & std::byte{15}; }

// As GGUF has them: four scales, then for each 16 inputs codes i and i + 8 in a byte.
void write_nvfp4_block(FileBytes codes, FileBytes scales, std::uint64_t first, std::byte* out) {
  std::memcpy(out, scales.data() + first / 16, 4);
  out += 4;
  for (std::uint64_t group = first; group < first + 64; group += 16) {
    for (std::uint64_t i = group; i < group + 8; ++i) *out++ = nibble(codes, i) | nibble(codes, i + 8) << 4;
  }
}

// As GGUF has them: a scale, then codes i and i + 16 in a byte.
void write_mxfp4_block(FileBytes codes, FileBytes scales, std::uint64_t first, std::byte* out) {
  *out++ = scales[first / 32];
  for (std::uint64_t i = first; i < first + 16; ++i) *out++ = nibble(codes, i) | nibble(codes, i + 16) << 4;
}

}  // namespace

Tensor fp8_tensor(const std::string& name, const Fp8Tensors& from) {
  const Shape& shape = from.codes->shape;
  if (shape.size() != 2 && shape.size() != 3) {
    refuse_tensor(*from.codes, "has shape " + shape_text(shape) + "; expected a matrix [outputs, inputs], or several");
  }
  if (!has_numbers(*from.scales)) {
    refuse_tensor(*from.scales, "has dtype " + log_safe(from.scales->dtype) + "; expected F32, BF16, F16 or F8_E8M0");
  }
  const std::uint64_t count = shape.size() == 3 ? shape.front() : 1;
  if (shape.size() == 3 && (from.scales->shape.empty() || from.scales->shape.front() != count)) {
    refuse_tensor(*from.scales,
                  fmt::format("has shape {}; expected scales of {} matrices", shape_text(from.scales->shape), count));
  }
  const std::uint64_t n = shape[shape.size() - 2];
  const std::uint64_t k = shape.back();
  const ScaledPart part = scaled_part(from);
  const bool is_of_outputs = part.inputs >= k;
  const auto grouped = grouped_format(BlockType::kFp8G32, part.inputs, k);
  if (!is_of_outputs && !grouped) refuse_groups(*from.codes, part.inputs, k);
  const Format format = is_of_outputs ? Format::kFp8 : *grouped;
  const auto write = [codes = *from.codes, scales = *from.scales, part, format, n, k, is_of_outputs](
                         std::uint64_t matrix, std::span<std::byte> rows) {
    const std::vector<float> numbers = read_numbers(scales);
    const std::uint64_t groups = parts_of(k, part.inputs);
    const std::uint64_t first_scale = matrix * parts_of(n, part.outputs) * groups;
    const std::uint64_t width = is_of_outputs ? k : backend::layout_of(format.blocks).elements;
    std::byte* out = rows.data();
    for (std::uint64_t output = 0; output < n; ++output) {
      const std::byte* row = codes.data.data() + (matrix * n + output) * k;
      for (std::uint64_t first = 0; first < k; first += width) {
        const float scale = numbers[first_scale + output / part.outputs * groups + first / part.inputs];
        if (!is_of_outputs) std::memcpy(out, &scale, sizeof(scale));
        std::memcpy(out + (is_of_outputs ? 0 : sizeof(scale)), row + first, width);
        if (is_of_outputs) std::memcpy(out + width, &scale, sizeof(scale));
        out += width + sizeof(scale);
      }
    }
  };
  return coded_tensor(name, *from.codes, shape, format, {from.codes->data, from.scales->data}, write);
}

Tensor nvfp4_tensor(const std::string& name, const Nvfp4Tensors& from) {
  expect_matrix(*from.codes, "U8");
  const std::uint64_t n = from.codes->shape[0];
  const std::uint64_t k = 2 * from.codes->shape[1];
  if (k % 64 != 0) refuse_tensor(*from.codes, fmt::format("has {} inputs; expected a multiple of 64", k));
  expect_tensor(*from.scales, "F8_E4M3", {n, k / 16});
  const float number = read_number(*from.factor);
  if (number == 0.0f) refuse_tensor(*from.factor, "is 0");
  const auto write = [codes = *from.codes, scales = *from.scales, n, k](std::uint64_t, std::span<std::byte> rows) {
    const auto is_bad = [](std::byte scale) {
      return (scale & std::byte{0x80}) != std::byte{0} || scale == std::byte{0x7f};
    };
    if (std::ranges::any_of(scales.data, is_bad)) refuse_tensor(scales, "has a scale that is negative or not a number");
    std::byte* out = rows.data();
    for (std::uint64_t first = 0; first < n * k; first += 64, out += 36)
      write_nvfp4_block(codes.data, scales.data, first, out);
  };
  Tensor tensor = coded_tensor(name, *from.codes, {n, k}, Format::of_blocks(BlockType::kNVFP4),
                               {from.codes->data, from.scales->data, from.factor->data}, write);
  tensor.factors = {from.divides ? 1.0f / number : number};
  return tensor;
}

Tensor mxfp4_tensor(const std::string& name, const Tensor& codes, const Tensor& scales) {
  if (scales.shape.empty()) refuse_tensor(scales, "has shape []; expected a scale for each 32 inputs");
  Shape shape = scales.shape;
  shape.back() *= 32;
  Shape expected = shape;
  expected.back() /= 2;
  if (codes.shape.size() > shape.size()) {
    expected = scales.shape;
    expected.push_back(16);
  }
  expect_tensor(codes, "U8", expected);
  expect_tensor(scales, "U8", scales.shape);
  const std::uint64_t count = shape.size() > 2 ? shape.front() : 1;
  const auto write = [codes, scales, count](std::uint64_t matrix, std::span<std::byte> rows) {
    const std::size_t size = scales.data.size() / count;
    const FileBytes own = scales.data.subspan(matrix * size, size);
    const FileBytes own_codes = codes.data.subspan(matrix * 16 * size, 16 * size);
    if (std::ranges::find(own, std::byte{255}) != own.end()) refuse_tensor(scales, "has a scale that is not a number");
    for (std::size_t block = 0; block < size; ++block)
      write_mxfp4_block(own_codes, own, 32 * block, rows.data() + 17 * block);
  };
  return coded_tensor(name, codes, shape, Format::of_blocks(BlockType::kMXFP4), {codes.data, scales.data}, write);
}

namespace {

BlockType table_type(const Tensor& table) {
  expect_tensor(table, "F32", {16});
  const std::vector<float> numbers = read_numbers(table);
  if (std::ranges::equal(numbers, backend::kNf4Values)) return BlockType::kNf4G32;
  if (std::ranges::equal(numbers, backend::kFp4Values)) return BlockType::kFp4G32;
  refuse_tensor(table, "is neither NF4's table nor FP4's");
}

// The scales of blocks, as f32.
std::vector<float> table_scales(const TableTensors& from, const Tensor& scales, const Tensor& nested_table,
                                const Tensor& nested_scales) {
  if (scales.dtype == "F32") return read_numbers(scales);
  const std::vector<float> table = read_numbers(nested_table);
  const std::vector<float> outer = read_numbers(nested_scales);
  std::vector<float> out(scales.data.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = table[std::to_integer<std::size_t>(scales.data[i])] * outer[i / from.nested_block];
    out[i] += from.nested_offset;
  }
  return out;
}

void check_table(const TableTensors& from) {
  const std::uint64_t count = from.outputs * from.inputs;
  if (from.codes->data.size() != parts_of(count, 2)) {
    refuse_tensor(*from.codes,
                  fmt::format("is {} {}, {} bytes; expected {} bytes, two numbers in each", log_safe(from.codes->dtype),
                              shape_text(from.codes->shape), from.codes->data.size(), parts_of(count, 2)));
  }
  if (from.inputs % 32 != 0 || from.block % 32 != 0) {
    refuse_tensor(*from.codes,
                  fmt::format("has {} inputs in blocks of {}; expected multiples of 32", from.inputs, from.block));
  }
  const std::uint64_t blocks = parts_of(count, from.block);
  expect_tensor(*from.scales, from.nested_table == nullptr ? "F32" : "U8", {blocks});
  if (from.nested_table == nullptr) return;
  expect_tensor(*from.nested_table, "F32", {256});
  expect_tensor(*from.nested_scales, "F32", {parts_of(blocks, from.nested_block)});
}

}  // namespace

Tensor table_tensor(const std::string& name, const TableTensors& from) {
  check_table(from);
  // A block that lies in two rows is one of 32 numbers in each; check_table() has seen that these are whole.
  const Format format = *grouped_format(table_type(*from.table), from.block, from.inputs);
  const std::uint32_t group = backend::layout_of(format.blocks).elements;
  std::vector<FileBytes> parts = {from.codes->data, from.table->data, from.scales->data};
  const bool is_nested = from.nested_table != nullptr;
  if (is_nested) parts.insert(parts.end(), {from.nested_table->data, from.nested_scales->data});
  const auto write =
      [from, codes = *from.codes, scales = *from.scales, nested_table = is_nested ? *from.nested_table : Tensor(),
       nested_scales = is_nested ? *from.nested_scales : Tensor(), group](std::uint64_t, std::span<std::byte> rows) {
        const std::vector<float> numbers = table_scales(from, scales, nested_table, nested_scales);
        std::byte* out = rows.data();
        for (std::uint64_t first = 0; first < from.outputs * from.inputs; first += group) {
          const float scale = numbers[first / from.block];
          std::memcpy(out, &scale, sizeof(scale));
          out += sizeof(scale);
          for (std::uint64_t i = first; i < first + group; i += 2) {  // the first in the low half
            const std::byte two = codes.data[i / 2];
            *out++ = two >> 4 | two << 4;
          }
        }
      };
  return coded_tensor(name, *from.codes, {from.outputs, from.inputs}, format, std::move(parts), write);
}

}  // namespace quire::model
