// Walks down drafts on the device, and what it leaves to the host: choices as the host's, bit for bit.
#include <gtest/gtest.h>

#include <bit>

#include "tests/gpu/choose_lab.h"

namespace quire::gpu::test::choose_verified_test {
namespace {

using sample::Accept;

// Few tokens, so that guesses are often right, and the same token below one node twice.
TokenTree random_tree(Dice& dice, std::uint32_t nodes, std::uint32_t vocab) {
  TokenTree tree;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const int parent = static_cast<int>(dice.below(i + 1)) - 1;
    tree.add(static_cast<TokenId>(dice.below(vocab + 1)), dice.one_in(2) ? static_cast<int>(i) - 1 : parent);
    if (dice.one_in(4)) tree.make_lookahead_node(i, static_cast<std::uint8_t>(i));
  }
  return tree;
}

// The rows of a walk: the root's, and its nodes', each with edits of its own.
void add_verification(Dice& dice, Step& step, std::uint32_t nodes, Accept accept) {
  LogitsRow pattern;
  draw_params(dice, step.vocab, pattern);
  pattern.params.accept = accept;
  const TokenTree* tree = nullptr;
  if (nodes > 0) {
    const std::uint32_t more = std::min(dice.below(3), TokenTree::kMaxNodes - nodes);  // nodes that were cut off
    tree = &step.trees.emplace_back(random_tree(dice, nodes + more, step.vocab));
  }
  for (std::uint32_t i = 0; i <= nodes; ++i) {
    LogitsRow& logits_row = step.add(random_row(dice, step.vocab));
    logits_row.params = pattern.params;
    logits_row.position = pattern.position + i;
    if (dice.one_in(3)) draw_edits(dice, step, logits_row);
    if (i == 0) {
      logits_row.num_nodes = nodes;
      logits_row.draft = tree;
    }
  }
}

// Nodes that a walk came to; lookahead nodes are not counted, who say something wherever they are.
std::uint32_t num_taken(const Step& step, const std::vector<Reported>& entry) {
  std::uint32_t num = 0;
  for (std::uint32_t root = 0; root < entry.size(); root += 1 + step.logits_rows[root].num_nodes) {
    const LogitsRow& logits_row = step.logits_rows[root];
    for (std::uint32_t i = 0; i < logits_row.num_nodes; ++i) {
      num += entry[root + 1 + i].choice.token >= 0 && !logits_row.draft->is_lookahead_node(i) ? 1 : 0;
    }
  }
  return num;
}

TEST(ChooseVerified, GoesDownRandomTreesAsTheHostDoes) {
  ChooseLab lab(3);
  std::uint32_t taken = 0;
  for (const std::uint32_t vocab : {2u, 5u, 40u}) {
    Dice dice(vocab);
    for (int round = 0; round < 12; ++round) {
      Step step(vocab);
      for (const std::uint32_t nodes : {0u, 1u, 5u, 1 + dice.below(20)})
        add_verification(dice, step, nodes, Accept::kMatch);
      ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
      ASSERT_TRUE(lab.chooser().left_to_host().empty());
      taken += num_taken(step, of_host(step));
    }
  }
  EXPECT_GT(taken, 15u);  // walks go on behind the root
}

TEST(ChooseVerified, GoesDownTheLargestTree) {
  ChooseLab lab(9);
  Dice dice(64);
  Step step(3);
  for (const std::uint32_t nodes : {TokenTree::kMaxNodes - 1, TokenTree::kMaxNodes}) {
    TokenTree& chain = step.trees.emplace_back();
    std::vector<float> row = {0.0f, 9.0f, 0.0f};
    for (std::uint32_t i = 0; i < nodes; ++i) chain.add(1, static_cast<int>(i) - 1);
    for (std::uint32_t i = 0; i <= nodes; ++i) step.add(row).params.temperature = 0.0f;
    LogitsRow& root = step.logits_rows[step.logits_rows.size() - nodes - 1];
    root.num_nodes = nodes;
    root.draft = &chain;
  }
  ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  EXPECT_EQ(lab.tokens().back(), 1);  // the last node, too, was come to
}

TEST(ChooseVerified, SaysTheSameWhicheverThreadGoesFirst) {
  Dice dice(21);
  Step step(5);
  for (const std::uint32_t nodes : {3u, 9u}) add_verification(dice, step, nodes, Accept::kMatch);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    ChooseLab lab(seed);
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

TEST(ChooseVerified, LeavesDraftsJudgedByRejectionToTheHostAmongRowsOfTheDevice) {
  ChooseLab lab;
  Dice dice(77);
  for (int round = 0; round < 6; ++round) {
    Step step(6, round);
    std::vector<std::uint32_t> by_rejection;
    for (const Accept accept : {Accept::kMatch, Accept::kRatio, Accept::kBlock, Accept::kMatch, Accept::kRatio}) {
      const auto first = static_cast<std::uint32_t>(step.logits_rows.size());
      add_verification(dice, step, dice.below(5), accept);
      if (!chosen_on_device(step.logits_rows[first])) by_rejection.push_back(first);
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
    EXPECT_TRUE(std::ranges::equal(lab.chooser().left_to_host(), by_rejection));
  }
}

TEST(ChooseVerified, KnowsAllButDraftsJudgedByRejection) {
  const float greedy = std::nextafter(sample::kGreedyTemperature, 0.0f);
  for (const Accept accept : {Accept::kMatch, Accept::kRatio, Accept::kBlock}) {
    for (const float temperature : {0.0f, greedy, sample::kGreedyTemperature, 1.0f}) {
      for (const std::uint32_t nodes : {0u, 1u}) {
        LogitsRow logits_row;
        logits_row.params.accept = accept;
        logits_row.params.temperature = temperature;
        logits_row.num_nodes = nodes;
        const bool by_rejection = accept != Accept::kMatch && temperature >= sample::kGreedyTemperature;
        EXPECT_EQ(chosen_on_device(logits_row), nodes == 0 || !by_rejection);
      }
    }
  }
}

Step step_of_edited_rows(std::uint32_t rows) {
  Dice dice(rows);
  Step step(40);
  for (std::uint32_t i = 0; i < rows; ++i) {
    LogitsRow& logits_row = step.add(random_row(dice, step.vocab));
    OwnedEdits& edits = step.edits.emplace_back();
    edits.forbidden = {static_cast<TokenId>(i)};
    logits_row.edits = edits.view();
    logits_row.params.seed = i;
  }
  return step;
}

TEST(ChooseVerified, TakesMoreEditedRowsThanThereIsPlaceForInGroups) {
  constexpr std::uint32_t kMost = 4;
  struct Case {
    std::uint32_t rows;
    std::uint32_t groups;
  };
  for (const auto& [rows, groups] : {Case{kMost - 1, 1}, Case{kMost, 1}, Case{kMost + 1, 2}, Case{2 * kMost + 1, 3}}) {
    ChooseLab lab(1, 20, kMost);
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step_of_edited_rows(rows), lab));
    EXPECT_EQ(lab.chooser().num_groups(), groups) << rows;
    EXPECT_TRUE(lab.chooser().left_to_host().empty());
  }
}

TEST(ChooseVerified, LeavesToTheHostWhatOutgrowsTheRoomForEdits) {
  constexpr std::size_t kBytes = 64;  // of four edits
  for (const std::uint32_t num : {3u, 4u, 5u}) {
    ChooseLab lab(1, 20, 4, kBytes);
    Dice dice(num);
    Step step(10);
    for (const bool is_long : {false, true, false}) {
      LogitsRow& logits_row = step.add(random_row(dice, step.vocab));
      OwnedEdits& edits = step.edits.emplace_back();
      for (std::uint32_t i = 0; i < (is_long ? num : 1); ++i) {
        edits.each.push_back({static_cast<TokenId>(i), 1, 0.5f, true});
      }
      logits_row.edits = edits.view();
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
    EXPECT_EQ(lab.chooser().left_to_host().size(), num > 4 ? 1u : 0u) << num;
  }
}

TEST(ChooseVerified, SaysNothingOfAStepWithoutLogitsRows) {
  ChooseLab lab;
  Step step(4);
  step.logits.assign(4, 0.0f);
  EXPECT_TRUE(lab.choose(step).empty());
}

}  // namespace
}  // namespace quire::gpu::test::choose_verified_test
