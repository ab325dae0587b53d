#include "core/text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::text {
namespace {

using ::testing::ElementsAre;

AddedToken token(TokenId id, std::string content) {
  AddedToken made;
  made.id = id;
  made.content = content;
  made.match = std::move(content);
  return made;
}

// Pieces as text, tokens in angle brackets with their id: "a" "<7: x>".
std::vector<std::string> split(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<std::string> shown;
  for (const AddedTokens::Piece& piece : AddedTokens(tokens).split(text)) {
    const std::string own(piece.text);
    shown.push_back(piece.token ? "<" + std::to_string(*piece.token) + ":" + own + ">" : own);
  }
  return shown;
}

TEST(AddedTokens, TakeTheLeftmostAndOfTheseTheLongest) {
  const std::vector<AddedToken> tokens = {token(1, "ab"), token(2, "abcd"), token(3, "bcde")};
  EXPECT_THAT(split(tokens, "xabcdey"), ElementsAre("x", "<2:abcd>", "ey"));
  EXPECT_THAT(split(tokens, "abce"), ElementsAre("<1:ab>", "ce"));
  EXPECT_THAT(split(tokens, "bcdeab"), ElementsAre("<3:bcde>", "<1:ab>"));
}

TEST(AddedTokens, FindATokenBehindAFalseStart) {
  EXPECT_THAT(split({token(1, "<|end|>")}, "<|<|end|><|en"), ElementsAre("<|", "<1:<|end|>>", "<|en"));
}

TEST(AddedTokens, CoverTextWithoutTokens) {
  EXPECT_THAT(split({token(1, "x")}, "plain"), ElementsAre("plain"));
  EXPECT_THAT(split({}, "plain"), ElementsAre("plain"));
  EXPECT_THAT(split({token(1, "x")}, ""), ElementsAre());
  EXPECT_THAT(split({token(1, "")}, "plain"), ElementsAre("plain"));
}

TEST(AddedTokens, StripTakesBlanksOfEveryKindAlongButNoneTwice) {
  AddedToken left = token(1, "L"), right = token(2, "R");
  left.lstrip = true;
  right.rstrip = true;
  EXPECT_THAT(split({left, right}, "a \u3000\nL b R \t c"),
              ElementsAre("a", "<1: \u3000\nL>", " b ", "<2:R \t >", "c"));
  EXPECT_THAT(split({left, right}, "R  L"), ElementsAre("<2:R  >", "<1:L>"));
  EXPECT_THAT(split({left, right}, "  LR  "), ElementsAre("<1:  L>", "<2:R  >"));
}

TEST(AddedTokens, SingleWordStandsAloneAmongWordCharacters) {
  AddedToken word = token(1, "ab");
  word.single_word = true;
  EXPECT_THAT(split({word}, "ab xab abx éab ab-ab_"), ElementsAre("<1:ab>", " xab abx éab ", "<1:ab>", "-ab_"));
}

}  // namespace
}  // namespace quire::text
