#include "core/model/gguf/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/model/gguf/gguf_file.h"
#include "tests/support/gguf_writer.h"

namespace quire::model {
namespace {

using test::GgufWriter;
using ::testing::HasSubstr;

constexpr std::int32_t kNormalToken = 1;
constexpr std::int32_t kControlToken = 3;

struct Piece {
  std::string text;
  float score = 0.0f;
  std::int32_t type = kNormalToken;
};

std::string by_scores(const std::vector<Piece>& pieces) {
  GgufWriter file;
  file.head(0, 4);
  file.key("tokenizer.ggml.model", test::kString).text("llama");
  file.array("tokenizer.ggml.tokens", test::kString, pieces.size());
  for (const Piece& piece : pieces) file.text(piece.text);
  file.array("tokenizer.ggml.scores", test::kFloat, pieces.size());
  for (const Piece& piece : pieces) file.put(piece.score);
  constexpr std::uint32_t kInt32 = 5;
  file.array("tokenizer.ggml.token_type", kInt32, pieces.size());
  for (const Piece& piece : pieces) file.put(piece.type);
  return file.bytes;
}

// The refusal of the file; empty: it is read.
std::string tokenizer_refusal(const std::string& bytes) {
  try {
    gguf_tokenizer_json({std::as_bytes(std::span(bytes)), "x.gguf"});
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufTokenizer, TokensOfMoreThan512BytesAreRefusedWhereTheyAreMadeOfOthers) {
  EXPECT_EQ(tokenizer_refusal(by_scores({{"a"}, {std::string(511, 'a')}})), "");
  EXPECT_EQ(tokenizer_refusal(by_scores({{"a"}, {std::string(512, 'a')}})), "");
  EXPECT_THAT(tokenizer_refusal(by_scores({{"a"}, {std::string(513, 'a')}})),
              HasSubstr("key 'tokenizer.ggml.tokens' has a token of 513 bytes, number 1; at most 512 are read"));
  EXPECT_EQ(tokenizer_refusal(by_scores({{"a"}, {std::string(513, 'a'), 0.0f, kControlToken}})), "");
}

TEST(GgufTokenizer, ATokenOfTenMegabytesIsRefusedAtOnce) {
  const std::string file = by_scores({{"a"}, {std::string(10'000'000, 'a')}});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(tokenizer_refusal(file), HasSubstr("has a token of 10000000 bytes"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(GgufTokenizer, ScoresThatAreNoNumbersAreRefused) {
  EXPECT_THAT(tokenizer_refusal(by_scores({{"a"}, {"b", std::numeric_limits<float>::quiet_NaN()}})),
              HasSubstr("key 'tokenizer.ggml.scores' has an entry that is no number"));
  EXPECT_EQ(tokenizer_refusal(by_scores({{"a"}, {"b", -std::numeric_limits<float>::infinity()}})), "");
}

}  // namespace
}  // namespace quire::model
