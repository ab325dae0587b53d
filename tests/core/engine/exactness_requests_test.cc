// The promise for everything that a request may ask for, on the real decoder and CPU backend: rules, grammars, several
// choices, log probabilities, candidates, prompt scores and embeddings are the same bits alone and in any company.
#include <gtest/gtest.h>

#include "tests/core/engine/exact_requests.h"

namespace quire::engine::testing::exactness_requests_test {
namespace {

TEST_P(ExactRequestsTest, AnswersScoresAndEmbeddingsDoNotDependOnCompanyChunksBlocksPlacesOrThreads) {
  const auto alone = answers({.name = "alone", .together = false});
  for (const Setting& setting :
       {Setting{.name = "together"}, Setting{.name = "together, two threads", .threads = 2},
        Setting{.name = "chunks of at most 16", .max_num_batched_tokens = 16},
        Setting{.name = "two at a time", .max_num_seqs = 2}, Setting{.name = "blocks of 32", .block_tokens = 32},
        Setting{.name = "one row a step", .max_num_seqs = 1, .max_num_batched_tokens = 1},
        Setting{.name = "without a prefix cache", .prefix_caching = false},
        Setting{.name = "behind what others left", .warm = true}}) {
    expect_equal(answers(setting), alone, setting.name);
  }
}

TEST_P(ExactRequestsTest, AnswersScoresAndEmbeddingsDoNotDependOnPreemptions) {
  const auto alone = answers({.name = "alone", .together = false});
  for (const Setting& setting : {Setting{.name = "nine blocks", .num_blocks = 9},
                                 Setting{.name = "nine blocks, swapping", .num_blocks = 9, .num_swap_blocks = 12},
                                 Setting{.name = "sent back again and again", .max_num_seqs = 4, .storm = true}}) {
    expect_equal(answers(setting), alone, setting.name);
    EXPECT_GT(preemptions_, 0u) << setting.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cache, ExactRequestsTest, ::testing::Values(backend::KvType::kF32, backend::KvType::kInt8),
                         [](const auto& parameter) { return std::string(backend::name_of(parameter.param)); });

// A plain request for every beginning of the prompt says the logits that the token behind it is scored by.
class ScoresOfPlainRuns : public ExactRequestsTest {};

TEST_P(ScoresOfPlainRuns, AreTheLogSoftmaxOfTheirLogits) {
  const RoleScope role(engine_role);
  const Setting setting{.name = "plain"};
  Model model(1, setting.max_num_batched_tokens);
  model::DecoderRunner decoder_runner(*model.ops, model.decoder, limits(setting));
  RecordingRunner runner(decoder_runner, kVocab);
  EngineRig rig(rig_options(setting), runner);
  const Request request{40, 0, 0, {.params = {.num_top = 4}, .scores_prompt = true}};
  const std::vector<TokenId> prompt = prompt_of(request);
  std::vector<Client> plain;
  for (std::size_t length = 1; length < prompt.size(); ++length) {
    const std::vector<TokenId> beginning(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(length));
    plain.push_back(rig.submit(beginning, 1));
    rig.run(plain);
  }
  std::vector<Client> scored = rig.submit_many(prompt, 0, request.ask);
  rig.run(scored);
  const bridge::PromptScores& scores = *scored[0].stream->scores();
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
    const std::vector<float>& logits = runner.logits.at(SeqId(i + 1)).at(0);
    const auto given = static_cast<std::size_t>(prompt[i + 1]);
    const std::vector<double> logprobs = sample::reference_logprobs(logits);
    EXPECT_NEAR(static_cast<double>(scores.logprobs[i]), logprobs[given], 2e-6);
    const auto higher = std::ranges::count_if(logits, [&](float other) { return other > logits[given]; });
    EXPECT_EQ(scores.ranks[i], static_cast<std::uint32_t>(higher) + 1);
    std::vector<TokenId> order(kVocab);
    for (TokenId id = 0; id < static_cast<TokenId>(kVocab); ++id) order[static_cast<std::size_t>(id)] = id;
    std::ranges::stable_sort(order, std::greater<>(), [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; });
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(scores.top_of(i)[k].token, order[k]);
      EXPECT_NEAR(static_cast<double>(scores.top_of(i)[k].logprob), logprobs[static_cast<std::size_t>(order[k])], 2e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cache, ScoresOfPlainRuns, ::testing::Values(backend::KvType::kF32));

}  // namespace
}  // namespace quire::engine::testing::exactness_requests_test
