#include "api/answer/call_ids.h"

#include <openssl/sha.h>

#include <string_view>

#include "core/base/check.h"

namespace quire::api::chat {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

std::string digest_of(const void* data, std::size_t size) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  CHECK(SHA256(static_cast<const unsigned char*>(data), size, digest) != nullptr);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

}  // namespace

CallIds::CallIds(CallFormat form, std::span<const TokenId> prompt, std::size_t num_before)
    : form_(form), num_before_(num_before), digest_(digest_of(prompt.data(), prompt.size_bytes())) {}

std::string CallIds::of(std::int64_t seed, std::size_t choice, std::size_t call, std::string_view name) const {
  if (form_ == CallFormat::kKimiK2) return "functions." + std::string(name) + ":" + std::to_string(num_before_ + call);
  const std::string text =
      digest_ + " " + std::to_string(seed) + " " + std::to_string(choice) + " " + std::to_string(call);
  const std::string digest = digest_of(text.data(), text.size());
  const bool is_short = form_ == CallFormat::kMistral || form_ == CallFormat::kMistralArgs;
  std::string id = is_short ? "" : "call_";
  const std::size_t length = is_short ? 9 : 24;
  for (std::size_t i = 0; i < length; ++i) id += kDigits[static_cast<unsigned char>(digest[i]) % kDigits.size()];
  return id;
}

}  // namespace quire::api::chat
