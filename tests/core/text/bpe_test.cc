#include "core/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/start_error.h"

namespace quire::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BpeSpec spec_of(std::vector<std::string> vocabulary, std::vector<std::pair<std::string, std::string>> merges) {
  BpeSpec spec;
  for (std::string& piece : vocabulary)
    spec.vocabulary.emplace_back(piece, static_cast<TokenId>(spec.vocabulary.size()));
  spec.merges = std::move(merges);
  return spec;
}

std::vector<std::string> pieces(const Bpe& bpe, std::string_view word) {
  std::vector<TokenId> ids;
  Bpe::Workspace workspace;
  bpe.encode(word, workspace, ids);
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.emplace_back(bpe.piece(id));
  return texts;
}

void expect_refused(const BpeSpec& spec, const std::string& why) {
  try {
    Bpe bpe(spec);
    ADD_FAILURE() << "was taken: " << why;
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(Bpe, MergesTheLowestRankFirstAndTheLeftmostAmongEquals) {
  const Bpe bpe(spec_of({"a", "b", "c", "bc", "ab", "aa"}, {{"b", "c"}, {"a", "b"}, {"a", "a"}}));
  EXPECT_THAT(pieces(bpe, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(pieces(bpe, "aaa"), ElementsAre("aa", "a"));
  EXPECT_THAT(pieces(bpe, "aab"), ElementsAre("a", "ab"));
}

TEST(Bpe, TakesAWholeWordOnlyIfItsMergesBuildIt) {
  BpeSpec spec = spec_of({"a", "b", "c", "bc", "ab", "abc"}, {{"b", "c"}, {"a", "b"}, {"ab", "c"}});
  EXPECT_THAT(pieces(Bpe(spec), "abc"), ElementsAre("a", "bc"));
  spec.ignore_merges = true;
  EXPECT_THAT(pieces(Bpe(spec), "abc"), ElementsAre("abc"));
}

TEST(Bpe, TheLastOfTwoEqualMergesHolds) {
  const Bpe bpe(spec_of({"a", "b", "c", "ab", "bc"}, {{"a", "b"}, {"b", "c"}, {"a", "b"}}));
  EXPECT_THAT(pieces(bpe, "abc"), ElementsAre("a", "bc"));
}

TEST(Bpe, SpellsUnknownCharactersInBytes) {
  BpeSpec spec = spec_of({"<unk>", "a", "<0xC3>", "<0xA9>"}, {});
  spec.byte_fallback = true;
  spec.unknown_token = "<unk>";
  const Bpe bpe(spec);
  EXPECT_THAT(pieces(bpe, "aé"), ElementsAre("a", "<0xC3>", "<0xA9>"));
  EXPECT_THAT(pieces(bpe, "aèa"), ElementsAre("a", "<unk>", "a"));  // <0xA8> is missing
}

TEST(Bpe, FusesUnknownCharactersOnlyIfAsked) {
  BpeSpec spec = spec_of({"<unk>", "a"}, {});
  EXPECT_THAT(pieces(Bpe(spec), "axya"), ElementsAre("a", "a"));  // no unknown token: dropped
  spec.unknown_token = "<unk>";
  EXPECT_THAT(pieces(Bpe(spec), "axya😀"), ElementsAre("a", "<unk>", "<unk>", "a", "<unk>"));
  spec.fuse_unknown = true;
  EXPECT_THAT(pieces(Bpe(spec), "axya😀"), ElementsAre("a", "<unk>", "a", "<unk>"));
}

TEST(Bpe, KnowsCharactersBeyondTheBasicPlane) {
  const Bpe bpe(spec_of({"😀", "!", "😀!"}, {{"😀", "!"}}));
  EXPECT_THAT(pieces(bpe, "😀!!"), ElementsAre("😀!", "!"));
}

TEST(Bpe, RefusesAVocabularyThatContradictsItself) {
  expect_refused(spec_of({"a", "b"}, {{"a", "b"}}), "merge 'a b'");
  expect_refused(spec_of({"a", "ab"}, {{"a", "b"}}), "merge 'a b'");
  expect_refused(spec_of({"a", "a"}, {}), "'a' occurs twice");
  BpeSpec shared = spec_of({"a", "b"}, {});
  shared.vocabulary[1].second = 0;
  expect_refused(shared, "share the id 0");
  BpeSpec unknown = spec_of({"a"}, {});
  unknown.unknown_token = "<unk>";
  expect_refused(unknown, "unk_token");
}

TEST(Bpe, TakesIdsBelowTwoToThe20) {
  constexpr TokenId kHighest = (1 << 20) - 1;
  BpeSpec spec = spec_of({"a", "b"}, {});
  for (const TokenId id : {kHighest - 1, kHighest}) {
    spec.vocabulary[1].second = id;
    EXPECT_EQ(Bpe(spec).piece(id), "b");
  }
  spec.vocabulary[1].second = kHighest + 1;
  expect_refused(spec, "outside 0..1048575");
}

// The definition, without heap, whole-word shortcut or cuts: of all pairs the lowest rank, the leftmost of these.
std::vector<std::string> merged_by_definition(const BpeSpec& spec, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    std::size_t best_rank = spec.merges.size(), best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto pair = std::pair(symbols[i], symbols[i + 1]);
      const auto rank =
          static_cast<std::size_t>(std::find(spec.merges.begin(), spec.merges.end(), pair) - spec.merges.begin());
      if (rank < best_rank) best_rank = rank, best = i;
    }
    if (best_rank == spec.merges.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, EqualsItsDefinitionOnRandomVocabulariesAndLongWords) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> vocabulary = {"a", "b", "c", "d", "e", "f"};
    std::vector<std::pair<std::string, std::string>> merges;
    const std::size_t num_merges = below(14);
    for (std::size_t i = 0; i < num_merges; ++i) {
      const std::string left = vocabulary[below(vocabulary.size())], right = vocabulary[below(vocabulary.size())];
      if (std::find(vocabulary.begin(), vocabulary.end(), left + right) != vocabulary.end()) continue;
      vocabulary.push_back(left + right);
      merges.emplace_back(left, right);
    }
    std::shuffle(merges.begin(), merges.end(), random);  // an order no training gives
    const BpeSpec spec = spec_of(vocabulary, merges);
    const Bpe bpe(spec);
    for (int i = 0; i < 20; ++i) {
      std::string word;
      const std::size_t size = 1 + below(200);
      while (word.size() < size) word += static_cast<char>('a' + below(6));
      ASSERT_EQ(pieces(bpe, word), merged_by_definition(spec, word)) << word;
    }
  }
}

}  // namespace
}  // namespace quire::text
