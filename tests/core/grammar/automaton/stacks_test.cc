#include "core/grammar/automaton/stacks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quire::grammar {
namespace {

std::vector<std::uint32_t> states_below(const Stacks& stacks, std::uint32_t node) {
  std::vector<std::uint32_t> states;
  for (; node != Stacks::kBottom; node = stacks.pop(node).below) states.push_back(stacks.pop(node).state);
  return states;
}

TEST(Stacks, EqualStacksAreOneNode) {
  Stacks stacks;
  const std::uint32_t a = stacks.push(5, Stacks::kBottom);
  const std::uint32_t b = stacks.push(6, a);
  EXPECT_EQ(stacks.push(5, Stacks::kBottom), a);
  EXPECT_EQ(stacks.push(6, a), b);
  EXPECT_NE(stacks.push(6, Stacks::kBottom), b);
  EXPECT_EQ(stacks.pop(b), (Stack{6, a}));
}

TEST(Stacks, ForgetsTheNodesPushedLast) {
  Stacks stacks;
  const std::uint32_t a = stacks.push(5, Stacks::kBottom);
  const std::size_t size = stacks.size();
  stacks.push(6, stacks.push(7, a));
  stacks.push(8, Stacks::kBottom);
  stacks.truncate(size);
  EXPECT_EQ(stacks.size(), size);
  EXPECT_EQ(stacks.push(5, Stacks::kBottom), a);
  EXPECT_EQ(stacks.push(8, Stacks::kBottom), size);
}

TEST(Stacks, CompactingKeepsWhatLiesBelowTheTopsAndNothingElse) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    Stacks stacks;
    for (int i = 0; i < 60; ++i) stacks.push(below(4) + 1, below(stacks.size()));
    std::vector<Stack> tops;
    std::vector<std::vector<std::uint32_t>> before;
    for (int i = 0; i < 4; ++i) tops.push_back({9, below(stacks.size())});
    for (const Stack& top : tops) before.push_back(states_below(stacks, top.below));
    stacks.compact(tops);
    std::size_t most = 1;
    for (std::size_t i = 0; i < tops.size(); ++i) {
      EXPECT_EQ(states_below(stacks, tops[i].below), before[i]);
      most += before[i].size();
      // It is still found.
      const Stack again = stacks.pop(tops[i].below);
      if (tops[i].below != Stacks::kBottom) {
        EXPECT_EQ(stacks.push(again.state, again.below), tops[i].below);
      }
    }
    EXPECT_LE(stacks.size(), most);
  }
}

}  // namespace
}  // namespace quire::grammar
