// What a generation takes of its key's limits, and when it gives it back.
#include "api/services/cache_namespace.h"
#include "api/wire/caller.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

class AccountLimitsTest : public CompletionRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override {
    return CompletionRig::open(by_alice(std::move(request)));
  }
  http::Request by_alice(http::Request request) {
    request.caller = std::make_shared<const keys::Caller>(
        keys::Caller{.name = "alice", .tenant = "team", .tenant_id = 7, .account = account_});
    return request;
  }
  bridge::Account::Figures figures() const { return account_->figures(); }

  std::shared_ptr<bridge::Account> account_ = std::make_shared<bridge::Account>("alice", bridge::AccountLimits{});
};

TEST_F(AccountLimitsTest, CountsEverySequenceUntilTheAnswerIsWhole) {
  auto generation = start(R"({"prompt":["a","b"],"n":2,"max_tokens":1})");
  EXPECT_EQ(figures().running, 4u);
  EXPECT_EQ(figures().waiting, 4u);
  for (bridge::Submission& one : submissions_) one.credit.give_back();  // they run
  EXPECT_EQ(figures().waiting, 0u);
  for (std::size_t i = 0; i < 3; ++i) say(i, 17, flow::Finish::kLength);
  test::take_events(*generation);
  EXPECT_EQ(figures().running, 4u);
  say(3, 17, flow::Finish::kLength);
  test::take_events(*generation);
  EXPECT_EQ(figures().running, 0u) << "before its last words are sent";
  EXPECT_EQ(figures().completion_tokens, 4u);
  EXPECT_EQ(figures().prompt_tokens, generation->tally().prompt_tokens);
}

TEST_F(AccountLimitsTest, AClientThatGoesAwayPaysForWhatItGot) {
  account_->set_limits({.tokens_per_minute = 1000});
  auto generation = start(R"({"prompt":[300,301,302],"max_tokens":100})");
  say(0, 17);
  say(0, 18);
  test::take_events(*generation);
  generation.reset();
  EXPECT_EQ(figures().running, 0u);
  EXPECT_EQ(figures().prompt_tokens, 3u);
  EXPECT_EQ(figures().completion_tokens, 2u);
}

TEST_F(AccountLimitsTest, ReservesItsPromptsAndTheLongestAnswers) {
  account_->set_limits({.tokens_per_minute = 100});
  auto first = start(R"({"prompt":[300,301],"n":2,"max_tokens":10})");  // 2 + 20
  EXPECT_EQ(refusal(R"({"prompt":[300,301,302],"max_tokens":76})", 429).at("param"), "tokens_per_minute");
  EXPECT_TRUE(start(R"({"prompt":[300,301],"max_tokens":76})"));
}

TEST_F(AccountLimitsTest, ARefusalNamesTheLimitAndChangesNothing) {
  account_->set_limits({.max_running = 2});
  auto held = start(R"({"prompt":"a","n":2})");
  const json::value error = refusal(R"({"prompt":"a"})", 429);
  EXPECT_EQ(error.at("code"), "rate_limit_exceeded");
  EXPECT_EQ(error.at("type"), "rate_limit_error");
  EXPECT_EQ(error.at("param"), "max_running");
  EXPECT_EQ(refusal(R"({"prompt":"a","n":3})", 400).at("param"), "max_running") << "no wait helps";
  EXPECT_EQ(figures().running, 2u);
  EXPECT_EQ(world_.queue.waiting_sequences(), 2u) << "the line was not touched";
}

TEST_F(AccountLimitsTest, WhatTheLineRefusesIsGivenBack) {
  World small({.max_sequences = 1, .max_tokens = 1000});
  const Services services = small.services();
  http::Request request;
  request.body = R"({"prompt":"a"})";
  auto held = complete(services, by_alice(request));
  auto refused = complete(services, by_alice(request));
  work(*held);
  work(*refused);
  EXPECT_FALSE(held->admit({hub_, [] {}, {}}));
  EXPECT_TRUE(refused->admit({hub_, [] {}, {}}));
  EXPECT_EQ(figures().running, 1u);
  EXPECT_EQ(figures().waiting, 1u);
  held.reset();
  while (small.queue.pop()) {
  }
}

// A search has as many sequences as it is wide, and each of them runs as far as the longest answer.
TEST_F(AccountLimitsTest, ASearchCountsAsWhatRuns) {
  account_->set_limits({.max_running = 4, .max_queued = 1, .tokens_per_minute = 1000});
  const std::string search = R"({"prompt":[300,301],"max_tokens":10,"use_beam_search":true,"n":1,"best_of":)";
  EXPECT_EQ(refusal(search + "5}", 400).at("param"), "max_running");
  auto held = start(search + "4}");
  EXPECT_EQ(figures().running, 4u);
  EXPECT_EQ(figures().waiting, 1u) << "it waits as one";
  EXPECT_EQ(refusal(R"({"prompt":"a"})", 429).at("param"), "max_running");
  for (int i = 0; i < 3; ++i) submissions_[0].stream->push({TokenId{302}, flow::Finish::kNone});
  submissions_[0].stream->push({TokenId{302}, flow::Finish::kLength});
  held->take();
  EXPECT_TRUE(held->finished());
  EXPECT_EQ(figures().running, 0u);
  EXPECT_EQ(figures().prompt_tokens, 2u);
  EXPECT_EQ(figures().completion_tokens, 16u) << "four tokens of each of four";
}

TEST_F(AccountLimitsTest, ItsSequencesAreItsTenants) {
  auto generation = start(R"({"prompt":"a","cache_salt":"s"})");
  EXPECT_EQ(submissions_[0].request.tenant, 7u);
  EXPECT_EQ(submissions_[0].request.cache_namespace, namespace_of_tenant(services_.fingerprint, "team", "s"));
}

}  // namespace
}  // namespace quire::api::test
