// A drafting decoder with a cache of its own: whatever happened to a sequence's blocks, its guesses are those of the
// same model run over the same text, alone.
#include "core/speculate/models/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"
#include "tests/core/speculate/draft_rig.h"

namespace quire::speculate::model_drafter_test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using namespace testing;

constexpr std::uint32_t kBlocks = 160;
constexpr std::uint32_t kDepth = 5;

ModelDraftLimits limits() {
  ModelDraftLimits limits;
  limits.max_sequences = 20;
  limits.max_rows = 256;
  limits.max_depth = 20;
  limits.num_blocks = kBlocks;
  limits.kv_type = backend::KvType::kF32;
  return limits;
}

// A chain ends with what was asked, not because it is unlikely.
ModelDraftOptions stubborn() {
  ModelDraftOptions options;
  options.min_likely = 0.0f;
  return options;
}

class ModelDrafterTest : public ::testing::Test {
 protected:
  ModelDrafterTest()
      : ops_(cpu::make_cpu_ops({.num_threads = 2})),
        target_(*ops_, tiny_config(2)),
        other_(*ops_, tiny_config(1), "other") {}

  Talker talker(std::uint64_t seq, std::uint32_t prompt, std::uint32_t length, const sample::Params& params,
                std::vector<BlockId> blocks) {
    Teller teller(*ops_, target_);
    return {SeqId(seq), teller.tell(random_text(prompt, static_cast<std::uint32_t>(seq)), params, length - prompt),
            params, std::move(blocks)};
  }
  std::unique_ptr<ModelDrafter> drafter(const ModelDraftOptions& options = stubborn(),
                                        const ModelDraftLimits& size = limits()) {
    return std::make_unique<ModelDrafter>(*ops_, *target_.decoder, kTinyVocab, size, options);
  }
  // Tokens of the one-layer model after the committed text.
  std::vector<TokenId> other_says(const Talker& talker, std::uint32_t count) {
    Teller teller(*ops_, other_);
    const auto committed = talker.committed();
    const auto text = teller.tell({committed.begin(), committed.end()}, talker.params, count);
    return {text.end() - count, text.end()};
  }

  std::unique_ptr<backend::Ops> ops_;
  TinyModel target_;
  TinyModel other_;
};

struct Saying {
  sample::Params params;
  backend::KvType kv;
};

class ModelDrafterProposes : public ModelDrafterTest, public ::testing::WithParamInterface<Saying> {};

TEST_P(ModelDrafterProposes, TheTargetsTokensWhateverWasAcceptedAcrossBlocks) {
  const RoleScope role(engine_role);
  const auto& [params, kv] = GetParam();
  Teller teller(*ops_, target_, kv);
  Talker talker{SeqId(1), teller.tell(random_text(37, 1), params, 200), params, blocks_from(3, 20)};
  ModelDraftLimits size = limits();
  size.kv_type = kv;
  const auto drafter = this->drafter(stubborn(), size);
  talker.read_prompt(*drafter, 37, 20);
  std::mt19937 random(7);
  while (talker.length + 8 < talker.text.size()) {
    const std::uint32_t depth = 1 + random() % 7;
    ASSERT_THAT(tokens_of(draft(*drafter, talker, 64, depth)), ElementsAreArray(next_of(talker, depth)));
    talker.go_on(*drafter, 1 + random() % (depth + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(AtEveryTemperatureAndCache, ModelDrafterProposes,
                         ::testing::Values(Saying{greedy(), backend::KvType::kF32},
                                           Saying{drawn(5), backend::KvType::kF32},
                                           Saying{drawn(6, 1.6f), backend::KvType::kBF16},
                                           Saying{drawn(7), backend::KvType::kFp8},
                                           Saying{drawn(8), backend::KvType::kInt8}));

// A block that was given back for another's with the same tokens, whose sequence nobody drafted for: its rows are not
// there.
TEST_F(ModelDrafterTest, ComputesTheRowsOfABlockThatTookAnothersPlace) {
  const RoleScope role(engine_role);
  for (const std::size_t block : {0u, 1u, 2u}) {
    Talker talker = this->talker(1, 50, 80, greedy(), blocks_from(0, 8));
    const auto drafter = this->drafter();
    talker.read_prompt(*drafter, 50, 50);
    ASSERT_THAT(tokens_of(draft(*drafter, talker, 64, kDepth)), ElementsAreArray(next_of(talker, kDepth)));
    talker.go_on(*drafter, 2);
    talker.blocks[block] = BlockId(100);
    const auto rows_before = drafter->rows_run();
    EXPECT_THAT(tokens_of(draft(*drafter, talker, 64, kDepth)), ElementsAreArray(next_of(talker, kDepth))) << block;
    EXPECT_GE(drafter->rows_run(), rows_before + kBlock) << block;
  }
}

TEST_F(ModelDrafterTest, RunsEveryRowOnceWhereAllItsDraftTokensAreAccepted) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 140, greedy(), blocks_from(0, 12));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  std::uint32_t drafted = 0;
  for (; talker.length + kDepth + 1 < talker.text.size(); ++drafted) {
    ASSERT_EQ(draft(*drafter, talker, 64, kDepth).size(), kDepth);
    talker.go_on(*drafter, kDepth + 1);
  }
  EXPECT_EQ(drafter->rows_run(), 40 + drafted * (kDepth + 1) - 1);  // the newest drafted token's row is still to come
}

TEST_F(ModelDrafterTest, ComputesAPromptAsItIsObservedAndThenTheRootAlone) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 100, 110, greedy(), blocks_from(0, 10));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 100, 50);
  EXPECT_EQ(drafter->rows_run(), 100u);
  draft(*drafter, talker, 1, 1);
  EXPECT_EQ(drafter->rows_run(), 101u);
}

TEST_F(ModelDrafterTest, WaitsForARequestWithoutPromptTracking) {
  const RoleScope role(engine_role);
  ModelDraftOptions options = stubborn();
  options.track_prompts = false;
  Talker talker = this->talker(1, 100, 110, greedy(), blocks_from(0, 10));
  const auto drafter = this->drafter(options);
  talker.read_prompt(*drafter, 100, 50);
  EXPECT_EQ(drafter->rows_run(), 0u);
  EXPECT_THAT(tokens_of(draft(*drafter, talker, 3, 3)), ElementsAreArray(next_of(talker, 3)));
}

TEST_F(ModelDrafterTest, CatchesUpInBoundedPiecesAndProposesNothingBefore) {
  const RoleScope role(engine_role);
  ModelDraftOptions options = stubborn();
  options.catch_up_rows = 64;
  Talker talker = this->talker(1, 240, 260, greedy(), blocks_from(0, 20));
  const auto drafter = this->drafter(options);
  talker.length = 241;
  std::uint64_t before = 0;
  std::uint32_t calls = 0;
  for (; calls < 10 && draft(*drafter, talker, 3, 3).empty(); ++calls) {
    EXPECT_LE(drafter->rows_run() - before, 64u);
    before = drafter->rows_run();
  }
  EXPECT_EQ(calls, 3u);  // 64, 128, 192 rows; then 48 and the guesses
  EXPECT_THAT(tokens_of(draft(*drafter, talker, 3, 3)), ElementsAreArray(next_of(talker, 3)));
}

TEST_F(ModelDrafterTest, FollowsCopiesOfBlocksWithoutRunningTheirRows) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 80, drawn(3), blocks_from(0, 8));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  const std::vector<flow::BlockOp> ops{{flow::BlockOp::Kind::kCopy, 2, 90}};
  drafter->track(ops);
  talker.blocks[2] = BlockId(90);
  const std::uint64_t before = drafter->rows_run();
  drafter->release(talker.seq, false);  // it looks at every block anew
  EXPECT_THAT(tokens_of(draft(*drafter, talker, 4, 4)), ElementsAreArray(next_of(talker, 4)));
  EXPECT_EQ(drafter->rows_run() - before, 4u);
  const backend::KvCache& kv = drafter->cache().kv();
  EXPECT_EQ(bytes_of(*ops_, kv, BlockId(90)), bytes_of(*ops_, kv, BlockId(2)));
}

TEST_F(ModelDrafterTest, ComputesAgainWhatStandsInOtherBlocks) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 80, drawn(4), blocks_from(0, 8));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  drafter->release(talker.seq, false);
  talker.blocks[1] = BlockId(77);
  const std::vector<flow::BlockOp> ops{{flow::BlockOp::Kind::kSwapIn, 0, 77}};
  drafter->track(ops);
  EXPECT_THAT(tokens_of(draft(*drafter, talker, 4, 4)), ElementsAreArray(next_of(talker, 4)));
}

TEST_F(ModelDrafterTest, ComputesAgainWhatWasPoisoned) {
  const RoleScope role(engine_role);
  for (const std::uint32_t poisoned : {0u, 1u, 2u}) {
    Talker talker = this->talker(1, 40, 80, drawn(4), blocks_from(0, 8));
    const auto drafter = this->drafter();
    talker.read_prompt(*drafter, 40, 40);
    drafter->release(talker.seq, false);
    const std::vector<flow::BlockOp> ops{{flow::BlockOp::Kind::kPoison, 0, poisoned}};
    drafter->track(ops);
    EXPECT_THAT(tokens_of(draft(*drafter, talker, 4, 4)), ElementsAreArray(next_of(talker, 4))) << poisoned;
  }
}

TEST_F(ModelDrafterTest, GoesOnAfterAPreemptionInBlocksThatOthersUsed) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 100, drawn(4), blocks_from(0, 8));
  Talker other = this->talker(2, 60, 100, greedy(), blocks_from(2, 8));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  draft(*drafter, talker, 6, 6);
  talker.go_on(*drafter, 4);
  drafter->release(talker.seq, false);
  other.read_prompt(*drafter, 60, 60);
  draft(*drafter, other, 6, 6);
  drafter->release(other.seq, true);
  talker.tell(*drafter, 0);
  EXPECT_THAT(tokens_of(draft(*drafter, talker, 5, 5)), ElementsAreArray(next_of(talker, 5)));
}

TEST_F(ModelDrafterTest, SharesTheBlocksOfAPrefixAndTheRowsInThem) {
  const RoleScope role(engine_role);
  Talker first = this->talker(1, 40, 100, greedy(), blocks_from(0, 8));
  const auto drafter = this->drafter();
  first.read_prompt(*drafter, 40, 40);
  Talker second = first;
  second.seq = SeqId(2);
  Teller teller(*ops_, target_);
  second.params = drawn(9);
  second.text = teller.tell({first.text.begin(), first.text.begin() + 40}, second.params, 40);
  for (std::size_t i = 2; i < second.blocks.size(); ++i) second.blocks[i] = BlockId(50 + static_cast<std::uint32_t>(i));
  second.length = 41;
  const std::uint64_t before = drafter->rows_run();
  EXPECT_THAT(tokens_of(draft(*drafter, second, 4, 4)), ElementsAreArray(next_of(second, 4)));
  EXPECT_EQ(drafter->rows_run() - before, 8u + 4u);  // two whole blocks are there
}

TEST_F(ModelDrafterTest, RunsASharedPrefixOnceWhereTwoCatchUpTogether) {
  const RoleScope role(engine_role);
  Talker first = this->talker(1, 96, 120, greedy(), blocks_from(0, 10));
  Talker second = first;
  second.seq = SeqId(2);
  for (std::size_t i = 6; i < second.blocks.size(); ++i) second.blocks[i] = BlockId(50 + static_cast<std::uint32_t>(i));
  const auto drafter = this->drafter();
  first.length = second.length = 100;
  const std::vector<Asked> asked{first.asked(3, 3), second.asked(3, 3)};
  std::vector<sample::TokenTree> trees(2);
  drafter->propose(asked, trees);
  EXPECT_THAT(tokens_of(trees[0]), ElementsAreArray(next_of(first, 3)));
  EXPECT_THAT(tokens_of(trees[1]), ElementsAreArray(next_of(second, 3)));
  EXPECT_EQ(drafter->rows_run(), 96u + 2 * 3 + 2 * 3);
}

TEST_F(ModelDrafterTest, WritesNothingButItsRowsAndScratch) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 100, drawn(4), blocks_from(4, 8));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  draft(*drafter, talker, 20, 20);
  talker.go_on(*drafter, 3);
  const auto& kv = drafter->cache().kv();
  std::vector<std::vector<std::byte>> before;
  for (std::uint32_t i = 0; i < kBlocks; ++i) before.push_back(bytes_of(*ops_, kv, BlockId(i)));
  draft(*drafter, talker, 20, 20);
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const bool its_last = BlockId(i) == talker.blocks[(talker.length - 1) / kBlock];
    EXPECT_TRUE(its_last || bytes_of(*ops_, kv, BlockId(i)) == before[i]) << i;
  }
  // Only the committed rows of its last block were written: the same bytes as after a run over the text in a cache of
  // its own.
  const auto reference = ops_->make_kv(kv.shape());
  model::Workspace workspace = target_.decoder->make_workspace(512, 1);
  ops_->write_block(*reference, talker.blocks[2], before[talker.blocks[2].value]);
  run_rows(*ops_, *target_.decoder, *reference, workspace, talker.text, 0, talker.length - 1, talker.blocks, greedy());
  EXPECT_EQ(bytes_of(*ops_, *reference, talker.blocks[2]), bytes_of(*ops_, kv, talker.blocks[2]));
}

TEST_F(ModelDrafterTest, ProposesForManyWhatItProposesForEachAlone) {
  const RoleScope role(engine_role);
  ModelDraftLimits size = limits();
  size.max_rows = 40;  // levels in several batches
  ModelDrafter drafter(*ops_, *other_.decoder, kTinyVocab, size, stubborn());
  std::vector<Talker> talkers;
  for (std::uint32_t i = 0; i < 18; ++i) {
    talkers.push_back(
        this->talker(i + 1, 5 + 7 * i, 140, i % 3 == 0 ? greedy() : drawn(i), blocks_from(i * 8, i < 17 ? 8 : 9)));
    talkers.back().blocks.resize(9, BlockId(150));
    talkers.back().read_prompt(drafter, 5 + 7 * i, 1 + 4 * i);
  }
  std::mt19937 random(3);
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    std::vector<Asked> asked;
    for (const Talker& each : talkers) asked.push_back(each.asked(1 + random() % 8, 1 + random() % 8));
    std::vector<sample::TokenTree> trees(asked.size());
    drafter.propose(asked, trees);
    for (std::size_t i = 0; i < talkers.size(); ++i) {
      const std::uint32_t count = std::min(asked[i].max_nodes, asked[i].max_depth);
      ASSERT_THAT(tokens_of(trees[i]), ElementsAreArray(other_says(talkers[i], count))) << i;
      if (talkers[i].length + 9 < 128) talkers[i].go_on(drafter, 1 + random() % 8);
    }
  }
}

TEST_F(ModelDrafterTest, NeedsNoMoreThanARowAtATime) {
  const RoleScope role(engine_role);
  for (const std::uint32_t rows : {1u, 2u, 3u}) {
    ModelDraftLimits size = limits();
    size.max_rows = rows;
    const auto drafter = this->drafter(stubborn(), size);
    Talker talker = this->talker(1, 20, 60, drawn(4), blocks_from(0, 8));
    talker.read_prompt(*drafter, 20, 20);
    for (std::uint32_t count = 1; count < 5; ++count) {
      ASSERT_THAT(tokens_of(draft(*drafter, talker, 4, 4)), ElementsAreArray(next_of(talker, 4)));
      talker.go_on(*drafter, count);
    }
  }
}

TEST_F(ModelDrafterTest, EndsAPathThatIsTooUnlikely) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 80, greedy(), blocks_from(0, 8));
  talker.length = 41;
  const auto all = this->drafter();
  const sample::TokenTree whole = draft(*all, talker, 6, 6);
  ModelDraftOptions options;
  options.min_likely = whole.likely(3);
  const sample::TokenTree cut = draft(*this->drafter(options), talker, 6, 6);
  EXPECT_EQ(cut.size(), 4u);
  for (std::uint32_t i = 1; i < whole.size(); ++i) EXPECT_LE(whole.likely(i), whole.likely(i - 1));
}

TEST_F(ModelDrafterTest, NeedsNoMorePositionsThanItsModelHas) {
  const RoleScope role(engine_role);
  const TinyModel small(*ops_, tiny_config(1, kTinyVocab, 64), "other");
  ModelDrafter drafter(*ops_, *small.decoder, kTinyVocab, limits(), stubborn());
  Talker talker = this->talker(1, 50, 90, greedy(), blocks_from(0, 8));
  for (const auto& [length, draft_tokens] : {std::pair{60u, 5u}, {63u, 2u}, {64u, 1u}, {65u, 0u}, {66u, 0u}}) {
    talker.length = length;
    EXPECT_EQ(draft(drafter, talker, 8, 8).size(), draft_tokens) << length;
  }
}

TEST_F(ModelDrafterTest, ProposesNothingForASequenceWhosePastWasDropped) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(1, 40, 80, greedy(), blocks_from(0, 8));
  const auto drafter = this->drafter();
  talker.read_prompt(*drafter, 40, 40);
  EXPECT_FALSE(draft(*drafter, talker, 2, 2).empty());
  talker.blocks[1] = kNoBlock;
  EXPECT_TRUE(draft(*drafter, talker, 2, 2).empty());
}

TEST_F(ModelDrafterTest, RefusesAnotherVocabularyNamingBoth) {
  const auto make = [&] { ModelDrafter(*ops_, *target_.decoder, 4711, limits(), stubborn()); };
  const std::string said = model::testing::refusal(make);
  EXPECT_THAT(said, HasSubstr("61"));
  EXPECT_THAT(said, HasSubstr("4711"));
}

TEST_F(ModelDrafterTest, RefusesWhatDoesNotFitItsModelAllAtOnce) {
  ModelDraftOptions options;
  options.parts.resize(3);
  options.widths = {2, 0, 17};
  options.context.window = 64;
  const auto make = [&] { ModelDrafter(*ops_, *target_.decoder, kTinyVocab, limits(), options); };
  const std::string said = model::testing::refusal(make);
  for (const char* part : {"3 layers of 2", "width of 0", "width of 17", "window"}) EXPECT_THAT(said, HasSubstr(part));
  ModelDraftLimits size = limits();
  size.kv_type = backend::KvType::kInt4;
  EXPECT_THROW(ModelDrafter(*ops_, *target_.decoder, kTinyVocab, size, stubborn()), StartError);
}

}  // namespace
}  // namespace quire::speculate::model_drafter_test
