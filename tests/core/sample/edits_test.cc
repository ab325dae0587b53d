#include "core/sample/edits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/sample/logprob.h"
#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"

namespace quire::sample::edits_test {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

std::vector<float> adjusted(const std::vector<float>& row, const Edits& edits) {
  Scratch scratch(row.size());
  const std::span<const float> out = adjust(row, edits, scratch);
  return {out.begin(), out.end()};
}

TEST(Adjust, TakesItsStepsInOrderEachRoundedToF32) {
  const std::vector<Edit> each = {{.token = 1, .times = 3, .bias = 0.7f, .seen = true}};
  const Edits edits{.repetition = 1.1f, .frequency = 0.3f, .presence = 0.2f, .each = each};
  float positive = 2.3f / 1.1f;
  positive = positive - 0.3f * 3.0f;
  positive = positive - 0.2f;
  positive = positive + 0.7f;
  EXPECT_EQ(adjusted({1.0f, 2.3f}, edits), (std::vector<float>{1.0f, positive}));
  float negative = -2.3f * 1.1f;
  negative = negative - 0.3f * 3.0f;
  negative = negative - 0.2f;
  negative = negative + 0.7f;
  EXPECT_EQ(adjusted({1.0f, -2.3f}, edits), (std::vector<float>{1.0f, negative}));
}

TEST(Adjust, PenalisesOnlyTokensOfThePromptOrTheAnswer) {
  const std::vector<Edit> each = {{.token = 0, .bias = 1.0f}, {.token = 1, .seen = true}, {.token = 2, .times = 1}};
  const Edits edits{.repetition = 2.0f, .frequency = 0.5f, .presence = 0.25f, .each = each};
  EXPECT_EQ(adjusted({4.0f, 4.0f, 4.0f, 4.0f}, edits), (std::vector<float>{5.0f, 2.0f, 3.25f, 4.0f}));
}

TEST(Adjust, AllowsWhatTheMaskAllowsAtEveryEdgeOfAWord) {
  for (const std::size_t vocab : {1, 31, 32, 33, 64, 95, 96, 100}) {
    const std::vector<float> row = bell_row(vocab, 1.0f, 1);
    for (const std::vector<std::uint32_t>& mask :
         {std::vector<std::uint32_t>{0xf0f0f0f1u, 0u, ~0u, 1u}, std::vector<std::uint32_t>{~0u},
          std::vector<std::uint32_t>{~0u, ~0u, ~0u, ~0u, ~0u}, std::vector<std::uint32_t>{0u}}) {
      const std::vector<float> out = adjusted(row, {.allowed = mask});
      for (std::size_t i = 0; i < vocab; ++i) {
        const bool allowed = i / 32 < mask.size() && (mask[i / 32] >> i % 32 & 1u) != 0;
        ASSERT_EQ(out[i], allowed ? row[i] : -kInf) << "V " << vocab << " token " << i;
      }
    }
  }
}

TEST(Adjust, ForbidsWhateverABiasSays) {
  const std::vector<Edit> each = {{.token = 0, .bias = 100.0f}, {.token = 1, .bias = 100.0f}};
  const std::vector<TokenId> forbidden = {0};
  const std::vector<std::uint32_t> allowed = {0b101u};
  EXPECT_EQ(adjusted({1.0f, 2.0f, 3.0f}, {.each = each, .forbidden = forbidden, .allowed = allowed}),
            (std::vector<float>{-kInf, -kInf, 3.0f}));
}

TEST(Adjust, LeavesMaskedWhatTheModelMasked) {
  const std::vector<Edit> each = {{.token = 0, .times = 1, .bias = 100.0f, .seen = true}};
  EXPECT_EQ(adjusted({-kInf, 1.0f}, {.repetition = 0.5f, .frequency = -2.0f, .each = each}),
            (std::vector<float>{-kInf, 1.0f}));
}

TEST(Adjust, KeepsExtremePenaltiesFinite) {
  const std::vector<Edit> each = {{.token = 0, .seen = true}, {.token = 1, .seen = true}};
  EXPECT_EQ(adjusted({3.0f, -3.0f}, {.repetition = 1e-39f, .each = each})[0], kMost);
  EXPECT_EQ(adjusted({3.0f, -3.0f}, {.repetition = kMost, .each = each})[1], -kMost);
}

TEST(Adjust, PassesOverTokensOutsideTheRow) {
  const std::vector<Edit> each = {{.token = 2, .bias = 1.0f}, {.token = -1, .bias = 1.0f}};
  const std::vector<TokenId> forbidden = {2, -1};
  EXPECT_EQ(adjusted({1.0f, 2.0f}, {.each = each, .forbidden = forbidden}), (std::vector<float>{1.0f, 2.0f}));
}

// ---- draw() with edits

TEST(Draw, ChoosesFromTheAdjustedRowAndReturnsLogprobsOfTheRawOne) {
  const std::vector<float> row = bell_row(200, 3.0f, 4);
  const std::vector<Edit> each = {{.token = 17, .bias = 100.0f}};
  Scratch scratch(row.size());
  std::vector<Candidate> room(5);
  for (const float temperature : {0.0f, 1.0f}) {
    const Params params{.temperature = temperature, .logprob = true, .num_top = 5};
    const SampledToken plain = draw(row, params, 3, scratch, room);
    const std::vector<Candidate> top(plain.top.begin(), plain.top.end());
    const SampledToken biased = draw(row, params, 3, scratch, room, {.each = each});
    EXPECT_EQ(biased.token, 17);
    const double highest = *std::max_element(row.begin(), row.end());
    EXPECT_EQ(biased.logprob,
              logprob_of(row[17], static_cast<float>(highest), log_sum_of(row, static_cast<float>(highest), scratch)));
    for (std::size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(biased.top[i].token, top[i].token);
      EXPECT_EQ(biased.top[i].logprob, top[i].logprob);
    }
  }
}

TEST(Draw, FromAnAdjustedRowIsTheDrawFromThatRow) {
  const std::vector<float> row = bell_row(300, 2.0f, 8);
  const std::vector<Edit> each = {{.token = 3, .times = 2, .seen = true}, {.token = 40, .bias = 5.0f}};
  const std::vector<std::uint32_t> allowed = {0xffffu, ~0u, 0x1234u, ~0u};
  const Edits edits{.repetition = 1.3f, .frequency = 0.5f, .each = each, .allowed = allowed};
  const std::vector<float> other = adjusted(row, edits);
  Scratch scratch(row.size());
  for (std::uint32_t position = 0; position < 200; ++position) {
    const Params params{.temperature = position % 2 == 0 ? 0.9f : 0.0f, .top_p = 0.95f, .typical_p = 0.9f, .seed = 5};
    ASSERT_EQ(draw(row, params, position, scratch, {}, edits).token, draw(other, params, position, scratch).token);
  }
}

TEST(Draw, SaysWhereNothingIsAllowed) {
  const std::vector<float> row = {1.0f, 2.0f, -kInf};
  const std::vector<TokenId> forbidden = {0, 1};
  const std::vector<std::uint32_t> only_masked = {0b100u};
  Scratch scratch(row.size());
  for (const float temperature : {0.0f, 1.0f}) {
    const Params params{.temperature = temperature};
    EXPECT_FALSE(draw(row, params, 0, scratch, {}, {.forbidden = forbidden}).finite);
    EXPECT_FALSE(draw(row, params, 0, scratch, {}, {.allowed = only_masked}).finite);
    EXPECT_EQ(draw(row, params, 0, scratch, {}, {.allowed = only_masked}).token, -1);
  }
}

TEST(Draw, OfARowThatIsNotFiniteIsAFaultWhateverIsForbidden) {
  const std::vector<TokenId> forbidden = {1};
  Scratch scratch(3);
  for (const float bad : {kNan, kInf}) {
    const std::vector<float> row = {1.0f, bad, 0.0f};
    EXPECT_FALSE(draw(row, Params{}, 0, scratch, {}, {.forbidden = forbidden}).finite);
  }
}

}  // namespace
}  // namespace quire::sample::edits_test
