#include "app/quantizing/quantize_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <vector>

#include "app/quantizing/tensor_file.h"
#include "core/backend/weights/quantize.h"
#include "core/base/float_bits.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_file.h"

namespace quire::app {
namespace {

using backend::Format;
using model::GgufTensor;

constexpr std::size_t kBlock = 32;
constexpr std::uint64_t kAlignment = 32;

template <typename Number>
void put(const Number& number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
void put_text(std::string_view text, std::string& out) {
  put(std::uint64_t{text.size()}, out);
  out += text;
}
void put_uint32(std::string_view key, std::uint32_t value, std::string& out) {
  put_text(key, out);
  put(model::GgufType::kUint32, out);
  put(value, out);
}

// To the nearest integer, halves away from zero, as numpy's formula for it has them.
float half_away_rounded(float x) {
  const float size = std::abs(x);
  const float whole = std::floor(size);
  return std::copysign(whole + std::floor(2.0f * (size - whole)), x);
}

void append_q8_0(std::span<const float> block, std::string& out) {
  float largest = 0.0f;
  for (const float number : block) largest = std::max(largest, std::abs(number));
  const float step = largest / 127.0f;
  const float inverse = step == 0.0f ? 0.0f : 1.0f / step;
  put(f16_of_f32(step), out);
  for (const float number : block)
    out += static_cast<char>(static_cast<std::int8_t>(half_away_rounded(number * inverse)));
}

void append_q4_0(std::span<const float> block, std::string& out) {
  float largest = 0.0f;  // with its sign; of equals the first
  for (const float number : block) {
    if (std::abs(number) > std::abs(largest)) largest = number;
  }
  const float step = largest / -8.0f;
  const float inverse = step == 0.0f ? 0.0f : 1.0f / step;
  put(f16_of_f32(step), out);
  const auto code = [&](float number) {
    return static_cast<std::uint8_t>(std::clamp(std::trunc(number * inverse + 8.5f), 0.0f, 15.0f));
  };
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    out += static_cast<char>(code(block[i]) | code(block[i + kBlock / 2]) << 4);
  }
}

std::optional<Format> plain_format(const GgufTensor& tensor) {
  if (tensor.dtype == "F32") return Format::kF32;
  if (tensor.dtype == "F16") return Format::kF16;
  if (tensor.dtype == "BF16") return Format::kBF16;
  return std::nullopt;
}

// True for the matrices of linear layers, embeddings and the output.
bool is_quantized(const GgufTensor& tensor) {
  constexpr std::string_view kKept[] = {"_norm.weight", "ffn_gate_inp",         "altup",
                                        "laurel",       "per_layer_model_proj", "position_embd",
                                        "token_types",  "ssm_conv1d",           "shortconv.conv"};
  const auto has = [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; };
  return tensor.shape.size() > 1 && tensor.name.ends_with(".weight") && plain_format(tensor) &&
         tensor.shape.back() % kBlock == 0 && std::ranges::none_of(kKept, has);
}

struct Planned {
  const GgufTensor* tensor;
  std::string_view type;
  std::uint64_t bytes;
};

std::vector<Planned> planned(const model::GgufFile& file, std::string_view type) {
  const bool is_tied = std::ranges::find(file.tensors(), "output.weight", &GgufTensor::name) == file.tensors().end();
  std::vector<Planned> out;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!is_quantized(tensor)) {
      out.push_back({&tensor, tensor.dtype, tensor.data.size()});
      continue;
    }
    const bool is_output = tensor.name == "output.weight" || (is_tied && tensor.name == "token_embd.weight");
    const std::string_view own = is_output ? "Q8_0" : type;
    std::uint64_t blocks = 1;
    for (const std::uint64_t extent : tensor.shape) blocks *= extent;
    out.push_back({&tensor, own, blocks / kBlock * (own == "Q8_0" ? 34 : 18)});
  }
  return out;
}

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Everything before the data.
std::string head(const model::GgufFile& file, std::string_view type, const std::vector<Planned>& tensors) {
  constexpr std::string_view kFileType = "general.file_type";
  constexpr std::string_view kVersion = "general.quantization_version";
  std::string values;
  std::uint64_t num_values = 2;
  for (const std::string_view key : file.keys()) {
    if (key == kFileType || key == kVersion || key == "general.alignment") continue;
    file.append_value(key, values);
    ++num_values;
  }
  put_uint32(kFileType, type == "Q8_0" ? 7 : 2, values);
  put_uint32(kVersion, 2, values);
  std::string out = "GGUF";
  put(std::uint32_t{3}, out);
  put(std::uint64_t{tensors.size()}, out);
  put(num_values, out);
  out += values;
  std::uint64_t offset = 0;
  for (const auto& [tensor, own, bytes] : tensors) {
    put_text(tensor->name, out);
    put(static_cast<std::uint32_t>(tensor->shape.size()), out);
    for (auto extent = tensor->shape.rbegin(); extent != tensor->shape.rend(); ++extent) put(*extent, out);
    put(model::gguf_type_id(own), out);
    put(offset, out);
    offset += aligned(bytes);
  }
  out.resize(aligned(out.size()));
  return out;
}

void write_tensor(const Planned& planned, std::ostream& out) {
  const GgufTensor& tensor = *planned.tensor;
  if (planned.type == tensor.dtype) {
    out.write(reinterpret_cast<const char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
  } else {
    const Format stored = *plain_format(tensor);
    std::vector<float> row(tensor.shape.back());
    const std::size_t row_bytes = backend::stored_bytes(stored, row.size());
    std::string blocks;
    for (std::size_t at = 0; at < tensor.data.size(); at += row_bytes) {
      backend::widen(tensor.data.data() + at, stored, row);
      blocks.clear();
      append_blocks(planned.type, row, blocks);
      out.write(blocks.data(), static_cast<std::streamsize>(blocks.size()));
    }
  }
  const std::string padding(aligned(planned.bytes) - planned.bytes, '\0');
  out.write(padding.data(), static_cast<std::streamsize>(padding.size()));
}

}  // namespace

void append_blocks(std::string_view type, std::span<const float> row, std::string& out) {
  for (std::size_t first = 0; first < row.size(); first += kBlock) {
    const auto append = type == "Q8_0" ? append_q8_0 : append_q4_0;
    append(row.subspan(first, kBlock), out);
  }
}

QuantizedGguf quantize_gguf(const std::string& model, std::string_view type, const std::string& out,
                            const std::function<void(std::uint64_t done, std::uint64_t size)>& on_progress) {
  const auto mapped = model::MappedFile::open(model);
  if (!mapped) throw StartError(model + ": " + mapped.error().message);
  const model::GgufFile file((*mapped)->bytes(), model);
  if (file.uint("split.count").value_or(1) > 1)
    throw StartError(model + " is one of several files: join them first, with llama-gguf-split --merge");
  const std::vector<Planned> tensors = planned(file, type);
  QuantizedGguf result{.bytes_before = (*mapped)->bytes().size()};
  for (const Planned& one : tensors) {
    result.bytes += aligned(one.bytes);
    if (one.type != one.tensor->dtype) ++result.num_matrices;
  }
  if (result.num_matrices == 0)
    throw StartError(model + " has no matrix in F32, F16 or BF16: give a file in one of these");
  const std::string begin = head(file, type, tensors);
  write_file(out, [&](std::ostream& stream) {
    stream.write(begin.data(), static_cast<std::streamsize>(begin.size()));
    std::uint64_t done = 0;
    for (const Planned& one : tensors) {
      write_tensor(one, stream);
      on_progress(done += aligned(one.bytes), result.bytes);
    }
  });
  result.bytes += begin.size();
  return result;
}

}  // namespace quire::app
