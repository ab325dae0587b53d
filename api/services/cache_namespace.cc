#include "api/services/cache_namespace.h"

#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "core/base/check.h"

namespace quire::api {
namespace {

constexpr std::string_view kTag = "quire prefix cache root 1";

void append_part(std::string& out, std::string_view part) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(std::uint64_t{part.size()} >> shift & 0xff);
  out += part;
}

std::uint64_t big_endian(const unsigned char* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

CacheNamespace cache_namespace(const CacheNamespaceParts& parts) {
  std::string input;
  for (const std::string_view part : {kTag, parts.numeric_mode, parts.adapter, parts.tenant, parts.salt}) {
    append_part(input, part);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  CHECK(SHA256(reinterpret_cast<const unsigned char*>(input.data()), input.size(), digest.data()) != nullptr);
  return {big_endian(digest.data()), big_endian(digest.data() + 8)};
}

CacheNamespace namespace_of_tenant(std::string_view fingerprint, std::string_view tenant, std::string_view salt) {
  const std::string named = "=" + std::string(tenant);
  return cache_namespace(
      {.numeric_mode = fingerprint, .adapter = {}, .tenant = tenant.empty() ? "0" : named, .salt = salt});
}

CacheNamespace unique_cache_namespace() {
  std::random_device device;
  const auto bits = [&device] { return std::uint64_t{device()} << 32 | device(); };
  const std::uint64_t high = bits();
  return {high, bits()};
}

}  // namespace quire::api
