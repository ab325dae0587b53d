#include "core/schedule/sequence/sequence_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/toy_grammars.h"

namespace quire::schedule {
namespace {

using flow::Finish;
using quire::testing::toy_grammar;
using quire::testing::toy_vocabulary;

constexpr std::uint32_t kVocab = 3;
constexpr TokenId kA = 0;
constexpr TokenId kB = 1;
constexpr TokenId kEnd = 2;
constexpr std::uint32_t kMaskA = 1u << kA;
constexpr std::uint32_t kMaskB = 1u << kB;
constexpr std::uint32_t kMaskEnd = 1u << kEnd;
constexpr int kRoot = sample::TokenTree::kRoot;
// Of toy_grammars.h.
constexpr int kNone = 0;
constexpr int kPairs = 2;   // ab, any number of times
constexpr int kNested = 3;  // a^n b^n

struct Asked {
  std::uint32_t max_tokens = 10;
  std::vector<TokenId> stop_tokens{};
  flow::KvPolicy kv_policy{};
  std::optional<sample::Rules> rules{};
};

flow::Request request_of(int grammar, const Asked& asked) {
  flow::Request request;
  request.prompt = {kA, kA};
  request.max_tokens = asked.max_tokens;
  request.stop_tokens = asked.stop_tokens;
  request.kv_policy = asked.kv_policy;
  if (grammar != kNone) request.grammar = toy_grammar(grammar, toy_vocabulary(kVocab));
  if (asked.rules) request.rules = std::make_shared<const sample::Rules>(*asked.rules);
  return request;
}

// Rules with what they refer to: a request, and a prompt of two tokens with the answer behind it.
struct Speech {
  Speech(int grammar, const Asked& asked) : request(request_of(grammar, asked)), tokens(request.prompt) {}
  Finish append(TokenId token) REQUIRES(engine_role) {
    tokens.push_back(token);
    return rules.note_token();
  }
  std::uint32_t mask() REQUIRES(engine_role) {
    const sample::Edits edits = rules.edits();
    return edits.allowed.size() == 1 ? edits.allowed[0] : ~0u;
  }

  flow::Request request;
  std::vector<TokenId> tokens;
  SequenceRules rules{request, tokens};
};

class SequenceRulesTest : public ::testing::Test {
 protected:
  Speech& make(int grammar, const Asked& asked = {}) REQUIRES(engine_role) {
    Speech& speech = all_.emplace_back(grammar, asked);
    speech.rules.reserve();
    return speech;
  }

  RoleScope role_{engine_role};
  std::deque<Speech> all_;
};

TEST_F(SequenceRulesTest, WithoutRulesAndGrammarNoRowIsEdited) {
  Speech& speech = make(kNone);
  sample::TokenTree draft;
  draft.add(kA, kRoot);
  EXPECT_FALSE(speech.rules.any());
  EXPECT_TRUE(speech.rules.edits().empty());
  EXPECT_TRUE(speech.rules.node_edits(draft, 1).empty());
  EXPECT_FALSE(speech.rules.forbids_all(kVocab));
  EXPECT_EQ(speech.rules.forced(), -1);
}

TEST_F(SequenceRulesTest, TheMaskHasTheTokensThatTheGrammarAllowsNext) {
  Speech& speech = make(kPairs);
  EXPECT_TRUE(speech.rules.any());
  EXPECT_EQ(speech.mask(), kMaskA | kMaskEnd);
  speech.append(kA);
  EXPECT_EQ(speech.mask(), kMaskB);
  EXPECT_EQ(speech.mask(), kMaskB) << "asking changes nothing";
  speech.append(kB);
  EXPECT_EQ(speech.mask(), kMaskA | kMaskEnd);
}

TEST_F(SequenceRulesTest, TheMaskLacksTheTokensThatTheRulesDoNotAllow) {
  Speech& speech = make(kPairs, {.rules = sample::Rules{.allowed = {kA}}});
  EXPECT_EQ(speech.mask(), kMaskA);
  EXPECT_FALSE(speech.rules.forbids_all(kVocab));
  speech.append(kA);
  EXPECT_EQ(speech.mask(), 0u);
  EXPECT_TRUE(speech.rules.forbids_all(kVocab)) << "the grammar requires b";
}

TEST_F(SequenceRulesTest, AllIsForbiddenOnlyIfTheLastTokenIs) {
  Speech& speech = make(kNone, {.rules = sample::Rules{.bad_words = {{kA}, {kB}}}});
  EXPECT_TRUE(speech.rules.forbids_all(2));
  EXPECT_FALSE(speech.rules.forbids_all(3));
}

TEST_F(SequenceRulesTest, TheTokensThatEndTheGrammarAreForbiddenBeforeMinTokens) {
  Speech& speech = make(kPairs, {.rules = sample::Rules{.min_tokens = 2}});
  const auto forbids_end = [&]() REQUIRES(engine_role) {
    return std::ranges::count(speech.rules.edits().forbidden, kEnd) == 1;
  };
  EXPECT_TRUE(forbids_end());
  speech.append(kA);
  EXPECT_TRUE(forbids_end());
  speech.append(kB);
  EXPECT_FALSE(forbids_end());
}

TEST_F(SequenceRulesTest, ATokenOfTheAnswerIsCountedAndOneOfThePromptIsNot) {
  Speech& speech = make(kNone, {.rules = sample::Rules{.frequency_penalty = 1.0f}});
  const auto times = [&](TokenId token) REQUIRES(engine_role) {
    std::uint32_t sum = 0;
    for (const sample::Edit& edit : speech.rules.edits().each) sum += edit.token == token ? edit.times : 0;
    return sum;
  };
  EXPECT_EQ(times(kA), 0u);
  speech.append(kA);
  speech.append(kA);
  EXPECT_EQ(times(kA), 2u);
  EXPECT_EQ(times(kB), 0u);
}

TEST_F(SequenceRulesTest, ATokenIsForcedIfTheGrammarAllowsNoOther) {
  Speech& speech = make(kPairs);
  EXPECT_EQ(speech.rules.forced(), -1) << "a, or the end";
  speech.append(kA);
  EXPECT_EQ(speech.rules.forced(), kB);
}

TEST_F(SequenceRulesTest, NoTokenIsForcedThatEndsTheSequence) {
  Speech& last = make(kNested);
  for (const TokenId token : {kA, kA, kB}) last.append(token);
  EXPECT_EQ(last.rules.forced(), -1) << "nothing may follow the second b";
  Speech& stopped = make(kPairs, {.stop_tokens = {kB}});
  stopped.append(kA);
  EXPECT_EQ(stopped.rules.forced(), -1);
  for (const std::uint32_t max_tokens : {2u, 3u}) {
    Speech& speech = make(kPairs, {.max_tokens = max_tokens});
    speech.append(kA);
    EXPECT_EQ(speech.rules.forced(), max_tokens == 3 ? kB : -1) << max_tokens;
  }
}

TEST_F(SequenceRulesTest, NoTokenIsForcedUnderRulesOrALossyPolicy) {
  Speech& ruled = make(kPairs, {.rules = sample::Rules{.presence_penalty = 1.0f}});
  ruled.append(kA);
  EXPECT_EQ(ruled.rules.forced(), -1);
  Speech& lossy = make(kPairs, {.kv_policy = {flow::KvPolicy::Kind::kSinkWindow, 16, 256, 0}});
  lossy.append(kA);
  EXPECT_EQ(lossy.rules.forced(), -1);
}

TEST_F(SequenceRulesTest, AStopTokenEndsTheSequenceAndSoDoesTheEndOfTheGrammar) {
  Speech& plain = make(kNone, {.stop_tokens = {kB}});
  EXPECT_EQ(plain.append(kA), Finish::kNone);
  EXPECT_EQ(plain.append(kB), Finish::kStop);
  Speech& pairs = make(kPairs);
  EXPECT_EQ(pairs.append(kEnd), Finish::kStop);
}

TEST_F(SequenceRulesTest, ATextThatNothingMayFollowIsComplete) {
  Speech& nested = make(kNested);
  for (const TokenId token : {kA, kA, kB}) EXPECT_EQ(nested.append(token), Finish::kNone);
  EXPECT_EQ(nested.append(kB), Finish::kComplete);
}

TEST_F(SequenceRulesTest, TheLastOfMaxTokensEndsTheSequenceUnlessItStopsAnyway) {
  Speech& plain = make(kNone, {.max_tokens = 2, .stop_tokens = {kB}});
  EXPECT_EQ(plain.append(kA), Finish::kNone);
  EXPECT_EQ(plain.append(kA), Finish::kLength);
  Speech& stopped = make(kNone, {.max_tokens = 1, .stop_tokens = {kB}});
  EXPECT_EQ(stopped.append(kB), Finish::kStop);
}

TEST_F(SequenceRulesTest, ADraftNodeHasTheMaskAfterItsOwnPath) {
  Speech& speech = make(kPairs);
  sample::TokenTree draft;
  const int a = draft.add(kA, kRoot);
  const int forbidden = draft.add(kB, kRoot);
  draft.add(kB, a);
  draft.add(kA, forbidden);
  draft.add(kEnd, kRoot);
  const auto edits = speech.rules.node_edits(draft, 5);
  ASSERT_EQ(edits.size(), 5u);
  EXPECT_EQ(edits[0].allowed[0], kMaskB);
  EXPECT_TRUE(edits[1].empty()) << "the grammar forbids b";
  EXPECT_EQ(edits[2].allowed[0], kMaskA | kMaskEnd);
  EXPECT_TRUE(edits[3].empty()) << "below a node that is forbidden";
  EXPECT_TRUE(edits[4].empty()) << "nothing comes after the end";
  EXPECT_EQ(speech.mask(), kMaskA | kMaskEnd) << "the draft is no part of the answer";
}

TEST_F(SequenceRulesTest, ADraftNodeCountsTheTokensOfItsOwnPath) {
  Speech& speech = make(kNone, {.rules = sample::Rules{.frequency_penalty = 1.0f}});
  speech.append(kA);
  sample::TokenTree draft;
  draft.add(kA, draft.add(kA, kRoot));
  draft.add(kB, kRoot);
  const auto times = [](const sample::Edits& edits, TokenId token) {
    std::uint32_t sum = 0;
    for (const sample::Edit& edit : edits.each) sum += edit.token == token ? edit.times : 0;
    return sum;
  };
  const auto edits = speech.rules.node_edits(draft, 3);
  EXPECT_EQ(times(edits[0], kA), 2u);
  EXPECT_EQ(times(edits[1], kA), 3u);
  EXPECT_EQ(times(edits[2], kA), 1u);
  EXPECT_EQ(times(edits[2], kB), 1u);
  EXPECT_EQ(times(speech.rules.edits(), kA), 1u) << "the draft is no part of the answer";
}

TEST_F(SequenceRulesTest, OnlyTheFirstNodesOfADraftAreLookedAtIfNoMoreRun) {
  Speech& speech = make(kPairs);
  sample::TokenTree draft;
  draft.add(kB, draft.add(kA, kRoot));
  EXPECT_EQ(speech.rules.node_edits(draft, 1).size(), 1u);
}

TEST_F(SequenceRulesTest, AfterItsMemoryWasReleasedItGoesOnWhereItStood) {
  Speech& speech = make(kPairs, {.rules = sample::Rules{.frequency_penalty = 1.0f}});
  speech.append(kA);
  speech.rules.release();
  speech.rules.reserve();
  const sample::Edits edits = speech.rules.edits();
  ASSERT_EQ(edits.allowed.size(), 1u);
  EXPECT_EQ(edits.allowed[0], kMaskB);
  ASSERT_FALSE(edits.each.empty());
  EXPECT_EQ(edits.each[0].token, kA);
  EXPECT_EQ(edits.each[0].times, 1u);
}

}  // namespace
}  // namespace quire::schedule
