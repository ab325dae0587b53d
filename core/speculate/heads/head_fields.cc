#include "core/speculate/heads/head_fields.h"

#include <algorithm>
#include <array>

namespace quire::speculate {
namespace {

// Keys of bookkeeping: the forward pass does not use them.
constexpr std::array kHarmless = {"architectures", "model_type", "base_model_name_or_path",
                                  "torch_dtype",   "dtype",      "transformers_version",
                                  "_name_or_path"};
constexpr std::array kSizes = {"hidden_size", "vocab_size"};

bool among(const std::string& key, std::span<const char* const> keys) {
  return std::ranges::any_of(keys, [&](const char* known) { return key == known; });
}

}  // namespace

HeadFields::HeadFields(const model::JsonFields& fields, const model::ModelSpec& target)
    : fields_(fields), target_(target) {}

std::uint32_t HeadFields::uint(const char* key, std::uint64_t low, std::uint64_t high, std::uint32_t otherwise) {
  return problems_.take([&] { return fields_.require_uint(key, low, high); }, otherwise);
}

bool HeadFields::flag(const char* key) {
  return problems_.take([&] { return fields_.optional_bool(key).value_or(false); }, false);
}

std::string HeadFields::text(const char* key) {
  return problems_.take([&] { return fields_.optional_string(key).value_or(""); }, std::string());
}

void HeadFields::expect_sizes_of_target() {
  expect("hidden_size", target_.hidden);
  expect("vocab_size", target_.vocab);
}

void HeadFields::expect(const char* key, std::uint32_t value) {
  if (!has(key) || uint(key, 1, 1u << 30, value) == value) return;
  mismatch(key, "expected the target's, " + std::to_string(value));
}

void HeadFields::mismatch(const char* key, const std::string& expected) {
  problems_.take(
      [&] {
        fields_.mismatch(key, expected);
        return true;
      },
      true);
}

void HeadFields::refuse_others(std::span<const char* const> known) {
  for (const std::string& key : fields_.keys()) {
    if (among(key, known) || among(key, kHarmless) || among(key, kSizes)) continue;
    problems_.take([&]() -> bool { fields_.refuse(key, "is an unknown key; it may change what the heads compute"); },
                   false);
  }
}

}  // namespace quire::speculate
