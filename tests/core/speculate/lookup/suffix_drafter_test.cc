#include "core/speculate/lookup/suffix_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/base/start_error.h"
#include "tests/core/speculate/lookup/listed_texts.h"
#include "tests/support/drafted_text.h"

namespace quire::speculate::suffix_drafter_test {
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

constexpr CacheNamespace kAnn{1, 1};
constexpr CacheNamespace kBob{1, 2};

// Everything by looking everywhere: texts as they are, in the order they were said, the newest last.
class Naive {
 public:
  Naive(SuffixOptions options, Tokens context, std::uint32_t max_nodes)
      : options_(options), context_(std::move(context)), max_nodes_(max_nodes) {}

  void look_in(const std::vector<Tokens>& texts, bool repeats) {
    for (std::uint32_t length = options_.max_tree_depth; length > 0; --length) {
      std::uint32_t run = 0;
      for (const std::uint32_t level : TextIndex::kLevels) run = level <= length ? level : run;
      std::vector<std::pair<std::size_t, Tokens>> found;  // how long the match is, and what follows
      std::uint32_t num_seen = 0;
      bool any_as_long = false;  // else a longer match had the same occurrences, and was allowed more
      for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
        for (std::size_t next = text->size(); next-- > 0;) {
          const std::size_t match = match_at(*text, next);
          if (match < run || ++num_seen > options_.max_occurrences) continue;
          any_as_long |= match == length;
          if (match >= length) found.emplace_back(match, behind(*text, next, repeats));
        }
      }
      // Of equally frequent tokens the longest match's comes first, then the newest.
      std::ranges::stable_sort(found, std::ranges::greater(), [](const auto& one) { return one.first; });
      Listed followers;
      for (auto& [match, text] : found) followers.texts.push_back(std::move(text));
      if (any_as_long) take_if_better(followers, length);
    }
  }
  const sample::TokenTree& best() const { return best_; }

 private:
  std::size_t match_at(const Tokens& text, std::size_t next) const {
    std::size_t length = 0;
    while (length < std::min<std::size_t>({next, context_.size(), options_.max_tree_depth}) &&
           text[next - 1 - length] == context_[context_.size() - 1 - length]) {
      ++length;
    }
    return length;
  }
  Tokens behind(const Tokens& text, std::size_t next, bool repeats) const {
    Tokens out(text.begin() + static_cast<std::ptrdiff_t>(next), text.end());
    const std::size_t once = out.size();
    while (repeats && out.size() < 64) out.push_back(out[out.size() - once]);
    return out;
  }
  void take_if_better(const Listed& followers, std::uint32_t length) {
    const auto allowed = static_cast<std::uint32_t>(options_.max_spec_factor * static_cast<float>(length) +
                                                    static_cast<float>(options_.max_spec_offset));
    sample::TokenTree tree;
    const float score = Continuations().grow(
        followers, static_cast<std::uint32_t>(followers.texts.size()),
        {std::min({allowed, max_nodes_, options_.max_tree_depth}), 64, options_.min_token_prob, options_.width}, tree);
    if (score <= score_) return;
    score_ = score;
    best_ = tree;
  }

  SuffixOptions options_;
  Tokens context_;
  std::uint32_t max_nodes_;
  float score_ = 0.0f;
  sample::TokenTree best_;
};

TEST(SuffixDrafter, ProposesWhatCountingEverywhereProposes) {
  const RoleScope role(engine_role);
  for (const std::uint32_t width : {1u, 2u, 16u}) {
    for (const int vocab : {1, 2, 4, 12}) {
      for (const std::uint32_t max_occurrences : {3u, 4096u}) {
        SCOPED_TRACE(::testing::Message() << "width " << width << " vocab " << vocab << " of " << max_occurrences);
        SuffixOptions options{.max_tree_depth = 12, .max_occurrences = max_occurrences, .width = width};
        options.max_spec_factor = vocab == 2 ? 0.7f : 1.5f;
        options.max_spec_offset = vocab == 4 ? 3 : 0;
        SuffixDrafter drafter(options);
        std::vector<Tokens> past;
        for (unsigned id = 0; id < 8; ++id) {
          DraftedText text(drafter, id, random_tokens(id == 5 ? 1 : 20, vocab, id), kAnn);
          const std::size_t prompt_tokens = text.tokens().size();
          for (const TokenId token : random_tokens(40, vocab, 100 + id)) {
            text.say({{token}});
            const std::uint32_t max_nodes = 1 + text.tokens().size() % 16;
            Naive naive(options, text.tokens(), max_nodes);
            naive.look_in({text.tokens()}, /*repeats=*/true);
            naive.look_in(past, /*repeats=*/false);
            ASSERT_TRUE(same_drafts(text.draft(max_nodes), naive.best()))
                << "sequence " << id << ", " << text.tokens().size();
          }
          past.emplace_back(text.tokens().begin() + static_cast<std::ptrdiff_t>(prompt_tokens), text.tokens().end());
          text.release(/*ended=*/true);
        }
      }
    }
  }
}

TEST(SuffixDrafter, ProposesTheLongestRepeatOfEarlierText) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  const Tokens said = random_tokens(200, 50'000, 1);
  DraftedText text(drafter, 1, said);
  text.say(std::span(said).first(20));
  EXPECT_EQ(tokens_of(text.draft(16)), Tokens(said.begin() + 20, said.begin() + 36));
}

TEST(SuffixDrafter, LearnsFromAnswersInTheSameNamespaceAlone) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  // Every root, and nobody at all, says other texts, all about the same words.
  std::map<std::optional<CacheNamespace>, std::set<TokenId>> words;
  const std::optional<CacheNamespace> namespaces[] = {kAnn, kBob, CacheNamespace{2, 1}, std::nullopt};
  std::uint64_t id = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < std::size(namespaces); ++i) {
      DraftedText text(drafter, ++id, {0, 1, 2}, namespaces[i]);
      text.step(3);
      std::set<TokenId>& own = words[namespaces[i]];
      const std::set<TokenId> known = own;
      for (int turn = 0; turn < 5; ++turn) {
        text.say(std::to_array<TokenId>({1, 2, static_cast<TokenId>(100 * (i + 1) + (round * 7 + turn) % 10)}));
        own.insert(text.tokens().back());
        text.say(std::to_array<TokenId>({1, 2}));
        for (const TokenId token : tokens_of(text.draft(64))) {
          ASSERT_TRUE(token <= 2 || own.contains(token)) << "root " << i << " is told " << token;
        }
      }
      if (round > 1 && namespaces[i]) {
        DraftedText fresh(drafter, ++id, {1, 2}, namespaces[i]);
        const Tokens draft_token = tokens_of(fresh.draft(64));
        ASSERT_FALSE(draft_token.empty());
        for (const TokenId token : draft_token) ASSERT_TRUE(token <= 2 || known.contains(token)) << "root " << i;
        fresh.release(true);
      }
      text.release(/*ended=*/true);
    }
  }
  EXPECT_EQ(drafter.num_namespaces(), 3u);
  DraftedText alone(drafter, ++id, {1, 2});
  EXPECT_TRUE(alone.draft(8).empty());
}

TEST(SuffixDrafter, KeepsAnswersAndNoPrompts) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  DraftedText first(drafter, 1, {10, 11, 12, 13, 14}, kAnn);
  first.say(std::to_array<TokenId>({20, 21, 22, 23}));
  first.release(true);
  DraftedText asks_for_the_prompt(drafter, 2, {10, 11}, kAnn);
  EXPECT_TRUE(asks_for_the_prompt.draft(4).empty());
  DraftedText asks_for_the_answer(drafter, 3, {20, 21}, kAnn);
  EXPECT_THAT(tokens_of(asks_for_the_answer.draft(4)), ElementsAre(22, 23));
}

TEST(SuffixDrafter, KnowsTheSameHoweverOftenASequenceWasSentBack) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  const Tokens all = random_tokens(300, 5, 2);
  DraftedText whole(drafter, 1, all, kAnn);
  whole.step(all.size());
  const sample::TokenTree expected = whole.draft(8);
  ASSERT_FALSE(expected.empty());
  for (const std::size_t chunk : {1u, 13u, 299u}) {
    DraftedText text(drafter, 10 + chunk, all, kAnn);
    for (std::size_t done = 0; done < all.size(); done += chunk) {
      text.step(chunk);
      if (done == 13 * 7) text.release(/*ended=*/false);
    }
    EXPECT_TRUE(same(text.draft(8), expected)) << chunk;
  }
  const std::uint64_t bytes = drafter.bytes();
  whole.release(false);
  EXPECT_LT(drafter.bytes(), bytes);
  EXPECT_TRUE(same(whole.draft(8), expected));
  whole.release(false);
  whole.admit();
  EXPECT_TRUE(same(whole.draft(8), expected));
}

TEST(SuffixDrafter, AnAnswerThatWasSentBackAndResumedIsKeptOnce) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  DraftedText text(drafter, 1, {1, 2}, kAnn);
  text.say(std::to_array<TokenId>({5, 6}));
  text.release(false);
  text.say(std::to_array<TokenId>({7, 8}));
  text.release(true);
  text.release(true);
  DraftedText next(drafter, 2, {5, 6}, kAnn);
  EXPECT_THAT(tokens_of(next.draft(9)), ElementsAre(7, 8));
  DraftedText other(drafter, 3, {2}, kAnn);
  EXPECT_TRUE(other.draft(9).empty());
}

TEST(SuffixDrafter, ForgetsTheOldestTokensFirst) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({.max_cached_tokens = 1000});  // a ring of 512
  std::vector<Tokens> said;
  for (unsigned id = 0; id < 40; ++id) {
    said.push_back(random_tokens(60, 1 << 20, id));
    DraftedText text(drafter, id, {1}, kAnn);
    text.say(said.back());
    text.release(true);
  }
  // 61 tokens each, with the end: eight of them stay whole, and the newer part of a ninth.
  for (unsigned id = 0; id < 40; ++id) {
    DraftedText early(drafter, 100 + id, {said[id][0], said[id][1]}, kAnn);
    EXPECT_EQ(early.draft(2).empty(), id < 32) << id;
    early.release(true);
    DraftedText late(drafter, 200 + id, {said[id][56], said[id][57]}, kAnn);
    EXPECT_EQ(late.draft(2).empty(), id < 31) << id;
    late.release(true);
  }
}

TEST(SuffixDrafter, AllNamespacesTogetherStayWithinTheirTokensAndTheOneNotFedForLongestGoes) {
  const RoleScope role(engine_role);
  constexpr std::uint32_t kTokens = 4096;
  SuffixDrafter drafter({.max_cached_tokens = kTokens});
  std::mt19937 random(3);
  std::uint64_t id = 0;
  for (int i = 0; i < 600; ++i) {
    const CacheNamespace cache_namespace{random() % 50, 0};
    DraftedText text(drafter, ++id, {1}, cache_namespace);
    text.say(random_tokens(1 + random() % 400, 1000, i));
    text.release(true);
    ASSERT_LE(drafter.cached_tokens(), kTokens);
    ASSERT_LE(drafter.bytes(), 52u * kTokens);
    ASSERT_LE(drafter.num_namespaces(), kTokens / 256);
    DraftedText again(drafter, ++id, {text.tokens()[0]}, cache_namespace);
    again.release(true);  // said nothing: kept nothing
  }
  EXPECT_GE(drafter.num_namespaces(), 2u);
}

TEST(SuffixDrafter, KeepsNothingWhereNothingMayBeKept) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({.max_cached_tokens = 0});
  DraftedText text(drafter, 1, {1, 2}, kAnn);
  text.say(std::to_array<TokenId>({3, 4, 5}));
  text.release(true);
  EXPECT_EQ(drafter.num_namespaces(), 0u);
  EXPECT_EQ(drafter.bytes(), 0u);
}

TEST(SuffixDrafter, TakesAnyTextInTimeThatGrowsWithItAlone) {
  const RoleScope role(engine_role);
  constexpr std::size_t kTokens = 100'000;
  for (const int vocab : {1, 2, 30'000}) {
    SuffixDrafter drafter({});
    DraftedText text(drafter, 1, random_tokens(kTokens, vocab, 3), kAnn);
    for (std::size_t done = 0; done < kTokens; done += 512) text.step(512);
    EXPECT_LT(drafter.num_probes(), 4 * 6 * kTokens) << vocab;
    const std::uint64_t before = drafter.num_probes();
    text.draft(8);
    EXPECT_LT(drafter.num_probes() - before, 4u * (128 + 64)) << vocab;
    EXPECT_LE(drafter.bytes(), 52u * (1 << 17)) << vocab;
  }
}

TEST(SuffixDrafter, HasNoDraftForTextsThatAreTooShortOrUnknown) {
  const RoleScope role(engine_role);
  SuffixDrafter drafter({});
  for (const Tokens& tokens : {Tokens{}, Tokens{5}, Tokens{5, 6}}) {
    DraftedText text(drafter, tokens.size(), tokens, kAnn);
    text.step(9);
    EXPECT_TRUE(text.draft(8).empty());
    text.release(true);
    EXPECT_TRUE(text.draft(8).empty());
  }
  DraftedText text(drafter, 9, {5, 5}, kAnn);
  EXPECT_THAT(tokens_of(text.draft(8)), ElementsAre(5));
}

TEST(SuffixDrafter, RefusesOptionsOutOfRangeAllAtOnce) {
  try {
    SuffixDrafter({.max_tree_depth = 0,
                   .max_cached_tokens = ~0u,
                   .max_own_tokens = 255,
                   .max_occurrences = 4097,
                   .max_spec_factor = -1.0f,
                   .max_spec_offset = 65,
                   .min_token_prob = 1.5f});
    FAIL();
  } catch (const StartError& error) {
    for (const char* name :
         {"max_tree_depth 0", "max_cached_tokens 4294967295", "max_own_tokens 255", "max_occurrences 4097",
          "max_spec_factor -1", "max_spec_offset 65", "min_token_prob 1.5"}) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
  EXPECT_THROW(SuffixDrafter({.min_token_prob = std::numeric_limits<float>::quiet_NaN()}), StartError);
}

}  // namespace
}  // namespace quire::speculate::suffix_drafter_test
