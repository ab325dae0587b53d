#include "core/grammar/rules/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::grammar::vocabulary_test {
namespace {

TEST(Vocabulary, SortsTokensByTheirBytesInATree) {
  const Vocabulary vocabulary({"b", "", "ab", "a", "abc", "\xFF", "ab"}, {1});
  EXPECT_THAT(vocabulary.sorted(), ::testing::ElementsAre(3, 2, 6, 4, 0, 5));
  EXPECT_EQ(vocabulary.mask_words(), 1u);
  std::vector<std::string> nodes;
  for (std::uint32_t i = 0; i + 1 < vocabulary.tree().size(); ++i) {
    const Vocabulary::Node& node = vocabulary.tree()[i];
    std::string line = std::to_string(node.depth) + " " + std::to_string(int{node.byte}) + " <" +
                       std::to_string(node.end) + " " + std::to_string(int{node.reach});
    if (!vocabulary.tokens_at(i).empty()) line += ":";
    for (const TokenId token : vocabulary.tokens_at(i)) line += " " + std::to_string(token);
    nodes.push_back(line);
  }
  EXPECT_THAT(nodes, ::testing::ElementsAre("0 0 <6 3", "1 97 <4 3: 3", "2 98 <4 3: 2 6", "3 99 <4 3: 4",
                                            "1 98 <5 1: 0", "1 255 <6 1: 5"));
}

TEST(Vocabulary, ATokenThatEndsAddsNothingWhateverItsPiece) {
  const Vocabulary vocabulary({"a", "</s>"}, {1});
  EXPECT_EQ(vocabulary.piece(1), "");
  EXPECT_TRUE(vocabulary.is_end(1));
  EXPECT_FALSE(vocabulary.is_end(0));
  EXPECT_THAT(vocabulary.sorted(), ::testing::ElementsAre(0));
}

TEST(Vocabulary, MayBeEmpty) {
  const Vocabulary vocabulary({}, {});
  EXPECT_EQ(vocabulary.mask_words(), 0u);
  EXPECT_EQ(vocabulary.tree().size(), 2u);
}

}  // namespace
}  // namespace quire::grammar::vocabulary_test
