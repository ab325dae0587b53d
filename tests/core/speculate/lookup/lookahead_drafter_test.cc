#include "core/speculate/lookup/lookahead_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "core/base/start_error.h"
#include "tests/core/speculate/lookup/listed_texts.h"
#include "tests/support/drafted_text.h"

namespace quire::speculate::lookahead_drafter_test {
namespace {

using test::DraftedText;
using test::Listed;
using test::random_tokens;
using test::same;
using test::same_drafts;
using test::Tokens;
using test::tokens_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What followed the token, newest first and each once, by looking through the whole text.
std::vector<Tokens> pooled(const Tokens& text, TokenId token, const LookaheadOptions& options) {
  std::vector<Tokens> out;
  for (std::size_t i = text.size(); i-- > 0 && out.size() < options.ngrams_per_token;) {
    if (text[i] != token || i + options.ngram_size > text.size()) continue;
    const Tokens follows(text.begin() + i + 1, text.begin() + i + options.ngram_size);
    if (std::ranges::find(out, follows) == out.end()) out.push_back(follows);
  }
  return out;
}

TEST(LookaheadDrafter, ProposesEveryNewestWayToGoOnFromTheLastToken) {
  const RoleScope role(engine_role);
  constexpr std::uint32_t kLongest = LookaheadDrafter::kLongest;
  for (const LookaheadOptions& options : {LookaheadOptions{}, LookaheadOptions{0, 2, 1}, LookaheadOptions{0, 3, 4}}) {
    for (const int vocab : {1, 2, 6, 20}) {
      LookaheadDrafter drafter(options);
      DraftedText text(drafter, 1, {0});
      for (const TokenId token : random_tokens(250, vocab, vocab)) {
        text.say({{token}});
        Listed expected;
        for (Tokens path : pooled(text.tokens(), text.tokens().back(), options)) {
          while (path.size() < kLongest) {
            const std::vector<Tokens> next = pooled(text.tokens(), path.back(), options);
            if (next.empty()) break;
            path.insert(path.end(), next[0].begin(), next[0].end());
          }
          path.resize(std::min<std::size_t>(path.size(), kLongest));
          expected.texts.push_back(path);
        }
        sample::TokenTree counted;
        Continuations().grow(expected, static_cast<std::uint32_t>(expected.texts.size()), {16, 9, 0.0f, 64}, counted);
        ASSERT_TRUE(same_drafts(text.draft(16, 9), counted)) << "vocab " << vocab << ", " << text.tokens().size();
      }
    }
  }
}

TEST(LookaheadDrafter, KnowsTheSameHoweverTheTextWasCutIntoSteps) {
  const RoleScope role(engine_role);
  const Tokens all = random_tokens(300, 8, 2);
  LookaheadDrafter drafter({});
  DraftedText whole(drafter, 1, all);
  const sample::TokenTree expected = whole.draft(32);
  ASSERT_FALSE(expected.empty());
  for (const std::size_t chunk : {1u, 17u}) {
    DraftedText text(drafter, 10 + chunk, all);
    for (std::size_t done = 0; done < all.size(); done += chunk) text.step(chunk);
    EXPECT_TRUE(same(text.draft(32), expected)) << chunk;
  }
  whole.release(false);
  EXPECT_TRUE(same(whole.draft(32), expected));
}

TEST(LookaheadDrafter, KeepsSoManyNgramsOfATokenHoweverLongTheText) {
  const RoleScope role(engine_role);
  LookaheadDrafter drafter({});
  DraftedText text(drafter, 1, random_tokens(100'000, 50, 3));
  text.step(100'000);
  EXPECT_EQ(drafter.bytes(), 50u * 7 * 4 * sizeof(TokenId));
  text.release(true);
  EXPECT_EQ(drafter.bytes(), 0u);
}

TEST(LookaheadDrafter, HasNoDraftForTextsThatAreTooShort) {
  const RoleScope role(engine_role);
  LookaheadDrafter drafter({.ngram_size = 3});
  for (const Tokens& tokens : {Tokens{}, Tokens{5}, Tokens{5, 5}}) {
    EXPECT_TRUE(DraftedText(drafter, 1, tokens).draft(8).empty());
  }
  EXPECT_THAT(tokens_of(DraftedText(drafter, 1, {5, 6, 5}).draft(4)), ElementsAre(6, 5, 6, 5));
}

// A model whose next token depends on the last one alone: it goes round all tokens, in an order that no text has shown
// yet.
struct Round {
  std::vector<TokenId> next;

  Round(int vocab, unsigned seed) : next(static_cast<std::size_t>(vocab)) {
    Tokens order(next.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (std::size_t i = 0; i < order.size(); ++i) next[order[i]] = order[(i + 1) % order.size()];
  }
  TokenId after(TokenId token) const { return next[static_cast<std::size_t>(token)]; }
};

// A sequence in steps: what the model says down the tree, and what its lookahead nodes' rows say, of the nodes that
// have a row.
class Steps {
 public:
  Steps(LookaheadDrafter& drafter, const Round& model, SeqId seq, Tokens prompt)
      : drafter_(drafter), model_(model), seq_(seq), tokens_(std::move(prompt)) {}

  sample::TokenTree step(std::uint32_t max_nodes, std::uint32_t max_rows = 64) REQUIRES(engine_role) {
    const Asked asked{seq_, tokens_, {}, nullptr, max_nodes, 64};
    sample::TokenTree tree;
    drafter_.propose({&asked, 1}, {&tree, 1});
    EXPECT_LE(tree.size(), max_nodes);
    sample::TokenTree run = tree;
    run.shrink_to(max_rows);
    std::vector<LookaheadResult> lookahead_results;
    for (std::uint32_t i = 0; i < run.size(); ++i) {
      if (run.is_lookahead_node(i)) lookahead_results.push_back({run.lookahead_node(i), model_.after(run.token(i))});
    }
    const auto first = static_cast<std::uint32_t>(tokens_.size() - 1);
    tokens_.push_back(model_.after(tokens_.back()));
    for (int at = run.child(-1, tokens_.back()); at >= 0; at = run.child(at, tokens_.back())) {
      tokens_.push_back(model_.after(tokens_.back()));
    }
    const std::vector<std::uint32_t> rows(tokens_.size() - 1 - first);
    const Observed observed{seq_, tokens_, first, rows, {}, false, lookahead_results};
    drafter_.observe({{&observed, 1}});
    return tree;
  }
  std::uint64_t steps_for(std::size_t count, std::uint32_t max_nodes, std::uint32_t max_rows = 64)
      REQUIRES(engine_role) {
    const std::size_t end = tokens_.size() + count;
    std::uint64_t steps = 0;
    for (; tokens_.size() < end; ++steps) step(max_nodes, max_rows);
    return steps;
  }
  const Tokens& tokens() const { return tokens_; }

 private:
  LookaheadDrafter& drafter_;
  const Round& model_;
  SeqId seq_;
  Tokens tokens_;
};

TEST(LookaheadDrafter, FindsNgramsWithItsWindowThatNoTextContains) {
  const RoleScope role(engine_role);
  const Round model(400, 1);
  for (unsigned seed = 0; seed < 5; ++seed) {
    Tokens prompt = random_tokens(30, 400, seed);
    const auto steps = [&](const LookaheadOptions& options, std::uint32_t max_rows = 64) REQUIRES(engine_role) {
      LookaheadDrafter drafter(options);
      return Steps(drafter, model, SeqId(1), prompt).steps_for(300, 64, max_rows);
    };
    EXPECT_GE(steps({}), 295u) << seed;  // nothing that it says comes again
    EXPECT_LT(steps({.window = 7}), 225u) << seed;
    EXPECT_LT(steps({.window = 4, .ngram_size = 3}), 280u) << seed;
    EXPECT_LT(steps({.window = 7}, /*max_rows=*/20), 280u) << seed;  // the first columns alone
  }
}

TEST(LookaheadDrafter, PutsTheWindowBehindCandidatesAndWithinEveryBudget) {
  const RoleScope role(engine_role);
  LookaheadDrafter with({.window = 7});
  LookaheadDrafter without({});
  const Tokens all = random_tokens(300, 5, 2);
  DraftedText text(with, 1, all);
  DraftedText plain(without, 1, all);
  text.step(300);
  plain.step(300);
  for (std::uint32_t max_nodes = 1; max_nodes <= 64; ++max_nodes) {
    const sample::TokenTree tree = text.draft(max_nodes);
    EXPECT_LE(tree.size(), max_nodes);
    // As many columns as fit into half of it leave this to candidates, which fill it: the pool has more.
    std::uint32_t columns = 0;
    while (columns < 7 && JacobiWindow::num_nodes(columns + 1, 5) <= max_nodes / 2) ++columns;
    sample::TokenTree candidates = tree;
    candidates.shrink_to(max_nodes - JacobiWindow::num_nodes(columns, 5));
    sample::TokenTree expected = plain.draft(candidates.size());
    EXPECT_EQ(tokens_of(candidates), tokens_of(expected)) << max_nodes;
    EXPECT_GE(std::popcount(tree.lookahead_nodes(64)), static_cast<int>(columns)) << max_nodes;
    for (std::uint32_t i = candidates.size(); i < tree.size(); ++i) EXPECT_EQ(tree.likely(i), 0.0f);
  }
}

TEST(LookaheadDrafter, BeginsItsWindowAnewWhereASequenceWasReleased) {
  const RoleScope role(engine_role);
  const Round model(400, 1);
  LookaheadDrafter drafter({.window = 7});
  Steps steps(drafter, model, SeqId(1), random_tokens(30, 400, 3));
  steps.steps_for(100, 64);
  EXPECT_GT(drafter.bytes(), 0u);
  drafter.release(SeqId(1), false);
  EXPECT_EQ(drafter.bytes(), 0u);
  LookaheadDrafter other({.window = 7});
  Steps anew(other, model, SeqId(9), steps.tokens());
  for (int step = 0; step < 30; ++step) EXPECT_TRUE(same_drafts(steps.step(64), anew.step(64))) << step;
  EXPECT_EQ(steps.tokens(), anew.tokens());
}

TEST(LookaheadDrafter, ReceivesNothingOfAWindowThatIsGone) {
  const RoleScope role(engine_role);
  LookaheadDrafter drafter({.window = 7});
  const Tokens tokens = {1, 2, 3, 4};
  const std::vector<std::uint32_t> rows(3);
  const std::vector<LookaheadResult> lookahead_results = {{0, 5}, {3, 6}};
  const Observed observed{SeqId(1), tokens, 0, rows, {}, false, lookahead_results};
  drafter.observe({{&observed, 1}});
  EXPECT_THAT(tokens_of(DraftedText(drafter, 1, tokens).draft(2)), IsEmpty());
}

TEST(LookaheadDrafter, RefusesOptionsOutOfRangeAllAtOnce) {
  for (const LookaheadOptions& options :
       {LookaheadOptions{0, 8, 32}, LookaheadOptions{31, 2, 1}, LookaheadOptions{32, 2, 1}, LookaheadOptions{4, 8, 7},
        LookaheadOptions{8, 5, 7}}) {
    EXPECT_NO_THROW(LookaheadDrafter{options});
  }
  const auto problem = [](const LookaheadOptions& options) -> std::string {
    try {
      LookaheadDrafter{options};
    } catch (const StartError& error) {
      return error.what();
    }
    return "";
  };
  const std::string all = problem({33, 1, 33});
  for (const char* part : {"window 33", "ngram_size 1", "guesses 33"}) EXPECT_THAT(all, HasSubstr(part));
  EXPECT_EQ(problem({11, 4, 7}), "window 11 and ngram_size 4: window · (ngram_size - 1) must be at most 32.");
  for (const char* part : {"ngram_size 9", "guesses 0"}) EXPECT_THAT(problem({1, 9, 0}), HasSubstr(part));
}

}  // namespace
}  // namespace quire::speculate::lookahead_drafter_test
