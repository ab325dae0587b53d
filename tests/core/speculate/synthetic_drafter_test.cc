#include "core/speculate/synthetic_drafter.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire::speculate::synthetic_drafter_test {
namespace {

using sample::TokenTree;

constexpr std::uint32_t kVocab = 5;

std::uint32_t right_in(const TokenTree& tree, const std::vector<TokenId>& answer, std::size_t said) {
  std::uint32_t right = 0;
  while (right < tree.size() && tree.token(right) == answer[said + right]) ++right;
  return right;
}

class SyntheticDrafterTest : public ::testing::Test {
 protected:
  SyntheticDrafter make(double alpha) {
    SyntheticDrafter out({.alpha = alpha, .seconds_per_node = 0.5, .vocab = kVocab},
                         [this](double seconds) { burnt_ += seconds; });
    for (TokenId i = 0; i < 40; ++i) answer_.push_back(i * i % static_cast<TokenId>(kVocab));
    out.add_answer(prompt_, answer_);
    out.admit({.seq = SeqId(1), .prompt = prompt_});
    out.admit({.seq = SeqId(2), .prompt = std::span(prompt_).first(1)});
    return out;
  }
  // The draft behind so many tokens of the answer.
  TokenTree ask(SyntheticDrafter& drafter, SeqId seq, std::size_t said, std::uint32_t nodes) {
    std::vector<TokenId> tokens = prompt_;
    tokens.insert(tokens.end(), answer_.begin(), answer_.begin() + static_cast<std::ptrdiff_t>(said));
    const std::vector<Asked> asked = {{.seq = seq, .tokens = tokens, .max_nodes = nodes, .max_depth = 16}};
    std::vector<TokenTree> trees(1);
    drafter.propose(asked, trees);
    return trees[0];
  }

  const RoleScope role_{engine_role};
  const std::vector<TokenId> prompt_ = {4, 2};
  std::vector<TokenId> answer_;
  double burnt_ = 0;
};

TEST_F(SyntheticDrafterTest, ProposesRightTokensAtItsRateAndNoneAfterAWrongOne) {
  SyntheticDrafter drafter = make(0.75);
  constexpr int kDrafts = 4000;
  double taken = 0;
  for (int i = 0; i < kDrafts; ++i) {
    const TokenTree tree = ask(drafter, SeqId(1), static_cast<std::size_t>(i) % 30, 2);
    ASSERT_EQ(tree.size(), 2u);
    ASSERT_TRUE(tree.is_chain());
    taken += right_in(tree, answer_, static_cast<std::size_t>(i) % 30);
  }
  EXPECT_NEAR(taken / kDrafts, 0.75 + 0.75 * 0.75, 0.05);  // four standard errors
}

TEST_F(SyntheticDrafterTest, IsAlwaysRightOrAlwaysWrongAtTheEnds) {
  SyntheticDrafter always = make(1);
  EXPECT_EQ(right_in(ask(always, SeqId(1), 3, 8), answer_, 3), 8u);
  SyntheticDrafter never = make(0);
  EXPECT_EQ(right_in(ask(never, SeqId(1), 3, 8), answer_, 3), 0u);
}

TEST_F(SyntheticDrafterTest, CostsWhatItsLongestDraftDoes) {
  SyntheticDrafter drafter = make(0.5);
  ask(drafter, SeqId(1), 0, 6);
  EXPECT_DOUBLE_EQ(burnt_, 3);
}

TEST_F(SyntheticDrafterTest, ProposesNothingAfterTheAnswerNorForUnknownSequences) {
  SyntheticDrafter drafter = make(1);
  EXPECT_EQ(ask(drafter, SeqId(1), 38, 8).size(), 2u);
  EXPECT_TRUE(ask(drafter, SeqId(2), 0, 8).empty());
  drafter.release(SeqId(1), /*ended=*/false);
  EXPECT_FALSE(ask(drafter, SeqId(1), 0, 8).empty());
  drafter.release(SeqId(1), /*ended=*/true);
  EXPECT_TRUE(ask(drafter, SeqId(1), 0, 8).empty());
}

}  // namespace
}  // namespace quire::speculate::synthetic_drafter_test
