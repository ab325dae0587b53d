#include "api/limits/secret.h"

#include <gtest/gtest.h>

#include <set>

namespace quire::api::keys {
namespace {

// FIPS 180-4's example.
constexpr const char* kDigestOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Secret, ADigestIsSha256) { EXPECT_EQ(hex_of(digest_of("abc")), kDigestOfAbc); }

TEST(Secret, HexComesBackAndNothingElseIsHex) {
  EXPECT_EQ(digest_from_hex(kDigestOfAbc), digest_of("abc"));
  EXPECT_EQ(digest_from_hex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"), digest_of("abc"));
  const std::string good = kDigestOfAbc;
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", "g" + good.substr(1), good.substr(1) + " "}) {
    EXPECT_FALSE(digest_from_hex(bad)) << bad;
  }
}

TEST(Secret, OneBitMakesADigestAnother) {
  const Digest digest = digest_of("abc");
  EXPECT_TRUE(equal(digest, digest_of("abc")));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    Digest other = digest;
    other[bit / 8] = static_cast<unsigned char>(other[bit / 8] ^ (1u << bit % 8));
    EXPECT_FALSE(equal(digest, other)) << bit;
  }
}

TEST(Secret, NewOnesAreLongPlainAndDifferent) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = new_secret();
    EXPECT_TRUE(secret.starts_with("qk-"));
    EXPECT_TRUE(digest_from_hex(secret.substr(3))) << "256 bits in hexadecimal digits";
    seen.insert(secret);
  }
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace quire::api::keys
