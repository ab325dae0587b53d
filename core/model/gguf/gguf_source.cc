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
