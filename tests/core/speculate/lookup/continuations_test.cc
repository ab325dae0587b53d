#include "core/speculate/lookup/continuations.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace quire::speculate::continuations_test {
namespace {

using Tokens = std::vector<TokenId>;
using sample::TokenTree;

class Listed final : public Followers {
 public:
  explicit Listed(std::vector<Tokens> texts) : texts_(std::move(texts)) {}
  TokenId after(std::uint32_t i, std::uint32_t ahead) const override {
    return ahead < texts_[i].size() ? texts_[i][ahead] : kNothing;
  }
  // The chance of a path, counted: each step is a part of those that came so far.
  float likely(const Tokens& path) const {
    float product = 1.0f;
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
      product = product * static_cast<float>(count(path, depth + 1)) / static_cast<float>(count(path, depth));
    }
    return product;
  }
  std::size_t count(const Tokens& path, std::size_t depth) const {
    std::size_t sum = 0;
    for (const Tokens& text : texts_) {
      sum += text.size() >= depth && std::equal(path.begin(), path.begin() + depth, text.begin());
    }
    return sum;
  }
  const std::vector<Tokens>& texts() const { return texts_; }

 private:
  std::vector<Tokens> texts_;
};

Listed random_texts(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tokens> texts(1 + random() % 40);
  for (Tokens& text : texts) {
    text.resize(random() % 8);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % 3);
  }
  return Listed(texts);
}

Tokens path_to(const TokenTree& tree, std::uint32_t node) {
  Tokens path;
  for (int i = static_cast<int>(node); i != TokenTree::kRoot; i = tree.parent(i))
    path.insert(path.begin(), tree.token(i));
  return path;
}

// Every path that is likely enough, with its chance.
std::map<Tokens, float> all_paths(const Listed& texts, const GrowLimits& limits) {
  std::map<Tokens, float> out;
  for (const Tokens& text : texts.texts()) {
    for (std::size_t depth = 1; depth <= std::min<std::size_t>(text.size(), limits.max_depth); ++depth) {
      const Tokens path(text.begin(), text.begin() + depth);
      if (texts.likely(path) >= limits.min_likely) out[path] = texts.likely(path);
    }
  }
  return out;
}

TEST(Continuations, ATreeHoldsTheMostProbablePathsOfAll) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Listed texts = random_texts(seed);
    const GrowLimits limits{1 + seed % 20, 1 + seed % 6, 0.02f * static_cast<float>(seed % 5), 16};
    TokenTree tree;
    Continuations continuations;
    const float score = continuations.grow(texts, static_cast<std::uint32_t>(texts.texts().size()), limits, tree);
    std::map<Tokens, float> left = all_paths(texts, limits);
    EXPECT_EQ(tree.size(), std::min<std::size_t>(left.size(), limits.max_nodes));
    float sum = 0.0f;
    float least = 1.0f;
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      const auto known = left.find(path_to(tree, i));
      ASSERT_NE(known, left.end());  // a path of a text, and no path twice
      EXPECT_EQ(tree.likely(i), known->second);
      EXPECT_LE(tree.likely(i), least);
      least = tree.likely(i);
      sum += least;
      left.erase(known);
    }
    for (const auto& [path, likely] : left) EXPECT_LE(likely, least);
    EXPECT_EQ(score, sum);
    EXPECT_EQ(expected_taken(tree), sum);
  }
}

TEST(Continuations, ANodeHasItsMostFrequentChildrenUpToTheWidth) {
  const Listed texts({{1}, {2}, {3}, {2}, {3}, {3}});
  for (const std::uint32_t width : {1u, 2u, 3u, 4u}) {
    TokenTree tree;
    Continuations().grow(texts, 6, {8, 4, 0.0f, width}, tree);
    Tokens children;
    for (std::uint32_t i = 0; i < tree.size(); ++i) children.push_back(tree.token(i));
    const Tokens all = {3, 2, 1};
    EXPECT_EQ(children, Tokens(all.begin(), all.begin() + std::min(width, 3u))) << width;
  }
}

TEST(Continuations, AChainTakesTheMostFrequentTokenAndOfEqualOnesThatOfTheEarliest) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Listed texts = random_texts(seed);
    const GrowLimits limits{1 + seed % 7, 5, 0.1f, 1};
    TokenTree tree;
    Continuations().grow(texts, static_cast<std::uint32_t>(texts.texts().size()), limits, tree);
    Tokens path;
    while (path.size() < std::min(limits.max_nodes, limits.max_depth)) {
      Tokens best;
      for (const Tokens& text : texts.texts()) {  // the earliest comes first
        if (text.size() <= path.size() || !std::equal(path.begin(), path.end(), text.begin())) continue;
        const Tokens longer(text.begin(), text.begin() + path.size() + 1);
        if (best.empty() || texts.count(longer, longer.size()) > texts.count(best, best.size())) best = longer;
      }
      if (best.empty() || texts.likely(best) < limits.min_likely) break;
      path = best;
    }
    EXPECT_TRUE(tree.is_chain());
    EXPECT_EQ(tree.empty() ? Tokens{} : path_to(tree, tree.size() - 1), path);
  }
}

TEST(Continuations, NothingFollowsFromNothing) {
  TokenTree tree;
  EXPECT_EQ(Continuations().grow(Listed(std::vector<Tokens>{}), 0, {8, 8, 0.0f, 16}, tree), 0.0f);
  EXPECT_EQ(Continuations().grow(Listed({Tokens{}, Tokens{}}), 2, {8, 8, 0.0f, 16}, tree), 0.0f);
  EXPECT_EQ(Continuations().grow(Listed({Tokens{1}}), 1, {0, 8, 0.0f, 16}, tree), 0.0f);
  EXPECT_EQ(Continuations().grow(Listed({Tokens{1}}), 1, {8, 0, 0.0f, 16}, tree), 0.0f);
  EXPECT_TRUE(tree.empty());
}

}  // namespace
}  // namespace quire::speculate::continuations_test
