// Whatever is guessed, everything that a request hears is the same bits: chains and trees, right, wrong and impossible
// guesses, with every rule, grammar and number that one may ask for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/speculate/lookup/lookahead_drafter.h"
#include "tests/core/engine/exact_requests.h"
#include "tests/support/scripted_drafter.h"

namespace quire::engine::testing::exactness_drafts_test {
namespace {

using quire::testing::DrafterScript;
using quire::testing::ScriptedDrafter;

// Prompts with what was said behind them.
std::vector<std::vector<TokenId>> texts_of(const std::vector<std::vector<Received>>& answers) {
  const std::vector<Request> requests = many_requests();
  std::vector<std::vector<TokenId>> texts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (const Received& received : answers[i]) {
      texts.push_back(prompt_of(requests[i]));
      texts.back().insert(texts.back().end(), received.tokens.begin(), received.tokens.end());
    }
  }
  return texts;
}

class ExactDraftsTest : public ExactRequestsTest {
 protected:
  static void expect_no_change(const DrafterScript& how, Setting setting) {
    const auto alone = answers({.name = "alone", .together = false});
    ScriptedDrafter drafter(how, kVocab, texts_of(alone));
    setting.drafter = &drafter;
    if (setting.max_logits_rows == 0) setting.max_logits_rows = 64;
    expect_equal(answers(setting), alone, setting.name);
    EXPECT_GT(drafter.num_proposed, 0u) << setting.name;
    EXPECT_GT(drafter.num_observed, 0u) << setting.name;
    EXPECT_TRUE(drafter.num_scouted > 0 || GetParam() == backend::KvType::kInt4)
        << setting.name;  // few nodes run there
    EXPECT_GE(accepted_, how.truth > 0.5 ? 10u : 0u) << setting.name;
  }
};

TEST_P(ExactDraftsTest, ChainsThatAreMostlyRightChangeNothing) {
  expect_no_change({.truth = 0.9, .chains = true}, {.name = "together"});
  expect_no_change({.truth = 0.9, .chains = true}, {.name = "alone", .together = false});
}

TEST_P(ExactDraftsTest, TreesChangeNothing) {
  expect_no_change({.truth = 0.8}, {.name = "together"});
  expect_no_change({.truth = 0.8, .seed = 2}, {.name = "two threads, blocks of 32", .threads = 2, .block_tokens = 32});
  expect_no_change({.truth = 0.8, .seed = 3},
                   {.name = "64 nodes", .max_num_batched_tokens = 200, .max_draft_nodes = 64});
  expect_no_change({.truth = 0.8, .seed = 4}, {.name = "behind what others left", .warm = true});
  expect_no_change({.truth = 0.8, .seed = 5}, {.name = "without a prefix cache", .prefix_caching = false});
}

TEST_P(ExactDraftsTest, NonsenseChangesNothing) {
  expect_no_change({.truth = 0.3, .nonsense = true}, {.name = "together"});
  expect_no_change({.truth = 0.0, .nonsense = true, .seed = 7}, {.name = "alone", .together = false});
}

TEST_P(ExactDraftsTest, ShortRowsLogitsAndBlocksShrinkDraftsAndChangeNothing) {
  expect_no_change({.truth = 0.8}, {.name = "few rows", .max_num_batched_tokens = 20});
  expect_no_change({.truth = 0.8}, {.name = "few rows of logits", .max_num_seqs = 8, .max_logits_rows = 10});
  expect_no_change({.truth = 0.8}, {.name = "nine blocks", .num_blocks = 9});
  expect_no_change({.truth = 0.8}, {.name = "nine blocks, swapping", .num_blocks = 9, .num_swap_blocks = 12});
  expect_no_change({.truth = 0.8}, {.name = "sent back again and again", .max_num_seqs = 4, .storm = true});
}

TEST_P(ExactDraftsTest, AWindowOfDraftTokensChangesNothing) {
  const auto alone = answers({.name = "alone", .together = false});
  const Setting settings[] = {{.name = "together", .max_num_batched_tokens = 200},
                              {.name = "alone", .max_num_batched_tokens = 200, .together = false},
                              {.name = "few rows", .max_num_batched_tokens = 20},
                              {.name = "nine blocks", .num_blocks = 9},
                              {.name = "sent back again and again", .max_num_seqs = 4, .storm = true}};
  for (Setting setting : settings) {
    speculate::LookaheadDrafter drafter({.window = 5, .ngram_size = 4, .ngrams_per_token = 3});
    setting.drafter = &drafter;
    setting.max_draft_nodes = 40;
    setting.max_logits_rows = 100;
    expect_equal(answers(setting), alone, setting.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Cache, ExactDraftsTest,
                         ::testing::Values(backend::KvType::kF32, backend::KvType::kBF16, backend::KvType::kFp8,
                                           backend::KvType::kInt8, backend::KvType::kInt4),
                         [](const auto& parameter) { return std::string(backend::name_of(parameter.param)); });

}  // namespace
}  // namespace quire::engine::testing::exactness_drafts_test
