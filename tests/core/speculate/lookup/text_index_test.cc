#include "core/speculate/lookup/text_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace quire::speculate::text_index_test {
namespace {

using Tokens = std::vector<TokenId>;

constexpr std::uint32_t kMaxLength = 12;

// An occurrence by what can be seen of it: how long it is, and all that follows.
struct Seen {
  std::uint32_t length;
  Tokens behind;
  bool operator==(const Seen&) const = default;
};

Tokens behind(const TextIndex& index, std::uint32_t next) {
  Tokens out;
  for (std::uint32_t ahead = 0; out.size() < 64; ++ahead) {
    const TokenId token = index.after(next, ahead);
    if (token == TextIndex::kEnd) break;
    out.push_back(token);
  }
  return out;
}

std::vector<Seen> found(const TextIndex& index, const Tokens& context, std::size_t level, std::uint32_t max_count) {
  std::vector<TextIndex::Occurrence> raw;
  index.find(context, level, kMaxLength, max_count, raw);
  std::vector<Seen> out;
  for (const TextIndex::Occurrence& one : raw) out.push_back({one.length, behind(index, one.next)});
  return out;
}

// The same by looking everywhere, newest first.
std::vector<Seen> naive(const std::deque<TokenId>& text, const Tokens& context, std::size_t level,
                        std::uint32_t max_count) {
  std::vector<Seen> out;
  for (std::size_t next = text.size(); next-- > 0 && out.size() < max_count;) {
    if (text[next] == TextIndex::kEnd) continue;
    std::uint32_t length = 0;
    while (length < kMaxLength && length < context.size() && length < next &&
           text[next - 1 - length] != TextIndex::kEnd &&
           text[next - 1 - length] == context[context.size() - 1 - length]) {
      ++length;
    }
    if (length < TextIndex::kLevels[level]) continue;
    Tokens rest;
    for (std::size_t i = next; i < text.size() && text[i] != TextIndex::kEnd && rest.size() < 64; ++i)
      rest.push_back(text[i]);
    out.push_back({length, rest});
  }
  return out;
}

TEST(TextIndex, FindsWhatLookingEverywhereFinds) {
  for (const std::uint32_t capacity : {2u, 16u, 64u, 1024u}) {
    for (const int vocab : {1, 2, 3, 20}) {
      SCOPED_TRACE(::testing::Message() << "capacity " << capacity << " vocab " << vocab);
      std::mt19937 random(capacity + vocab);
      TextIndex index(capacity);
      std::deque<TokenId> text;
      Tokens context;
      for (int step = 0; step < 1500; ++step) {
        const auto token = random() % 40 == 0 ? TextIndex::kEnd : static_cast<TokenId>(random() % vocab);
        index.append(token);
        text.push_back(token);
        if (text.size() > capacity) text.pop_front();
        if (token != TextIndex::kEnd) context.push_back(token);
        if (context.size() > 40) context.erase(context.begin());
        const std::size_t level = step % TextIndex::kLevels.size();
        const std::uint32_t max_count = step % 3 == 0 ? 5 : 10'000;
        ASSERT_EQ(found(index, context, level, max_count), naive(text, context, level, max_count)) << "step " << step;
      }
    }
  }
}

TEST(TextIndex, TakesAtMost52BytesATokenOfItsRing) {
  std::mt19937 random(1);
  TextIndex index(1 << 14);
  for (int i = 0; i < 100'000; ++i) {
    index.append(static_cast<TokenId>(random() % 1000));
    ASSERT_LE(index.bytes(), 52u * index.capacity());
    ASSERT_LE(index.capacity(), 1u << 14);
  }
}

TEST(TextIndex, ATokenCostsTheSameHoweverLongTheText) {
  for (const int vocab : {1, 2, 50'000}) {
    std::mt19937 random(vocab);
    for (const std::uint32_t capacity : {4096u, 1u << 20}) {
      TextIndex index(capacity);
      for (int i = 0; i < 100'000; ++i) index.append(static_cast<TokenId>(random() % vocab));
      EXPECT_LT(index.num_probes(), 4u * 8 * 100'000) << vocab << " in " << capacity;
    }
  }
}

TEST(TextIndex, GoesOnAsIfTheTextRepeatsItself) {
  TextIndex index(64);
  for (const TokenId token : {7, 1, 2, 3, 1}) index.append(token);
  std::vector<TextIndex::Occurrence> raw;
  index.find(Tokens{1}, 0, kMaxLength, 1, raw);
  ASSERT_EQ(raw.size(), 1u);
  Tokens said;
  for (std::uint32_t ahead = 0; ahead < 7; ++ahead) said.push_back(index.after_repeating(raw[0].next, ahead));
  EXPECT_EQ(said, (Tokens{2, 3, 1, 2, 3, 1, 2}));
}

}  // namespace
}  // namespace quire::speculate::text_index_test
