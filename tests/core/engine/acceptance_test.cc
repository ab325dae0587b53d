// What clients hear under ratio and block, from the real decoder and the CPU backend: tokens of the law that the server without
// guesses draws from, whoever guesses.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/model/decoder_runner.h"
#include "core/sample/reference.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/models/model_drafter.h"
#include "tests/core/sample/table_speech.h"
#include "tests/core/speculate/draft_rig.h"
#include "tests/support/engine_rig.h"
#include "tests/support/guessing_drafter.h"

namespace quire::engine::testing {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::GuessingDrafter;
using quire::testing::RigOptions;
using sample::Accept;
using speculate::testing::Teller;
using speculate::testing::tiny_config;
using speculate::testing::TinyModel;

constexpr std::uint32_t kVocab = 5;
constexpr std::uint32_t kTold = 3;  // tokens of an answer
constexpr std::uint32_t kAnswers = 12'000;
constexpr std::uint32_t kAtOnce = 32;
constexpr std::uint32_t kBlocks = 160;
const std::vector<TokenId> kPrompt = {1, 4, 0, 2};

class AcceptanceInTheEngine : public ::testing::TestWithParam<Accept> {
 protected:
  AcceptanceInTheEngine()
      : ops_(cpu::make_cpu_ops({.num_threads = 1})),
        target_(*ops_, tiny_config(2, kVocab)),
        other_(*ops_, tiny_config(1, kVocab), "other") {}

  static sample::Params params(std::uint64_t seed) {
    return {.temperature = 0.4f, .min_p = 0.02f, .seed = seed, .accept = GetParam()};
  }
  RigOptions rig_options(speculate::Drafter* drafter) const {
    return {.num_blocks = kBlocks,
            .max_num_seqs = kAtOnce,
            .max_num_batched_tokens = 256,
            .max_logit_rows = 192,
            .max_model_len = 128,
            .vocab = kVocab,
            .drafter = drafter,
            .max_draft_nodes = 4};
  }
  static model::RunnerLimits limits() {
    return {.max_rows = 256,
            .max_sequences = kAtOnce,
            .max_logit_rows = 192,
            .block_tokens = 16,
            .num_blocks = kBlocks,
            .kv_dtype = backend::KvType::kF32};
  }
  std::unique_ptr<speculate::ModelDrafter> draft_model(const speculate::ModelDraftOptions& options = {}) const {
    speculate::ModelDraftLimits size;
    size.max_sequences = kAtOnce;
    size.max_rows = 256;
    size.max_depth = 4;
    size.num_blocks = kBlocks;
    size.kv_type = backend::KvType::kF32;
    return std::make_unique<speculate::ModelDrafter>(*ops_, *other_.decoder, kVocab, size, options);
  }

  std::vector<double> law() {
    Teller teller(*ops_, target_);
    std::vector<double> joint;
    extend(teller, kPrompt, kTold, 1.0, joint);
    return joint;
  }
  void extend(Teller& teller, const std::vector<TokenId>& text, std::uint32_t count, double before,
              std::vector<double>& joint) {
    if (count == 0) return joint.push_back(before);
    const std::vector<double> next = sample::reference_law(teller.logits(text), params(0));
    for (std::size_t token = 0; token < kVocab; ++token) {
      std::vector<TokenId> longer = text;
      longer.push_back(static_cast<TokenId>(token));
      extend(teller, longer, count - 1, before * next[token], joint);
    }
  }

  // Answers with seeds of their own, many at once; how often each was given.
  std::vector<double> counts(speculate::Drafter* drafter) {
    const RoleScope role(engine_role);
    model::DecoderRunner runner(*ops_, *target_.decoder, limits());
    EngineRig rig(rig_options(drafter), runner);
    std::vector<double> cells(kVocab * kVocab * kVocab);
    for (std::uint32_t seed = 0; seed < kAnswers; seed += kAtOnce) {
      std::vector<Client> clients;
      // Of those that go on behind what is counted drafts are longer.
      for (std::uint32_t i = 0; i < kAtOnce; ++i) clients.push_back(rig.submit(kPrompt, kTold + 5, params(seed + i)));
      rig.run(clients);
      for (const Client& client : clients) {
        std::size_t cell = 0;
        for (std::uint32_t i = 0; i < kTold; ++i) cell = cell * kVocab + static_cast<std::size_t>(client.tokens.at(i));
        cells[cell] += 1.0;
      }
    }
    taken_ = rig.metrics.spec_accepted_tokens.value();
    guessed_ = rig.metrics.spec_draft_tokens.value();
    proposed_ = rig.metrics.spec_proposed_tokens.value();
    return cells;
  }

  std::unique_ptr<backend::Ops> ops_;
  TinyModel target_;
  TinyModel other_;
  std::uint64_t taken_ = 0;
  std::uint64_t guessed_ = 0;
  std::uint64_t proposed_ = 0;
};

TEST_P(AcceptanceInTheEngine, KeepsTheLawWithADraftModelThatDraws) {
  const auto drafter = draft_model();
  EXPECT_LT(sample::strangeness(counts(drafter.get()), law()), 1.0);
  EXPECT_GT(taken_, guessed_ / 10);
  EXPECT_LT(taken_, guessed_);
  EXPECT_EQ(guessed_, proposed_);  // whole drafts
}

TEST_P(AcceptanceInTheEngine, KeepsTheLawWithTheModelItselfAndTakesAllOfIt) {
  speculate::ModelDraftLimits size;
  size.max_sequences = kAtOnce;
  size.max_rows = 256;
  size.max_depth = 4;
  size.num_blocks = kBlocks;
  size.kv_type = backend::KvType::kF32;
  speculate::ModelDrafter drafter(*ops_, *target_.decoder, kVocab, size, {});
  EXPECT_LT(sample::strangeness(counts(&drafter), law()), 1.0);
  EXPECT_GT(taken_, guessed_ * 98 / 100);  // the drafter's filters see no more than min_p of the target's
}

TEST_P(AcceptanceInTheEngine, KeepsTheLawWithTreesOfTheLikeliestTokens) {
  speculate::ModelDraftOptions options;
  options.widths = {2, 2};
  const auto drafter = draft_model(options);
  EXPECT_LT(sample::strangeness(counts(drafter.get()), law()), 1.0);
  EXPECT_GT(taken_, guessed_ / 10);
}

TEST_P(AcceptanceInTheEngine, KeepsTheLawWithAnybodysTrees) {
  GuessingDrafter drafter({.truth = 0.0, .seed = 3}, kVocab);
  EXPECT_LT(sample::strangeness(counts(&drafter), law()), 1.0);
  EXPECT_GT(taken_, guessed_ / 20);
}

TEST_P(AcceptanceInTheEngine, KeepsTheLawWhereNobodyGuesses) {
  EXPECT_LT(sample::strangeness(counts(nullptr), law()), 1.0);
}

TEST_P(AcceptanceInTheEngine, SaysTheSameAgainAlone) {
  const auto answers = [&] {
    const RoleScope role(engine_role);
    const auto drafter = draft_model();
    model::DecoderRunner runner(*ops_, *target_.decoder, limits());
    EngineRig rig(rig_options(drafter.get()), runner);
    std::vector<Client> clients;
    clients.push_back(rig.submit(kPrompt, 30, params(7)));
    rig.run(clients);
    return clients[0].tokens;
  };
  EXPECT_EQ(answers(), answers());
}

TEST_P(AcceptanceInTheEngine, ChangesNothingForAGreedyRequest) {
  const auto answer = [&](speculate::Drafter* drafter, Accept accept) {
    const RoleScope role(engine_role);
    model::DecoderRunner runner(*ops_, *target_.decoder, limits());
    EngineRig rig(rig_options(drafter), runner);
    std::vector<Client> clients;
    clients.push_back(rig.submit(kPrompt, 40, {.temperature = 0.0f, .logprob = true, .accept = accept}));
    rig.run(clients);
    EXPECT_EQ(rig.metrics.spec_drafts.value() > 0, drafter != nullptr);
    return std::pair(clients[0].tokens, clients[0].logprobs);
  };
  const auto plain = answer(nullptr, Accept::kMatch);
  const auto drafter = draft_model();
  EXPECT_EQ(answer(drafter.get(), GetParam()), plain);
  GuessingDrafter trees({.truth = 0.0, .seed = 3}, kVocab);
  EXPECT_EQ(answer(&trees, GetParam()), plain);
}

// Room for a part of a draft is none, and adaptivity plans nothing here.
TEST_P(AcceptanceInTheEngine, UsesADraftWholeOrNotAtAll) {
  const RoleScope role(engine_role);
  for (const std::uint32_t max_logit_rows : {4u, 5u, 6u}) {
    const auto drafter = draft_model();
    speculate::DepthControl depth({.adaptive = true}, speculate::StepCosts({1e9, 1e10, 1e9, 1e11, 1e-3}),
                                  speculate::DraftCosts(speculate::DraftPrior{}));
    RigOptions options = rig_options(drafter.get());
    options.max_num_seqs = 1;
    options.max_logit_rows = max_logit_rows;
    options.depth = &depth;
    model::RunnerLimits sizes = limits();
    sizes.max_sequences = 1;
    sizes.max_logit_rows = max_logit_rows;
    model::DecoderRunner runner(*ops_, *target_.decoder, sizes);
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    clients.push_back(rig.submit(kPrompt, 12, params(7)));  // the last drafts are smaller: max_tokens is near
    rig.run(clients);
    EXPECT_EQ(clients[0].tokens.size(), 12u);
    if (max_logit_rows < 5) {
      EXPECT_LT(rig.metrics.spec_draft_tokens.value(), rig.metrics.spec_proposed_tokens.value());
    } else {
      EXPECT_EQ(rig.metrics.spec_draft_tokens.value(), rig.metrics.spec_proposed_tokens.value());
    }
    EXPECT_GT(rig.metrics.spec_proposed_tokens.value(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(By, AcceptanceInTheEngine, ::testing::Values(Accept::kRatio, Accept::kBlock),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

}  // namespace
}  // namespace quire::engine::testing
