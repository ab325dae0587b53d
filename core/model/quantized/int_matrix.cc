#include "core/model/quantized/int_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/log.h"
#include "core/model/quantized/checks.h"
#include "core/model/quantized/number_grid.h"
#include "core/model/quantized/stored_format.h"

namespace quire::model {
namespace {

using backend::Format;

constexpr std::uint64_t kRun = 32;            // inputs whose codes are whole words
constexpr std::uint64_t kOutputsAtOnce = 64;  // unpacked before they are written; a multiple of 8
constexpr std::array<std::uint32_t, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

std::uint32_t word_at(const Tensor& tensor, std::uint64_t index) {
  std::uint32_t word;
  std::memcpy(&word, tensor.data.data() + index * sizeof(word), sizeof(word));
  return word;
}

// Code i of those that lie one behind the other from the lowest bit on; word(j) is word j of them.
template <typename Word>
std::uint32_t code_in_words(std::uint64_t i, std::uint32_t bits, const Word& word) {
  const std::uint64_t first = i * bits / 32;
  const auto shift = static_cast<std::uint32_t>(i * bits % 32);
  std::uint32_t code = word(first) >> shift;
  if (shift + bits > 32) code |= word(first + 1) << (32 - shift);
  return code & ((1u << bits) - 1);
}

// Of an output and a group.
std::int32_t zero_at(const Tensor& zeros, const IntTensors& from, std::uint64_t output, std::uint64_t group) {
  const std::uint32_t bits = from.bits;
  if (from.packing == IntPacking::kAlongInputs) {
    const auto word = [&](std::uint64_t j) { return word_at(zeros, j * zeros.shape[1] + group); };
    return static_cast<std::int32_t>(code_in_words(output, bits, word));
  }
  const std::uint64_t row = group * zeros.shape[1];
  if (from.packing == IntPacking::kAwq) {
    const auto place = static_cast<std::uint32_t>(std::ranges::find(kAwqOrder, output % 8) - kAwqOrder.begin());
    return static_cast<std::int32_t>(word_at(zeros, row + output / 8) >> (4 * place) & 15);
  }
  // One is added to the zeros of a word at once, as the programs do that read them: a carry runs on. Of 3 bits, which
  // cross words, to each alone.
  const std::uint32_t added = from.zeros_less_one ? 1 : 0;
  if (bits == 3) {
    const auto stored = [&](std::uint64_t j) { return word_at(zeros, row + j); };
    return static_cast<std::int32_t>((code_in_words(output, bits, stored) + added) & 7);
  }
  std::uint32_t ones = 0;
  for (std::uint32_t bit = 0; bit < 32; bit += bits) ones |= added << bit;
  const auto word = [&](std::uint64_t j) { return word_at(zeros, row + j) + ones; };
  return static_cast<std::int32_t>(code_in_words(output, bits, word));
}

// True if a zero is not the middle of the codes.
bool has_own_zeros(const IntTensors& from) {
  if (from.zeros == nullptr) return false;
  const std::uint64_t groups = from.group == 0 ? 1 : (from.inputs + from.group - 1) / from.group;
  for (std::uint64_t group = 0; group < groups; ++group) {
    for (std::uint64_t output = 0; output < from.outputs; ++output) {
      if (zero_at(*from.zeros, from, output, group) != 1 << (from.bits - 1)) return true;
    }
  }
  return false;
}

// The form of a written row: its format, and zeros beside codes or taken from them.
struct RowForm {
  Format format;
  bool has_zeros = false;    // a zero is written with each group
  bool takes_zeros = false;  // it is taken from each code before
  std::int32_t offset = 0;   // added to a code
  std::int32_t middle = 0;   // of the codes
};

class IntMatrix final : public CodedMatrix {
 public:
  IntMatrix(const IntTensors& from, std::vector<FileBytes> parts)
      : CodedMatrix(std::move(parts), columns_of(from)),
        codes_(*from.codes),
        scales_(*from.scales),
        zeros_(from.zeros == nullptr ? std::nullopt : std::optional(*from.zeros)),
        from_(from),
        form_(form_of(from)) {
    from_.codes = from_.scales = from_.zeros = from_.groups = nullptr;
  }

  const Format& format() const { return form_.format; }
  bool takes_int8_rows() const override { return from_.takes_int8_rows; }
  std::string settings() const override { return from_.zeros_less_one ? "zeros less 1" : ""; }

  void read(std::uint64_t, Format format, std::span<std::byte> rows) const override {
    const NumberGrid scales = read_scales();
    std::vector<std::uint8_t> codes(kOutputsAtOnce * from_.inputs);
    std::vector<std::uint8_t> ordered(columns().size());
    const std::size_t row_bytes = backend::row_bytes(format, from_.inputs);
    for (std::uint64_t first = 0; first < from_.outputs; first += kOutputsAtOnce) {
      const std::uint64_t count = std::min(kOutputsAtOnce, from_.outputs - first);
      unpack(first, count, codes);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint8_t* row = codes.data() + i * from_.inputs;
        for (std::size_t j = 0; j < ordered.size(); ++j) ordered[j] = row[columns()[j]];
        write_row(format, first + i, scales, ordered.empty() ? row : ordered.data(),
                  rows.subspan((first + i) * row_bytes, row_bytes));
      }
    }
  }

  std::optional<Format> block_format() const override {
    if (!block_format_) block_format_ = found_block_format();
    return *block_format_;
  }

 private:
  std::optional<Format> found_block_format() const {
    const auto like = form_.format.is_blocks() ? backend::file_type_like(form_.format.blocks) : std::nullopt;
    if (!like) return std::nullopt;
    const auto is_half = [](float scale) { return f32_of_f16(f16_of_f32(scale)) == scale; };
    if (!std::ranges::all_of(read_scales().numbers, is_half)) return std::nullopt;
    return Format::of_blocks(*like);
  }

  NumberGrid read_scales() const {
    NumberGrid scales = read_grid(scales_, from_.packing == IntPacking::kGptq || from_.packing == IntPacking::kAwq);
    if (from_.divisor == 1.0f) return scales;
    for (float& scale : scales.numbers) scale /= from_.divisor;
    return scales;
  }

  // The inputs group by group, those of a group ascending. Empty: they are ascending.
  static std::vector<std::uint32_t> columns_of(const IntTensors& from) {
    if (from.groups == nullptr || from.group == 0) return {};
    const Tensor& groups = *from.groups;
    std::vector<std::vector<std::uint32_t>> of_group((from.inputs + from.group - 1) / from.group);
    for (std::uint32_t input = 0; input < from.inputs; ++input) {
      const std::uint32_t group = word_at(groups, input);
      if (group >= of_group.size()) {
        refuse_tensor(groups,
                      fmt::format("has group {} of input {}; expected one below {}", group, input, of_group.size()));
      }
      of_group[group].push_back(input);
    }
    std::vector<std::uint32_t> columns;
    for (std::size_t group = 0; group < of_group.size(); ++group) {
      const std::uint64_t expected = std::min(from.group, from.inputs - group * from.group);
      if (of_group[group].size() != expected) {
        refuse_tensor(groups,
                      fmt::format("has {} inputs in group {}; expected {}", of_group[group].size(), group, expected));
      }
      columns.insert(columns.end(), of_group[group].begin(), of_group[group].end());
    }
    return std::ranges::is_sorted(columns) ? std::vector<std::uint32_t>() : columns;
  }

  static RowForm form_of(const IntTensors& from) {
    const bool has_zeros = has_own_zeros(from);
    RowForm form;
    form.middle = 1 << (from.bits - 1);
    const auto format = int_format(from.bits, has_zeros, from.group, from.inputs);
    if (!format) refuse_groups(*from.codes, from.group, from.inputs);
    form.format = *format;
    form.has_zeros = format->is_blocks() && backend::layout_of(format->blocks).has_zeros;
    form.takes_zeros = has_zeros && !form.has_zeros;
    const std::int32_t zero = format->is_blocks() ? backend::layout_of(format->blocks).zero : 0;
    form.offset = form.takes_zeros ? zero : zero - form.middle;
    return form;
  }

  // Codes [count, K] of outputs from `first` on, from 0.
  void unpack(std::uint64_t first, std::uint64_t count, std::vector<std::uint8_t>& out) const {
    const std::uint64_t k = from_.inputs;
    const std::uint32_t bits = from_.bits;
    const auto put = [](std::uint32_t code) { return static_cast<std::uint8_t>(code); };
    if (from_.packing == IntPacking::kBytes) {
      std::memcpy(out.data(), codes_.data.data() + first * k, count * k);
      for (std::uint64_t i = 0; i < count * k; ++i) out[i] ^= 128;
    } else if (from_.packing == IntPacking::kAlongInputs) {
      const std::uint64_t words = codes_.shape[1];
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto word = [&](std::uint64_t j) { return word_at(codes_, (first + i) * words + j); };
        for (std::uint64_t input = 0; input < k; ++input) out[i * k + input] = put(code_in_words(input, bits, word));
      }
    } else if (from_.packing == IntPacking::kGptq) {
      for (std::uint64_t run = 0; run < k; run += kRun) {
        for (std::uint64_t i = 0; i < count; ++i) {
          std::array<std::uint32_t, 8> words{};
          for (std::uint32_t j = 0; j < bits; ++j)
            words[j] = word_at(codes_, (run * bits / 32 + j) * from_.outputs + first + i);
          const auto word = [&](std::uint64_t j) { return words[j]; };
          for (std::uint64_t input = 0; input < kRun; ++input)
            out[i * k + run + input] = put(code_in_words(input, bits, word));
        }
      }
    } else {
      // Eight rows are written side by side: those of all outputs at once would share a few sets of the cache.
      for (std::uint64_t i = 0; i < count; i += 8) {
        for (std::uint64_t input = 0; input < k; ++input) {
          const std::uint32_t word = word_at(codes_, input * codes_.shape[1] + (first + i) / 8);
          for (std::uint32_t j = 0; j < 8; ++j) out[(i + kAwqOrder[j]) * k + input] = put(word >> (4 * j) & 15);
        }
      }
    }
  }

  std::int32_t zero(std::uint64_t output, std::uint64_t group) const {
    return zeros_ ? zero_at(*zeros_, from_, output, group) : form_.middle;
  }

  void write_row(Format format, std::uint64_t output, const NumberGrid& scales, const std::uint8_t* codes,
                 std::span<std::byte> row) const {
    if (!format.is_blocks()) {
      for (std::uint64_t i = 0; i < from_.inputs; ++i) row[i] = static_cast<std::byte>(codes[i] + form_.offset);
      const float scale = scales.at(scales.outputs == 1 ? 0 : output, 0);
      std::memcpy(row.data() + from_.inputs, &scale, sizeof(scale));
      return;
    }
    const backend::BlockLayout& layout = backend::layout_of(format.blocks);
    for (std::uint64_t first = 0; first < from_.inputs; first += layout.elements) {
      const std::uint64_t group = from_.group == 0 ? 0 : first / from_.group;
      const float scale = scales.at(scales.outputs == 1 ? 0 : output, group);
      const std::int32_t z = zero(output, group);
      std::byte* block = row.data() + first / layout.elements * layout.bytes;
      if (format != form_.format) {
        put_block(layout, codes + first, f16_of_f32(scale), zero_of_codes(z), block);
        continue;
      }
      std::memcpy(block, &scale, sizeof(scale));
      block += sizeof(scale);
      if (form_.has_zeros) *block++ = static_cast<std::byte>(z - form_.middle);
      const std::int32_t added = form_.offset - (form_.takes_zeros ? z : 0);
      put_codes(codes + first, layout, added, block);
    }
  }

  // A number is its scale times a code less this.
  std::int32_t zero_of_codes(std::int32_t z) const { return form_.has_zeros || form_.takes_zeros ? z : form_.middle; }

  // As GGUF has them: the scale, the fifth bits, then codes i and i + 16 in a byte; or a byte for each.
  static void put_block(const backend::BlockLayout& layout, const std::uint8_t* codes, std::uint16_t scale,
                        std::int32_t zero, std::byte* out) {
    std::memcpy(out, &scale, sizeof(scale));
    out += sizeof(scale);
    const std::int32_t own_zero = layout.bits == 8 ? 0 : layout.zero;
    const auto code = [&](std::uint32_t i) { return static_cast<std::uint32_t>(codes[i] - zero + own_zero); };
    if (layout.bits == 8) {
      for (std::uint32_t i = 0; i < kRun; ++i) out[i] = static_cast<std::byte>(code(i));
      return;
    }
    if (layout.bits == 5) {
      std::uint32_t fifth = 0;
      for (std::uint32_t i = 0; i < kRun; ++i) fifth |= (code(i) >> 4 & 1) << i;
      std::memcpy(out, &fifth, sizeof(fifth));
      out += sizeof(fifth);
    }
    for (std::uint32_t i = 0; i < kRun / 2; ++i) {
      out[i] = static_cast<std::byte>((code(i) & 15) | (code(i + kRun / 2) & 15) << 4);
    }
  }

  static void put_codes(const std::uint8_t* codes, const backend::BlockLayout& layout, std::int32_t added,
                        std::byte* out) {
    std::uint32_t held = 0;
    std::uint32_t num_held = 0;
    for (std::uint32_t i = 0; i < layout.elements; ++i) {
      held |= (static_cast<std::uint32_t>(codes[i] + added) & ((1u << layout.bits) - 1)) << num_held;
      for (num_held += layout.bits; num_held >= 8; num_held -= 8, held >>= 8) *out++ = static_cast<std::byte>(held);
    }
  }

  Tensor codes_;
  Tensor scales_;
  std::optional<Tensor> zeros_;
  IntTensors from_;
  RowForm form_;
  mutable std::optional<std::optional<Format>> block_format_;  // once it was asked for
};

std::uint64_t words_of(std::uint64_t codes, std::uint32_t bits) { return (codes * bits + 31) / 32; }

void check(const IntTensors& from) {
  const std::uint64_t n = from.outputs;
  const std::uint64_t k = from.inputs;
  const std::uint64_t groups = from.group == 0 ? 1 : (k + from.group - 1) / from.group;
  switch (from.packing) {
    case IntPacking::kBytes:
      expect_tensor(*from.codes, "I8", {n, k});
      break;
    case IntPacking::kAlongInputs:
      expect_tensor(*from.codes, "I32", {n, words_of(k, from.bits)});
      if (from.zeros != nullptr) expect_tensor(*from.zeros, "I32", {words_of(n, from.bits), groups});
      break;
    case IntPacking::kGptq:
      expect_tensor(*from.codes, "I32", {words_of(k, from.bits), n});
      if (k % kRun != 0) refuse_tensor(*from.codes, fmt::format("has {} inputs; expected a multiple of {}", k, kRun));
      if (from.zeros != nullptr) expect_tensor(*from.zeros, "I32", {groups, words_of(n, from.bits)});
      break;
    case IntPacking::kAwq:
      if (n % 8 != 0) refuse_tensor(*from.codes, fmt::format("has {} outputs; expected a multiple of 8", n));
      expect_tensor(*from.codes, "I32", {k, n / 8});
      if (from.zeros != nullptr) expect_tensor(*from.zeros, "I32", {groups, n / 8});
      break;
  }
  const bool by_group_first = from.packing == IntPacking::kGptq || from.packing == IntPacking::kAwq;
  const std::vector<std::uint64_t>& shape = from.scales->shape;
  const bool is_for_outputs = groups == 1 && shape == std::vector<std::uint64_t>{n};
  const bool is_for_all = groups == 1 && from.scales->num_elements() == 1;
  const std::vector<std::uint64_t> expected = by_group_first ? std::vector{groups, n} : std::vector{n, groups};
  if (shape != expected && !is_for_outputs && !is_for_all) {
    refuse_tensor(*from.scales, "has shape " + shape_text(shape) + "; expected " + shape_text(expected));
  }
  if (from.groups != nullptr) expect_tensor(*from.groups, "I32", {k});
  if (!has_numbers(*from.scales))
    refuse_tensor(*from.scales, "has dtype " + log_safe(from.scales->dtype) + "; expected F32, BF16 or F16");
}

}  // namespace

Tensor int_tensor(const std::string& name, const IntTensors& from) {
  CHECK(from.bits >= 2 && from.bits <= 8);
  expect_numbers(*from.codes, {from.outputs, from.inputs});
  check(from);
  std::vector<FileBytes> parts = {from.codes->data, from.scales->data};
  for (const Tensor* tensor : {from.zeros, from.groups}) {
    if (tensor != nullptr) parts.push_back(tensor->data);
  }
  const auto matrix = std::make_shared<IntMatrix>(from, std::move(parts));
  Tensor tensor;
  tensor.name = name;
  tensor.shape = {from.outputs, from.inputs};
  tensor.file = from.codes->file;
  tensor.set_coded(matrix->format(), matrix);
  return tensor;
}

}  // namespace quire::model
