// API keys as secrets, and the form in which they are stored: SHA-256 digests.
// Shape   a generated key is "qk-" and 64 hexadecimal digits, 256 bits from the operating system. Such a key can
//         neither be guessed nor found from its hash by trial, so a fast hash is enough, which every request can
//         afford. A slow hash (bcrypt, Argon2) is for passwords that people choose.
// Thread  any; pure functions, except new_secret().
// Source  FIPS 180-4; digests are compared by OpenSSL's CRYPTO_memcmp, in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace quire::api::keys {

inline constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<unsigned char, kDigestBytes>;

Digest digest_of(std::string_view secret);
bool equal(const Digest& a, const Digest& b);

std::string hex_of(const Digest& digest);
std::optional<Digest> digest_from_hex(std::string_view hex);  // exactly 64 digits of either case

std::string new_secret();

}  // namespace quire::api::keys
