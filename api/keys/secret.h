// API keys as secrets, and what is kept of them: their SHA-256.
// Shape   a key of ours is "qk-" and 64 hexadecimal digits, 256 bits from the operating system. Nobody guesses such a key,
//         nor finds it from its hash by trying: so a fast hash is enough, and every request can afford one. A slow hash
//         (bcrypt, Argon2) is for passwords that people choose.
// Thread  any; pure functions, but for new_secret().
// Source  FIPS 180-4; the comparison is OpenSSL's CRYPTO_memcmp, whose time does not depend on what it compares.
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
std::optional<Digest> digest_from_hex(std::string_view hex);  // of exactly 64 digits, either case

std::string new_secret();

}  // namespace quire::api::keys
