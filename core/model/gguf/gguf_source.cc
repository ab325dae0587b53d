#include "core/model/gguf/gguf_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::model {

GgufSource::GgufSource(const GgufSet& set) : set_(set), file_(set.metadata()) {
  const auto name = file_.text("general.architecture");
  if (!name) file_.refuse_key("general.architecture", "is missing: this is no model");
  architecture_ = *name;
}

std::uint64_t GgufSource::require_uint(std::string_view name) const {
  const auto value = uint(name);
  if (!value) file_.refuse_key(key(name), "is missing");
  return *value;
}

std::optional<double> GgufSource::number(std::string_view name) const {
  const auto value = file_.number(key(name));
  if (value && !std::isfinite(*value)) file_.refuse_key(key(name), "is not finite");
  return value;
}

std::uint64_t GgufSource::heads() const {
  const std::uint64_t number = require_uint("attention.head_count");
  if (number == 0) file_.refuse_key(key("attention.head_count"), "is 0");
  return number;
}

std::uint64_t GgufSource::blocks() const {
  constexpr std::uint64_t kMaxBlocks = 1u << 12;
  const std::uint64_t count = require_uint("block_count");
  if (count > kMaxBlocks) file_.refuse_key(key("block_count"), fmt::format("is {}; at most {}", count, kMaxBlocks));
  return count;
}

std::uint64_t GgufSource::layers() const {
  const std::uint64_t count = blocks();
  const std::uint64_t drafting = uint("nextn_predict_layers").value_or(0);
  if (drafting > count) {
    file_.refuse_key(key("nextn_predict_layers"), fmt::format("is {}; the model has {} blocks", drafting, count));
  }
  return count - drafting;
}

std::optional<std::vector<bool>> GgufSource::flags(std::string_view name) const {
  std::optional<std::vector<bool>> given = file_.flags(key(name));
  if (given && given->size() == blocks()) given->resize(layers());
  return given;
}

std::uint64_t GgufSource::kv_heads() const {
  const std::vector<std::uint64_t> numbers = by_layer("attention.head_count_kv");
  return numbers.empty() ? heads() : numbers.front();
}

std::vector<std::uint64_t> GgufSource::by_layer(std::string_view name) const {
  const auto given = file_.integers(key(name));
  if (!given) return {};
  const std::uint64_t num_layers = layers();
  if (given->size() != 1 && given->size() != blocks()) {
    file_.refuse_key(key(name),
                     fmt::format("has {} numbers; expected one for each of {} layers", given->size(), blocks()));
  }
  std::vector<std::uint64_t> out;
  for (const std::int64_t number : *given) {
    if (number < 0) file_.refuse_key(key(name), fmt::format("has {}; expected 0 or more", number));
    out.push_back(static_cast<std::uint64_t>(number));
  }
  if (!out.empty()) out.resize(num_layers, out.front());
  return out;
}

std::uint64_t GgufSource::head_dim() const {
  if (const auto given = uint("attention.key_length")) return *given;
  return require_uint("embedding_length") / heads();
}

const GgufTensor& GgufSource::require(std::string_view name) const {
  const GgufTensor* tensor = find(name);
  if (tensor == nullptr) throw StartError(fmt::format("{}: tensor '{}' is missing", file_.name(), name));
  return *tensor;
}

std::vector<float> GgufSource::numbers(const GgufTensor& tensor) const {
  if (tensor.dtype != "F32") refuse_tensor(tensor, fmt::format("has type {}; expected F32", tensor.dtype));
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), out.size() * sizeof(float));
  if (!std::ranges::all_of(out, [](float number) { return std::isfinite(number); })) {
    refuse_tensor(tensor, "has a number that is not finite");
  }
  return out;
}

void GgufSource::refuse_tensor(const GgufTensor& tensor, std::string_view why) const {
  throw StartError(fmt::format("{}: tensor '{}' {}", file_.name(), log_safe(tensor.name), why));
}

}  // namespace quire::model
