#include "api/limits/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "core/base/check.h"

namespace quire::api::keys {
namespace {

static_assert(kDigestBytes == SHA256_DIGEST_LENGTH);

constexpr std::string_view kPrefix = "qk-";  // by which scanners for leaked keys find them
constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<unsigned> digit_of(char c) {
  const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::size_t at = kDigits.find(lower);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

}  // namespace

Digest digest_of(std::string_view secret) {
  Digest digest{};
  CHECK(SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data()) != nullptr);
  return digest;
}

bool equal(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), kDigestBytes) == 0; }

std::string hex_of(const Digest& digest) {
  std::string out;
  for (const unsigned char byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
  return out;
}

std::optional<Digest> digest_from_hex(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = digit_of(hex[2 * i]);
    const auto low = digit_of(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<unsigned char>(*high << 4 | *low);
  }
  return digest;
}

std::string new_secret() {
  Digest bits{};
  CHECK(RAND_bytes(bits.data(), static_cast<int>(bits.size())) == 1);
  return std::string(kPrefix) + hex_of(bits);
}

}  // namespace quire::api::keys
