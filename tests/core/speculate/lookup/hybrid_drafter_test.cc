#include "core/speculate/lookup/hybrid_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"
#include "tests/support/drafted_text.h"

namespace quire::speculate::hybrid_drafter_test {
namespace {

using test::tokens_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Guesses one token per sequence whose chance is given, and writes down what it was told.
class Scripted final : public Drafter {
 public:
  Scripted(TokenId token, std::vector<float> likely, Needs needs = {})
      : token_(token), likely_(std::move(likely)), needs_(std::move(needs)) {}
  std::string method() const override { return "scripted"; }
  Needs needs() const override { return needs_; }
  void admit(const Admitted& sequence) override { told.push_back("admit " + std::to_string(sequence.seq.value)); }
  void observe(const ObservedStep&) override { told.push_back("observe"); }
  void release(SeqId seq, bool ended) override {
    told.push_back("release " + std::to_string(seq.value) + (ended ? " ended" : " waits"));
  }
  void track(std::span<const flow::BlockOp> ops) override { told.push_back("follow " + std::to_string(ops.size())); }
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_TRUE(trees[i].empty());
      asked_for.push_back(asked[i].seq.value);
      if (likely_[asked[i].seq.value] > 0) trees[i].add(token_, -1, likely_[asked[i].seq.value]);
    }
  }
  std::vector<std::string> told;
  std::vector<std::uint64_t> asked_for;

 private:
  TokenId token_;
  std::vector<float> likely_;
  Needs needs_;
};

TEST(HybridDrafter, AsksTheSecondWhereTheFirstPromisesTooLittle) {
  const RoleScope role(engine_role);
  auto first = std::make_unique<Scripted>(1, std::vector<float>{0.9f, 0.5f, 0.0f, 0.6f, 0.4f});
  auto second = std::make_unique<Scripted>(2, std::vector<float>{0.1f, 0.1f, 0.1f, 0.1f, 0.0f});
  Scripted* const seen = second.get();
  HybridDrafter hybrid(std::move(first), std::move(second), {.min_expected = 0.5f});
  for (int round = 0; round < 2; ++round) {
    seen->asked_for.clear();
    std::vector<Asked> asked(5);
    for (std::uint64_t i = 0; i < 5; ++i) asked[i].seq = SeqId(i);
    std::vector<sample::TokenTree> trees(5);
    hybrid.propose(asked, trees);
    std::vector<TokenId> drafted;
    for (const sample::TokenTree& tree : trees) drafted.push_back(tree.token(0));
    EXPECT_THAT(drafted, ElementsAre(1, 2, 2, 1, 1));  // the last: the second knows nothing
    EXPECT_THAT(seen->asked_for, ElementsAre(1, 2, 4));
  }
}

TEST(HybridDrafter, ReportsBothEverything) {
  const RoleScope role(engine_role);
  auto first = std::make_unique<Scripted>(1, std::vector<float>{});
  auto second = std::make_unique<Scripted>(2, std::vector<float>{}, Needs{{3, 4}, false});
  const Scripted* const both[] = {first.get(), second.get()};
  HybridDrafter hybrid(std::move(first), std::move(second), {});
  hybrid.admit({SeqId(7), {}, {}});
  hybrid.observe({});
  const flow::BlockOp ops[3] = {};
  hybrid.track(ops);
  hybrid.release(SeqId(7), false);
  hybrid.release(SeqId(7), true);
  for (const Scripted* one : both) {
    EXPECT_THAT(one->told, ElementsAre("admit 7", "observe", "follow 3", "release 7 waits", "release 7 ended"));
  }
  EXPECT_THAT(hybrid.needs().boundaries, ElementsAre(3, 4));
}

TEST(HybridDrafter, RefusesTwoThatNeedDifferentStates) {
  const auto make = [](Needs one, Needs other) {
    return HybridDrafter(std::make_unique<Scripted>(1, std::vector<float>{}, one),
                         std::make_unique<Scripted>(2, std::vector<float>{}, other), {});
  };
  EXPECT_THROW(make({{1}, false}, {{2}, false}), StartError);
  EXPECT_THROW(make({{1}, false}, {{}, true}), StartError);
  EXPECT_THAT(make({{1}, false}, {{1}, false}).needs().boundaries, ElementsAre(1));
  EXPECT_TRUE(make({{}, true}, {}).needs().final_norm);
  EXPECT_THROW(HybridDrafter(std::make_unique<Scripted>(1, std::vector<float>{}),
                             std::make_unique<Scripted>(2, std::vector<float>{}), {.min_expected = 65.0f}),
               StartError);
}

}  // namespace
}  // namespace quire::speculate::hybrid_drafter_test
