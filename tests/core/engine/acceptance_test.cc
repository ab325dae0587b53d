// Emitted tokens under ratio and block, from the real decoder and the CPU backend: they have the distribution of a server
// without drafts, whatever the drafter.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/speculate/depth/depth_control.h"
#include "tests/core/engine/distribution_lab.h"
#include "tests/support/cases.h"
#include "tests/support/scripted_drafter.h"

namespace quire::engine::testing::acceptance_test {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::ScriptedDrafter;
using sample::Accept;

constexpr std::uint32_t kAnswers = quire::testing::cases(12'000);

class AcceptanceInTheEngine : public ::testing::TestWithParam<Accept>, protected DistributionLab {
 protected:
  AcceptanceInTheEngine() : DistributionLab(GetParam()) {}
  std::vector<double> counts(speculate::Drafter* drafter) { return DistributionLab::counts(drafter, kAnswers); }
};

TEST_P(AcceptanceInTheEngine, KeepsTheDistributionWithADraftModelThatDraws) {
  const auto drafter = draft_model();
  EXPECT_LT(sample::strangeness(counts(drafter.get()), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ / 10);
  EXPECT_LT(taken_, scripted_);
  EXPECT_EQ(scripted_, proposed_);  // whole drafts
}

TEST_P(AcceptanceInTheEngine, KeepsTheDistributionWithTheModelItselfAndTakesAllOfIt) {
  const auto drafter = draft_model(target_);
  EXPECT_LT(sample::strangeness(counts(drafter.get()), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ * 98 / 100);  // the drafter's filters see no more than min_p of the target's
}

TEST_P(AcceptanceInTheEngine, KeepsTheDistributionWithTreesOfTheLikeliestTokens) {
  speculate::ModelDraftOptions options;
  options.widths = {2, 2};
  options.proposes = false;
  const auto drafter = draft_model(options);
  EXPECT_LT(sample::strangeness(counts(drafter.get()), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ / 10);
}

TEST_P(AcceptanceInTheEngine, KeepsTheDistributionWithAnybodysTrees) {
  ScriptedDrafter drafter({.truth = 0.0, .seed = 3}, kVocab);
  EXPECT_LT(sample::strangeness(counts(&drafter), distribution()), 1.0);
  EXPECT_GT(taken_, scripted_ / 20);
}

TEST_P(AcceptanceInTheEngine, KeepsTheDistributionWithoutADrafter) {
  EXPECT_LT(sample::strangeness(counts(nullptr), distribution()), 1.0);
}

TEST_P(AcceptanceInTheEngine, EmitsTheSameAgainAlone) {
  const auto answers = [&] {
    const RoleScope role(engine_role);
    const auto drafter = draft_model();
    model::DecoderRunner runner(*ops_, *target_.decoder, limits());
    EngineRig rig(rig_options(drafter.get()), runner);
    std::vector<Client> clients;
    clients.push_back(rig.submit(prompt_, 30, params(7)));
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
    clients.push_back(rig.submit(prompt_, 40, {.temperature = 0.0f, .logprob = true, .accept = accept}));
    rig.run(clients);
    EXPECT_EQ(rig.metrics.spec_drafts.value() > 0, drafter != nullptr);
    return std::pair(clients[0].tokens, clients[0].logprobs);
  };
  const auto plain = answer(nullptr, Accept::kMatch);
  const auto drafter = draft_model();
  EXPECT_EQ(answer(drafter.get(), GetParam()), plain);
  ScriptedDrafter trees({.truth = 0.0, .seed = 3}, kVocab);
  EXPECT_EQ(answer(&trees, GetParam()), plain);
}

// Room for a part of a draft is none, and adaptivity plans nothing here.
TEST_P(AcceptanceInTheEngine, UsesADraftWholeOrNotAtAll) {
  const RoleScope role(engine_role);
  for (const std::uint32_t max_logits_rows : {4u, 5u, 6u}) {
    const auto drafter = draft_model();
    speculate::DepthControl depth({.adaptive = true}, speculate::StepCosts({1e9, 1e10, 1e9, 1e11, 1e-3}),
                                  speculate::DraftCosts(speculate::DraftPrior{}));
    RigOptions options = rig_options(drafter.get());
    options.max_num_seqs = 1;
    options.max_logits_rows = max_logits_rows;
    options.depth = &depth;
    model::RunnerLimits sizes = limits();
    sizes.max_sequences = 1;
    sizes.max_logits_rows = max_logits_rows;
    model::DecoderRunner runner(*ops_, *target_.decoder, sizes);
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    clients.push_back(rig.submit(prompt_, 12, params(7)));  // the last drafts are smaller: max_tokens is near
    rig.run(clients);
    EXPECT_EQ(clients[0].tokens.size(), 12u);
    if (max_logits_rows < 5) {
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
}  // namespace quire::engine::testing::acceptance_test
