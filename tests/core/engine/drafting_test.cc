#include "core/engine/drafting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/engine/live_rig.h"

namespace quire::engine::drafting_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Proposes `tree` to every sequence and records what it is shown.
class FixedDrafter final : public speculate::Drafter {
 public:
  std::string method() const override { return "fixed"; }
  void admit(const speculate::Admitted& one) override { admitted.push_back(one.seq); }
  void observe(const speculate::ObservedStep& step) override {
    for (const speculate::Observed& one : step.sequences) {
      rows.emplace_back(one.rows.begin(), one.rows.end());
      first_positions.push_back(one.first_position);
      for (const speculate::LookaheadResult& result : one.lookahead_results) lookahead.push_back(result.token);
    }
  }
  void propose(std::span<const speculate::Asked> asked, std::span<sample::TokenTree> trees) override {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      max_depths.push_back(asked[i].max_depth);
      trees[i] = tree;
    }
  }
  void release(SeqId seq, bool ended) override { released.emplace_back(seq, ended); }

  sample::TokenTree tree;
  std::vector<SeqId> admitted;
  std::vector<std::pair<SeqId, bool>> released;
  std::vector<std::uint32_t> max_depths;
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<std::uint32_t> first_positions;
  std::vector<TokenId> lookahead;
};

class DraftingTest : public ::testing::Test {
 protected:
  std::vector<TokenId> drafted(Live& live) REQUIRES(engine_role) {
    schedule::Sequence* const running[] = {&live.sequence};
    rig_.drafting.propose(running, rig_.live_sequences, 64);
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < live.sequence.draft.size(); ++i) tokens.push_back(live.sequence.draft.token(i));
    return tokens;
  }

  const RoleScope role_{engine_role};
  FixedDrafter drafter_;
  LiveRig rig_{&drafter_, 4};
};

TEST_F(DraftingTest, TakesOnlyNodesThatCanRunInTheirOrder) {
  sample::TokenTree& tree = drafter_.tree;
  const int first = tree.add(5, sample::TokenTree::kRoot);
  tree.add(LiveRig::kVocab, sample::TokenTree::kRoot);  // one above the last token
  tree.add(-1, first);
  const int outside = tree.add(static_cast<TokenId>(LiveRig::kVocab) + 7, first);
  tree.add(6, outside);  // its parent cannot run
  const int second = tree.add(LiveRig::kVocab - 1, first);
  const int third = tree.add(8, second);
  tree.add(9, third);
  tree.add(10, sample::TokenTree::kRoot);  // a fifth node: one more than a draft may have
  Live& live = rig_.decoding({1, 2, 3}, 50, 4);
  EXPECT_THAT(drafted(live), ElementsAre(5, LiveRig::kVocab - 1, 8, 9));
}

TEST_F(DraftingTest, IsNoDeeperThanTheTokensThatMayStillFollow) {
  int at = sample::TokenTree::kRoot;
  for (TokenId token = 5; token < 9; ++token) at = drafter_.tree.add(token, at);
  for (const std::uint32_t max_tokens : {2u, 3u, 4u, 5u, 6u, 7u}) {
    Live& live = rig_.decoding({1, 2, 3}, max_tokens, 4);  // one token is sampled already, one comes anyway
    EXPECT_THAT(drafted(live), SizeIs(std::min(max_tokens - 2, 4u))) << max_tokens;
  }
}

TEST_F(DraftingTest, IsEmptyWhileAStepIsInFlightOrTheSequenceIsPausedOrUntracked) {
  drafter_.tree.add(5, sample::TokenTree::kRoot);
  Live& live = rig_.decoding({1, 2, 3}, 50, 4);
  EXPECT_THAT(drafted(live), ElementsAre(5));
  live.sequence.paused = true;
  EXPECT_THAT(drafted(live), IsEmpty());
  live.sequence.paused = false;
  live.tracked = false;
  EXPECT_THAT(drafted(live), IsEmpty());
  live.tracked = true;
  rig_.runner.is_idle = false;
  live.sequence.draft.clear();
  EXPECT_THAT(drafted(live), IsEmpty());
  EXPECT_THAT(drafter_.max_depths, SizeIs(1)) << "asked once";
}

TEST_F(DraftingTest, WithoutADrafterDoesNothing) {
  LiveRig rig;
  Live& live = rig.decoding({1, 2, 3}, 50, 4);
  schedule::Sequence* const running[] = {&live.sequence};
  EXPECT_FALSE(rig.drafting.enabled());
  rig.drafting.propose(running, rig.live_sequences, 64);
  rig.drafting.admit(live);
  rig.drafting.release(live.sequence.id());
  rig.drafting.forget(live.sequence.id());
  EXPECT_EQ(live.sequence.draft.size(), 0u);
}

// The draft 5 (6 7) 8: the step samples 5 after the last token, 7 after 5, and then 20, which no node has.
TEST_F(DraftingTest, VerifiesAlongTheSampledTokensAndMovesTheirRows) {
  sample::TokenTree& tree = drafter_.tree;
  const int five = tree.add(5, sample::TokenTree::kRoot);
  tree.add(6, five);
  tree.add(7, five);
  tree.add(8, sample::TokenTree::kRoot);
  Live& live = rig_.decoding({1, 2, 3}, 50, 4);
  ASSERT_THAT(drafted(live), ElementsAre(5, 6, 7, 8));
  schedule::Sequence& sequence = live.sequence;
  flow::StepPlan plan;
  flow::PlannedSequence& planned = plan.sequences.emplace_back();
  planned.seq = sequence.id();
  planned.first_row = 10;
  planned.num_rows = 5;
  planned.first_position = 3;
  planned.num_nodes = 4;
  planned.samples = planned.decodes = true;
  const Flight flight{&plan, {}, {}};
  rig_.drafting.begin_commit(flight, std::chrono::milliseconds(1));
  sequence.progress.commit(1);
  const auto commit = [](Live& one, const flow::StepChoice& choice) REQUIRES(engine_role) {
    one.has_event = true;
    one.event = {choice.token, one.sequence.append(choice.token), 0.0f};
  };
  commit(live, {{.token = 5}, sequence.id()});
  const std::vector<flow::StepChoice> nodes = {{{.token = 7}, sequence.id()},
                                               {{.token = -1}, sequence.id()},
                                               {{.token = 20}, sequence.id()},
                                               {{.token = -1}, sequence.id()}};
  rig_.drafting.verify(live, nodes, commit);
  EXPECT_EQ(live.event.token, 20);
  ASSERT_THAT(live.earlier, SizeIs(2));
  EXPECT_EQ(live.earlier[0].event.token, 5);
  EXPECT_EQ(live.earlier[1].event.token, 7);
  EXPECT_EQ(sequence.progress.computed(), 6u) << "its last row, and the rows of 5 and 7";
  const std::uint32_t slot = sequence.table.slot(0, 4);
  EXPECT_THAT(rig_.runner.copies, ElementsAre(Pair(slot + 2, slot + 1))) << "5 lies at its position, 7 two nodes later";
  EXPECT_EQ(rig_.metrics.spec_draft_tokens.value(), 4u);
  EXPECT_EQ(rig_.metrics.spec_accepted_tokens.value(), 2u);

  rig_.drafting.note_observed(live, planned, nodes);
  Live* const touched[] = {&live};
  rig_.drafting.observe(flight, touched);
  EXPECT_THAT(drafter_.rows, ElementsAre(ElementsAre(10, 11, 13))) << "the last row, and those of nodes 0 and 2";
  EXPECT_THAT(drafter_.first_positions, ElementsAre(3));
}

TEST_F(DraftingTest, NotifiesTheDrafterWhetherASequenceEndedOrWasPreempted) {
  Live& live = rig_.add({1, 2, 3}, 50);
  const SeqId id = live.sequence.id();
  rig_.drafting.admit(live);
  rig_.drafting.release(id);
  rig_.drafting.forget(id);
  EXPECT_THAT(drafter_.admitted, ElementsAre(id));
  EXPECT_THAT(drafter_.released, ElementsAre(Pair(id, false), Pair(id, true)));
}

TEST_F(DraftingTest, DoesNotAdmitASequenceThatAskedForNoDrafts) {
  bridge::Submission submission;
  submission.request.prompt = {1, 2, 3};
  submission.request.max_tokens = 9;
  submission.request.speculation.enabled = false;
  submission.stream = rig_.hub->open([] {});
  Live* const live = rig_.live_sequences.add(submission);
  ASSERT_NE(live, nullptr);
  rig_.drafting.admit(*live);
  EXPECT_FALSE(live->tracked);
  EXPECT_THAT(drafter_.admitted, IsEmpty());
}

}  // namespace
}  // namespace quire::engine::drafting_test
