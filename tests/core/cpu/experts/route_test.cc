// route(): every rule against its equations taken literally in f32, bit for bit, on every instruction set.
#include "tests/core/cpu/experts/experts_lab.h"

namespace quire::cpu::test::route_test {
namespace {

using backend::RouteRule;
using backend::RouteScore;

struct RouteCase {
  const char* name;
  RouteRule rule;
  bool biased = false;
  bool scaled = false;
};

const std::vector<RouteCase> kCases = {
    {"softmax", {.num_experts = 8, .top_k = 2}},
    {"one expert of many", {.num_experts = 33, .top_k = 1}},
    {"all experts", {.num_experts = 5, .top_k = 5}},
    {"softmax, normed", {.num_experts = 60, .top_k = 4, .normed = true}},
    {"softmax of the chosen", {.num_experts = 40, .top_k = 8, .score = RouteScore::kLogit}},
    {"sigmoid with a bias", {.num_experts = 16, .top_k = 3, .score = RouteScore::kSigmoid, .normed = true}, true},
    {"softmax with a bias", {.num_experts = 64, .top_k = 6, .normed = true, .norm_least = 1e-12f}, true},
    {"groups",
     {.num_experts = 32,
      .top_k = 6,
      .score = RouteScore::kSigmoid,
      .num_groups = 8,
      .top_groups = 4,
      .normed = true,
      .norm_eps = 1e-20f,
      .scale = 2.5f},
     true},
    {"groups by their highest",
     {.num_experts = 32, .top_k = 6, .num_groups = 8, .top_groups = 3, .groups_by_highest = true, .scale = 16.0f}},
    {"scales", {.num_experts = 10, .top_k = 3, .normed = true}, false, true},
    {"groups of one",
     {.num_experts = 8, .top_k = 2, .score = RouteScore::kSigmoid, .num_groups = 8, .top_groups = 3, .scale = 1.5f},
     true},
    {"least sum of weights", {.num_experts = 128, .top_k = 2, .normed = true, .norm_least = 0.9f}},
    {"sparsemixer", {.num_experts = 16, .top_k = 2, .score = RouteScore::kSparsemixer, .margin = 0.4f}},
    {"sparsemixer, narrow", {.num_experts = 7, .top_k = 2, .score = RouteScore::kSparsemixer, .margin = 0.02f}},
};

TEST(Route, EqualsItsEquationsBitForBit) {
  constexpr std::uint32_t kRows = 50;
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 3u}) {
      const auto ops = make_ops(isa, threads);
      for (const RouteCase& c : kCases) {
        SCOPED_TRACE(isa + " " + c.name);
        Random random(c.rule.num_experts);
        const std::vector<float> logits = random.floats(std::size_t{kRows} * c.rule.num_experts, 3.0f);
        const std::vector<float> bias = c.biased ? random.floats(c.rule.num_experts, 0.5f) : std::vector<float>();
        const std::vector<float> scales = c.scaled ? random.floats(c.rule.num_experts, 2.0f) : std::vector<float>();
        const PlainRoute got = routed(*ops, c.rule, logits, bias, scales);
        for (std::uint32_t row = 0; row < kRows; ++row) {
          const auto first = logits.begin() + std::ptrdiff_t{row} * c.rule.num_experts;
          const PlainRoute plain = plain_route(c.rule, {first, first + c.rule.num_experts}, bias, scales);
          const auto at = std::size_t{row} * c.rule.top_k;
          EXPECT_TRUE(std::ranges::equal(std::span(got.experts).subspan(at, c.rule.top_k), plain.experts)) << row;
          EXPECT_TRUE(same_bits(std::span(got.weights).subspan(at, c.rule.top_k), plain.weights)) << row;
        }
      }
    }
  }
}

TEST(Route, ChoosesTheLowestExpertsAmongEquals) {
  const auto ops = make_ops("scalar", 1);
  for (const RouteScore score : {RouteScore::kSoftmax, RouteScore::kSigmoid, RouteScore::kLogit}) {
    const RouteRule rule{.num_experts = 6, .top_k = 3, .score = score};
    EXPECT_EQ(routed(*ops, rule, std::vector<float>(6, 0.25f)).experts, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(routed(*ops, rule, {1, 2, 1, 2, 1, 0}).experts, (std::vector<std::uint32_t>{0, 1, 3}));
    const RouteRule in_groups{.num_experts = 6, .top_k = 2, .score = score, .num_groups = 3, .top_groups = 1};
    EXPECT_EQ(routed(*ops, in_groups, {0, 0, 1, 2, 2, 1}).experts, (std::vector<std::uint32_t>{2, 3}));
    RouteRule by_highest = in_groups;
    by_highest.groups_by_highest = true;
    EXPECT_EQ(routed(*ops, by_highest, {0, 0, 2, 2, 3, 0}).experts, (std::vector<std::uint32_t>{4, 5}));
    EXPECT_EQ(
        routed(*ops, in_groups, {0, 0, 2, 2, 3, 0}).experts,
        (std::vector<std::uint32_t>{score == RouteScore::kSoftmax ? 4u : 2u, score == RouteScore::kSoftmax ? 5u : 3u}));
  }
  const RouteRule sparse{.num_experts = 4, .top_k = 2, .score = RouteScore::kSparsemixer, .margin = 0.1f};
  EXPECT_EQ(routed(*ops, sparse, {1, 2, 2, 2}).experts, (std::vector<std::uint32_t>{1, 2}));
}

TEST(Route, ABiasChoosesButDoesNotWeigh) {
  const auto ops = make_ops("scalar", 1);
  const RouteRule rule{.num_experts = 3, .top_k = 1, .score = RouteScore::kSigmoid};
  const PlainRoute plain = routed(*ops, rule, {2.0f, 0.0f, 1.0f});
  const PlainRoute biased = routed(*ops, rule, {2.0f, 0.0f, 1.0f}, {0.0f, 1.0f, 0.0f});
  EXPECT_EQ(plain.experts, std::vector<std::uint32_t>{0});
  EXPECT_EQ(biased.experts, std::vector<std::uint32_t>{1});
  EXPECT_EQ(biased.weights, std::vector<float>{0.5f});
}

TEST(Route, MakesAnInvalidLogitVisibleInTheWeights) {
  const auto ops = make_ops("scalar", 1);
  for (const RouteScore score :
       {RouteScore::kSoftmax, RouteScore::kSigmoid, RouteScore::kLogit, RouteScore::kSparsemixer}) {
    const PlainRoute got = routed(*ops, {.num_experts = 4, .top_k = 2, .score = score}, {1.0f, NAN, 2.0f, 3.0f});
    EXPECT_TRUE(std::ranges::any_of(got.weights, [](float weight) { return std::isnan(weight); }));
    EXPECT_TRUE(std::ranges::all_of(got.experts, [](std::uint32_t expert) { return expert < 4; }));
  }
}

}  // namespace
}  // namespace quire::cpu::test::route_test
