#include "core/engine/request_check.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/bridge/stream_hub.h"

namespace quire::engine::request_check_test {
namespace {

constexpr RequestBounds kBounds{.vocab = 100, .max_model_len = 32, .max_num_seqs = 8, .has_window = false};

flow::Request request() {
  flow::Request out;
  out.prompt = {0, 99};
  out.max_tokens = 30;
  return out;
}

using Change = std::function<void(flow::Request&)>;

bool fits_with(const Change& change, const RequestBounds& bounds = kBounds) {
  flow::Request changed = request();
  change(changed);
  return fits(changed, bounds);
}

TEST(RequestCheck, TakesTokenIdsOfTheVocabularyOnly) {
  EXPECT_TRUE(fits(request(), kBounds));
  for (const TokenId outside : {-1, 100, 101}) {
    EXPECT_FALSE(fits_with([outside](flow::Request& one) { one.prompt[1] = outside; })) << outside;
  }
}

TEST(RequestCheck, TakesPromptAndAnswerUpToTheModelsLength) {
  EXPECT_TRUE(fits_with([](flow::Request& one) { one.max_tokens = 29; }));
  EXPECT_FALSE(fits_with([](flow::Request& one) { one.max_tokens = 31; }));
  EXPECT_FALSE(fits_with([](flow::Request& one) { one.prompt.push_back(1); }));
  EXPECT_FALSE(fits_with([](flow::Request& one) { one.prompt.clear(); }));
  EXPECT_FALSE(fits_with([](flow::Request& one) { one.max_tokens = 0; })) << "an answer of no tokens";
  EXPECT_TRUE(fits_with([](flow::Request& one) {
    one.max_tokens = 0;
    one.scores_prompt = true;
  }));
}

TEST(RequestCheck, TakesAsManyCandidatesAsARowCanHave) {
  EXPECT_TRUE(fits_with([](flow::Request& one) { one.sampling.num_top = sample::kMaxTop; }));
  EXPECT_FALSE(fits_with([](flow::Request& one) { one.sampling.num_top = sample::kMaxTop + 1; }));
}

TEST(RequestCheck, TakesABeamSearchAsWideAsSequencesRunAndAloneOfItsKind) {
  const auto beam = [](std::uint32_t width, std::uint32_t best) {
    return [=](flow::Request& one) { one.beam = flow::BeamSearch{width, best, 1.0}; };
  };
  EXPECT_TRUE(fits_with(beam(8, 8)));
  EXPECT_FALSE(fits_with(beam(9, 1)));
  EXPECT_FALSE(fits_with(beam(4, 5)));
  EXPECT_FALSE(fits_with(beam(4, 0)));
  EXPECT_FALSE(fits_with([](flow::Request& one) {
    one.beam = flow::BeamSearch{2, 1, 1.0};
    one.scores_prompt = true;
  }));
  EXPECT_FALSE(fits_with(beam(8, 1), {.vocab = 100, .max_model_len = 32, .max_num_seqs = 7, .has_window = false}));
}

TEST(RequestCheck, TakesAKvPolicyOfWholeGroupsAndSpansOnAModelWithoutAWindow) {
  using Kind = flow::KvPolicy::Kind;
  const auto policy = [](std::uint32_t sinks, std::uint32_t window) {
    return [=](flow::Request& one) {
      one.kv_policy.kind = Kind::kSinkWindow;
      one.kv_policy.sinks = sinks;
      one.kv_policy.window = window;
    };
  };
  EXPECT_TRUE(fits_with(policy(16, 256)));
  for (const std::uint32_t sinks : {0u, 15u, 17u}) EXPECT_FALSE(fits_with(policy(sinks, 256))) << sinks;
  for (const std::uint32_t window : {0u, 255u, 257u}) EXPECT_FALSE(fits_with(policy(16, window))) << window;
  RequestBounds windowed = kBounds;
  windowed.has_window = true;
  EXPECT_FALSE(fits_with(policy(16, 256), windowed));
  EXPECT_TRUE(fits(request(), windowed));
}

TEST(RequestCheck, WantsTheBuffersThatARequestFills) {
  bridge::Doorbell doorbell;
  const auto hub = std::make_shared<bridge::StreamHub>(
      8, [] {}, doorbell);
  bridge::Submission submission;
  submission.request = request();
  submission.stream = hub->open([] {});
  EXPECT_TRUE(has_output_buffers(submission, 4));
  submission.request.scores_prompt = true;
  EXPECT_FALSE(has_output_buffers(submission, 4));
  submission.stream = hub->open([] {}, 0, std::make_unique<bridge::PromptScores>(2, 0));
  EXPECT_TRUE(has_output_buffers(submission, 4));
  submission.request.sampling.num_top = 1;
  EXPECT_FALSE(has_output_buffers(submission, 4)) << "no room for candidates";
  submission.request = request();
  submission.request.pooling = flow::Pooling::kMean;
  for (const std::uint32_t width : {3u, 4u, 5u}) {
    submission.stream = hub->open([] {}, 0, nullptr, std::make_unique<bridge::PromptEmbedding>(width));
    EXPECT_EQ(has_output_buffers(submission, 4), width == 4) << width;
  }
}

}  // namespace
}  // namespace quire::engine::request_check_test
