// Tokens, log probabilities, ranks and lists that the device makes of rows of logits, beside the host's: the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/kernels/choose/choose_verified.h"
#include "gpu/simulated/simulator.h"
#include "tests/gpu/choose_lab.h"

namespace quire::gpu::test::choose_test {
namespace {

TEST(ChooseOnDevice, SaysOfRandomRowsWhatTheHostSays) {
  ChooseLab lab;
  for (const std::uint32_t vocab : {1u, 2u, 31u, 32u, 33u, 255u, 257u, 1000u, 4099u}) {
    Dice dice(vocab);
    for (int round = 0; round < (vocab > 300 ? 1 : 2); ++round) {
      Step step(vocab, dice.below(5));
      for (int i = 0; i < (vocab > 3000 ? 24 : 40); ++i) {
        LogitsRow& logits_row = step.add(random_row(dice, vocab));
        draw_params(dice, vocab, logits_row);
        if (dice.one_in(3)) draw_edits(dice, step, logits_row);
        if (dice.one_in(6)) logits_row.given = static_cast<TokenId>(dice.below(vocab));
      }
      ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
      ASSERT_TRUE(lab.chooser().left_to_host().empty());
    }
  }
}

TEST(ChooseOnDevice, SaysWhatTheHostSaysWithEveryFilterOnAndOff) {
  ChooseLab lab(7);
  constexpr std::uint32_t kVocab = 700;
  Dice dice(11);
  for (const bool edited : {false, true}) {
    Step step(kVocab);
    for (const float temperature : {0.0f, 0.7f, 1.0f, 3.0f}) {
      for (int on = 0; on < 64; ++on) {
        LogitsRow& logits_row = step.add(random_row(dice, kVocab));
        sample::Params& params = logits_row.params;
        params.temperature = temperature;
        if ((on & 1) != 0) params.top_k = 30;
        if ((on & 2) != 0) params.top_p = 0.8f;
        if ((on & 4) != 0) params.min_p = 0.01f;
        if ((on & 8) != 0) params.typical_p = 0.6f;
        params.logprob = (on & 16) != 0;
        params.num_top = (on & 32) != 0 ? 3 : 0;
        params.seed = dice.bits();
        if (edited) draw_edits(dice, step, logits_row);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

// A step of everything: plain rows, edits, given tokens, and drafts.
Step mixed_step() {
  Dice dice(5);
  Step step(50);
  for (int i = 0; i < 6; ++i) {
    LogitsRow& logits_row = step.add(random_row(dice, step.vocab));
    draw_params(dice, step.vocab, logits_row);
    if (dice.one_in(2)) draw_edits(dice, step, logits_row);
  }
  return step;
}

TEST(ChooseOnDevice, DoesNotDependOnWhichThreadGoesFirst) {
  const Step step = mixed_step();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ChooseLab lab(seed);
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

TEST(ChooseOnDevice, FindsTheHighestAtTheEdgesOfPieces) {
  ChooseLab lab;
  for (const std::uint32_t vocab : {PrepareRows::kPiece - 1, PrepareRows::kPiece, PrepareRows::kPiece + 1}) {
    Step step(vocab, 3);
    for (const std::uint32_t at : {0u, PrepareRows::kPiece - 2, vocab - 1}) {
      std::vector<float> row(vocab, -1.0f);
      row[at] = 1.0f;
      step.add(row).params.temperature = 0.0f;
      row[at] = kNan;
      step.add(row);
      row[at] = -1.0f;
      LogitsRow& biased = step.add(row);
      OwnedEdits& edits = step.edits.emplace_back();
      edits.each = {{static_cast<TokenId>(at), 0, 5.0f, false}};
      biased.edits = edits.view();
      biased.params.temperature = 0.0f;
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

// n tokens alike, all others far below: with top-p or top-k around n so many have to be listed.
TEST(ChooseOnDevice, SelectsAroundWhatItsListHolds) {
  ChooseLab lab;
  Step step(3000);
  for (const std::uint32_t alike : {kListed - 1, kListed, kListed + 1}) {
    std::vector<float> row(step.vocab, -9.0f);
    for (std::uint32_t i = 0; i < alike; ++i) row[(i * 7) % step.vocab] = 1.0f + static_cast<float>(i % 3) * 1e-4f;
    for (const int which : {0, 1, 2, 3}) {
      LogitsRow& logits_row = step.add(row);
      logits_row.params.seed = alike;
      if (which == 0) logits_row.params.top_p = 0.9f;
      if (which == 1) logits_row.params.top_k = static_cast<std::int32_t>(alike) - 1;
      if (which == 2) logits_row.params.typical_p = 0.9f;
      if (which == 3) logits_row.params.num_top = sample::kMaxTop;
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
}

TEST(ChooseOnDevice, ListsAsManyAsThereAreAroundTheLongestList) {
  ChooseLab lab;
  for (const std::uint32_t vocab : {sample::kMaxTop - 1, sample::kMaxTop, sample::kMaxTop + 1}) {
    Dice dice(vocab);
    Step step(vocab);
    for (const std::uint32_t num : {1u, vocab - 2, sample::kMaxTop - 1, sample::kMaxTop}) {
      std::vector<float> row(vocab);
      for (float& x : row) x = dice.of({-0.0f, 0.0f, 1.0f, -1.0f, -kInf});
      step.add(row).params.num_top = num;
      step.add(std::vector<float>(vocab, 2.5f)).params.num_top = num;
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

TEST(ChooseOnDevice, AddsUpTheLargestVocabularyOfEqualLogits) {
  ChooseLab lab(1, 1, 1);
  Step step(sample::kMaxVocab);
  LogitsRow& logits_row = step.add(std::vector<float>(step.vocab, 3.0f));
  logits_row.params.top_p = 0.5f;
  logits_row.params.num_top = 4;
  logits_row.params.logprob = true;
  ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
}

TEST(ChooseOnDevice, ForbidsAllButOneAndAll) {
  ChooseLab lab;
  for (const std::uint32_t vocab : {1u, 31u, 32u, 33u, 100u}) {
    Step step(vocab);
    for (const bool none : {false, true}) {
      for (const TokenId left : {0, static_cast<TokenId>(vocab / 2), static_cast<TokenId>(vocab - 1)}) {
        Dice dice(static_cast<std::uint32_t>(left));
        LogitsRow& logits_row = step.add(std::vector<float>(vocab, dice.uniform()));
        OwnedEdits& edits = step.edits.emplace_back();
        edits.allowed.assign((vocab + 31) / 32, 0);
        if (!none) edits.allowed[static_cast<std::size_t>(left) / 32] = 1u << left % 32;
        logits_row.edits = edits.view();
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_host(step, lab));
  }
}

struct PhiloxOfThread {
  struct Args {
    sample::PhiloxCounter counters[3];
    sample::PhiloxKey keys[3];
    sample::PhiloxCounter* words = nullptr;
  };
  static void run(const Args& a) {
    if (thread() < 3) a.words[thread()] = sample::philox4x32(a.counters[thread()], a.keys[thread()]);
  }
};

TEST(ChooseOnDevice, DrawsItsWordsAsPublished) {
  // Random123, tests/kat_vectors, the lines "philox4x32 10".
  sample::PhiloxCounter words[3] = {};
  const PhiloxOfThread::Args args{{{{0, 0, 0, 0}},
                                   {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
                                   {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}},
                                  {{{0, 0}}, {{0xffffffff, 0xffffffff}}, {{0xa4093822, 0x299f31d0}}},
                                  words};
  sim::Simulator simulator;
  simulator.run(
      {.thread = [](const void* a, std::byte*) { PhiloxOfThread::run(*static_cast<const PhiloxOfThread::Args*>(a)); },
       .args = &args});
  const std::uint32_t published[3][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::ranges::equal(words[i].words, published[i])) << i;
}

TEST(ChooseOnDevice, OrdersLogitsAsFloatsAreWithBothZerosAlike) {
  const float rising[] = {-kInf, -3.4e38f, -1.0f, -1e-45f, 0.0f, 1e-45f, 1.0f, 3.4e38f};
  for (std::size_t i = 1; i < std::size(rising); ++i) EXPECT_LT(rising_bits(rising[i - 1]), rising_bits(rising[i]));
  EXPECT_EQ(rising_bits(-0.0f), rising_bits(0.0f));
  for (const float x : rising) EXPECT_EQ(f32_of_rising(rising_bits(x)), x);
  EXPECT_GT(likely_key(1.0f, 3), likely_key(1.0f, 4));
  EXPECT_FALSE(is_finite(likely_key(kNan, 0)));
  EXPECT_FALSE(is_finite(likely_key(kInf, 0)));
  EXPECT_FALSE(is_finite(likely_key(-kInf, 0)));
  EXPECT_TRUE(is_finite(likely_key(-3.4e38f, 0)));
  EXPECT_EQ(token_of(likely_key(5.0f, 77)), 77);
}

}  // namespace
}  // namespace quire::gpu::test::choose_test
