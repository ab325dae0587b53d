#include "core/speculate/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/cpu/cpu_ops.h"
#include "core/model/run/decoder_runner.h"
#include "core/speculate/heads/eagle_drafter.h"
#include "core/speculate/models/model_drafter.h"
#include "core/text/tokenizer.h"
#include "tests/support/misread_drafter.h"
#include "tests/support/source_tree.h"

namespace quire::speculate::agreement_test {
namespace {

constexpr std::uint32_t kBlocks = 16;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kMaxRows = 64;

std::string_view text_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Guesses one token for ever; sees whether it is told of everything as by the engine.
class Stubborn final : public Drafter {
 public:
  explicit Stubborn(TokenId token) : token_(token) {}
  std::string method() const override { return "stubborn"; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role) { prompt_ = sequence.prompt.size(); }
  void observe(const ObservedStep& step) override REQUIRES(engine_role) {
    ASSERT_EQ(step.sequences.size(), 1u);
    const Observed& seen = step.sequences.front();
    EXPECT_EQ(seen.first_position, num_rows_);
    num_rows_ += seen.rows.size();
    EXPECT_EQ(seen.tokens.size(), num_rows_ + 1);
    EXPECT_GE(seen.table.size() * kBlockTokens, num_rows_);
  }
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role) {
    EXPECT_EQ(asked.front().tokens.size(), num_rows_ + 1);
    if (token_ >= 0) trees.front().add(token_, sample::TokenTree::kRoot, 1.0f);
  }
  void release(SeqId /*seq*/, bool ended) override REQUIRES(engine_role) { ended_ = ended; }

  TokenId token_;
  std::size_t prompt_ = 0;
  std::size_t num_rows_ = 0;
  bool ended_ = false;
};

// Moves on with each look at it.
class Running final : public Clock {
 public:
  explicit Running(Duration by) : by_(by) {}
  TimePoint now() const override { return now_ += by_; }

 private:
  Duration by_;
  mutable TimePoint now_{};
};

// The model in models/stories, and what drafts for it.
class AgreementTest : public ::testing::Test {
 protected:
  AgreementTest() {
    files_ = model::ModelFiles::directory(test::source_path("models/stories"));
    head_files_ = model::ModelFiles::directory(test::source_path("models/stories_draft"));
    ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = kMaxRows});
    target_.emplace(*ops_, model::load_config(*files_), *files_, kBlocks * kBlockTokens);
    const auto tokenizer = text::Tokenizer::load(text_of(files_->require("tokenizer.json")), "");
    text_.prompt = tokenizer->encode("Once upon a time there was", true);
    text_.block_tokens = kBlockTokens;
  }

  std::unique_ptr<Drafter> head() {
    EagleLimits limits;
    limits.max_rows = kMaxRows;
    limits.max_sequences = 2;
    limits.max_model_len = kBlocks * kBlockTokens;
    limits.block_tokens = kBlockTokens;
    limits.num_blocks = kBlocks;
    return std::make_unique<EagleDrafter>(*ops_, *target_, *head_files_, EagleOptions{.width = 1, .max_depth = 4},
                                          limits);
  }

  Agreement measure(Drafter& drafter, const Clock& clock = FakeClock()) {
    model::RunnerLimits limits;
    limits.max_rows = kMaxRows;
    limits.max_sequences = 1;
    limits.block_tokens = kBlockTokens;
    limits.num_blocks = kBlocks;
    limits.captures = {drafter.needs().boundaries, drafter.needs().final_norm};
    model::DecoderRunner runner(*ops_, *target_, limits);
    const RoleScope role(engine_role);
    return measure_agreement(drafter, runner, text_, clock);
  }
  Agreement measure_misread(std::vector<std::uint32_t> boundaries) {
    test::MisreadDrafter drafter(head(), std::move(boundaries));
    return measure(drafter);
  }

  std::unique_ptr<model::ModelFiles> files_;
  std::unique_ptr<model::ModelFiles> head_files_;
  std::unique_ptr<backend::Ops> ops_;
  std::optional<model::Decoder> target_;
  AgreementText text_;
};

TEST_F(AgreementTest, OfTheHeadThatWasMadeForTheModelIsSure) {
  const auto drafter = head();
  const Agreement seen = measure(*drafter);
  EXPECT_EQ(seen.num_draft_tokens, 48u);
  EXPECT_TRUE(seen.sure()) << seen.num_right;
  EXPECT_FALSE(seen.too_low());
}

TEST_F(AgreementTest, OfAHeadWhoseLayersAreOffIsClearlyLess) {
  const Agreement right = measure_misread({2, 4, 6});
  for (const auto& layers : {std::vector{1u, 3u, 5u}, {0u, 2u, 4u}, {3u, 4u, 5u}}) {
    EXPECT_TRUE(measure_misread(layers).clearly_less_than(right)) << ::testing::PrintToString(layers);
    EXPECT_FALSE(right.clearly_less_than(measure_misread(layers)));
  }
}

TEST_F(AgreementTest, OfAHeadWhoseStatesStandInAnotherOrderIsClearlyLess) {
  const Agreement right = measure_misread({2, 4, 6});
  for (const auto& layers : {std::vector{6u, 4u, 2u}, {4u, 2u, 6u}, {2u, 6u, 4u}, {6u, 2u, 4u}, {4u, 6u, 2u}}) {
    EXPECT_TRUE(measure_misread(layers).clearly_less_than(right)) << ::testing::PrintToString(layers);
  }
}

TEST_F(AgreementTest, OfTheTargetItselfIsWhole) {
  ModelDraftLimits limits;
  limits.max_sequences = 1;
  limits.max_rows = kMaxRows;
  limits.num_blocks = kBlocks;
  limits.kv_type = backend::KvType::kF32;
  ModelDrafter drafter(*ops_, *target_, target_->config().vocab, limits, {});
  const Agreement seen = measure(drafter);
  EXPECT_EQ(seen.num_right, 48u);
  EXPECT_EQ(seen.num_draft_tokens, 48u);
}

TEST_F(AgreementTest, ReportsTheDrafterAllThatTheEngineWould) {
  Stubborn drafter(7);
  const Agreement seen = measure(drafter);
  EXPECT_EQ(drafter.prompt_, text_.prompt.size());
  EXPECT_EQ(drafter.num_rows_, text_.prompt.size() + seen.num_draft_tokens - 1);
  EXPECT_TRUE(drafter.ended_);
}

TEST_F(AgreementTest, ADrafterThatDoesNotKnowIsWrong) {
  Stubborn drafter(-1);
  const Agreement seen = measure(drafter);
  EXPECT_EQ(seen.num_draft_tokens, 48u);
  EXPECT_EQ(seen.num_right, 0u);
  EXPECT_TRUE(seen.too_low());
}

TEST_F(AgreementTest, OfOneStepIsThatOfItsOneDraftToken) {
  text_.num_draft_tokens = 1;
  Stubborn nothing(-1);
  const Agreement seen = measure(nothing);
  EXPECT_EQ(seen.num_draft_tokens, 1u);
  EXPECT_EQ(nothing.num_rows_, text_.prompt.size());
}

TEST_F(AgreementTest, AfterItsTimeIsOverNoMoreThanTheLeastIsAsked) {
  Stubborn drafter(7);
  EXPECT_EQ(measure(drafter, Running(text_.limit)).num_draft_tokens, text_.least);
  Stubborn other(7);
  EXPECT_EQ(measure(other, Running(text_.limit / 1000)).num_draft_tokens, text_.num_draft_tokens);
}

TEST_F(AgreementTest, LeavesNothingThatADrafterCouldLearnFrom) {
  const auto used = head();
  const Agreement first = measure(*used);
  const Agreement again = measure(*used);
  EXPECT_EQ(first.num_right, again.num_right);
}

TEST(Agreement, IsTooLowBelowTheFloorAlone) {
  EXPECT_FALSE((Agreement{20, 100}).too_low());
  EXPECT_TRUE((Agreement{19, 100}).too_low());
  EXPECT_FALSE((Agreement{0, 0}).too_low());  // nothing was asked
}

TEST(Agreement, IsClearlyLessByAnEighthOrMore) {
  EXPECT_TRUE((Agreement{4, 8}).clearly_less_than({5, 8}));
  EXPECT_FALSE((Agreement{40, 80}).clearly_less_than({49, 80}));
  EXPECT_FALSE((Agreement{5, 8}).clearly_less_than({5, 8}));
}

TEST(OtherReadings, AreOneLayerOffOrTheOtherWayRoundAndOfLayersThatThereAre) {
  const auto of = [](const std::vector<std::uint32_t>& boundaries) {
    std::vector<std::vector<std::uint32_t>> out;
    for (const OtherReading& other : other_readings(boundaries, 6)) out.push_back(other.boundaries);
    return out;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(of({1, 3, 5}), ElementsAre(ElementsAre(0, 2, 4), ElementsAre(2, 4, 6), ElementsAre(5, 3, 1)));
  EXPECT_THAT(of({2, 4, 6}), ElementsAre(ElementsAre(1, 3, 5), ElementsAre(6, 4, 2)));
  EXPECT_THAT(of({0, 2, 4}), ElementsAre(ElementsAre(1, 3, 5), ElementsAre(4, 2, 0)));
  EXPECT_THAT(of({3}), ElementsAre(ElementsAre(2), ElementsAre(4)));
  EXPECT_THAT(of({}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace quire::speculate::agreement_test
