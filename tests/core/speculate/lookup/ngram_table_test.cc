#include "core/speculate/lookup/ngram_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/core/speculate/lookup/listed_texts.h"

namespace quire::speculate::ngram_table_test {
namespace {

using test::random_tokens;
using test::Tokens;

TEST(NgramTable, RemembersTheNewestPlaceOfEveryRunAsAMapDoes) {
  for (const std::uint32_t n : {1u, 2u, 3u, 8u}) {
    SCOPED_TRACE(n);
    const Tokens text = random_tokens(3000, 4, n);
    NgramTable table(n);
    std::map<Tokens, std::uint32_t> expected;
    for (std::uint32_t end = n - 1; end < text.size(); ++end) {
      const Tokens run(text.begin() + (end + 1 - n), text.begin() + (end + 1));
      const auto known = expected.find(run);
      ASSERT_EQ(table.put({text.data()}, end), known == expected.end() ? NgramTable::kNone : known->second);
      expected[run] = end;
    }
    EXPECT_EQ(table.size(), expected.size());
    for (const auto& [run, end] : expected) ASSERT_EQ(table.find({text.data()}, run), end);
    EXPECT_EQ(table.find({text.data()}, Tokens(n, 9)), NgramTable::kNone);
  }
}

TEST(NgramTable, ForgetsARunOnlyWhereItStoodLast) {
  const Tokens text = random_tokens(2000, 6, 1);
  NgramTable table(3);
  std::map<Tokens, std::uint32_t> expected;
  std::mt19937 random(2);
  for (std::uint32_t end = 2; end < text.size(); ++end) {
    table.put({text.data()}, end);
    expected[{text.begin() + (end - 2), text.begin() + (end + 1)}] = end;
    const std::uint32_t gone = 2 + random() % (end - 1);
    table.erase({text.data()}, gone);
    const auto known = expected.find({text.begin() + (gone - 2), text.begin() + (gone + 1)});
    if (known != expected.end() && known->second == gone) expected.erase(known);
    ASSERT_EQ(table.size(), expected.size());
  }
  for (std::uint32_t end = 2; end < text.size(); ++end) {
    const Tokens run(text.begin() + (end - 2), text.begin() + (end + 1));
    const auto known = expected.find(run);
    ASSERT_EQ(table.find({text.data()}, run), known == expected.end() ? NgramTable::kNone : known->second);
  }
}

TEST(NgramTable, TakesAtMost16BytesARun) {
  const Tokens text = random_tokens(100'000, 1 << 20, 3);
  NgramTable table(2);
  for (std::uint32_t end = 1; end < text.size(); ++end) {
    table.put({text.data()}, end);
    ASSERT_LE(table.bytes(), 16 * std::max<std::uint64_t>(table.size(), 16));
  }
}

TEST(NgramTable, LooksAtFewSlots) {
  for (const int vocab : {1, 2, 1 << 20}) {
    const Tokens text = random_tokens(100'000, vocab, 4);
    NgramTable table(4);
    for (std::uint32_t end = 3; end < text.size(); ++end) table.put({text.data()}, end);
    EXPECT_LT(table.num_probes(), 6 * text.size()) << vocab;  // growing puts each at most once more
  }
}

}  // namespace
}  // namespace quire::speculate::ngram_table_test
