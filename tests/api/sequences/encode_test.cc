#include "api/sequences/encode.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::test {
namespace {

class EncodeTest : public ::testing::Test {
 protected:
  Result<std::vector<TokenId>> encoded(const std::string& text) {
    return encode_prompt(text, request_, services_, allowance_);
  }

  test::World world_;
  Services services_ = world_.services();  // of a model that takes 512 tokens
  GenerationRequest request_;
  Allowance allowance_;
};

std::string words(std::size_t num) {
  std::string text;
  for (std::size_t i = 0; i < num; ++i) text += " king";
  return text;
}

TEST_F(EncodeTest, IsWhatTheTokenizerMakesOfItUpToTwiceTheLengthThatTheModelTakes) {
  for (const std::size_t num : {1u, 511u, 512u, 513u, 1023u, 1024u}) {
    const auto ids = encoded(words(num));
    ASSERT_TRUE(ids.ok()) << num;
    EXPECT_EQ(*ids, services_.tokenizer->encode(words(num), true));
  }
  for (const std::size_t num : {1025u, 5000u, 1'000'000u}) {
    const auto ids = encoded(words(num));
    ASSERT_FALSE(ids.ok()) << num;
    EXPECT_EQ(ids.error().param, "prompt");
    EXPECT_STREQ(ids.error().reason, "context_length_exceeded");
  }
}

TEST_F(EncodeTest, ATextThatIsToBeCutIsReadToItsEnd) {
  request_.truncate_prompt_tokens = 5;
  EXPECT_EQ(*encoded(words(5000)), services_.tokenizer->encode(words(5000), true));
  EXPECT_EQ(*encode_all(words(5000), request_, services_, allowance_), services_.tokenizer->encode(words(5000), true));
}

TEST_F(EncodeTest, EndsWithItsAllowance) {
  request_.truncate_prompt_tokens = 5;
  allowance_ = Allowance(std::chrono::hours(1), [] { return true; });
  const auto ids = encoded(words(100'000));
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, Code::kTimeout);
}

}  // namespace
}  // namespace quire::api::test
