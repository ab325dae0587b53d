// Drafts of the target's own weights over its own cache: cheaper models in disguise, and nothing of the target's is touched.
#include "core/speculate/models/self_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/start_error.h"
#include "tests/core/speculate/draft_rig.h"

namespace quire::speculate::self_draft_test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using namespace testing;

constexpr std::uint32_t kBlocks = 60;

ModelDraftLimits limits() {
  ModelDraftLimits limits;
  limits.max_sequences = 4;
  limits.max_rows = 64;
  limits.max_depth = 20;
  limits.num_blocks = kBlocks;
  return limits;
}

ModelDraftOptions stubborn(ModelDraftOptions options) {
  options.min_likely = 0.0f;
  return options;
}

class SelfDraft : public ::testing::Test {
 protected:
  SelfDraft()
      : ops_(cpu::make_cpu_ops({.num_threads = 2})),
        target_(*ops_, tiny_config(3)),
        cache_(*ops_, target_, kBlocks + ModelDrafter::num_scratch_blocks(limits(), {})) {}

  std::unique_ptr<ModelDrafter> drafter(const ModelDraftOptions& options) {
    return std::make_unique<ModelDrafter>(*ops_, *target_.decoder, cache_.cache(), limits(), stubborn(options));
  }
  // In blocks that are not side by side.
  Talker talker(std::uint32_t prompt, std::uint32_t length, const sample::Params& params) {
    Teller teller(*ops_, target_);
    Talker made{SeqId(1), teller.tell(random_text(prompt, 1), params, length - prompt), params, {}};
    for (std::uint32_t i = 0; i <= length / kBlock; ++i) made.blocks.emplace_back(i * 7 % kBlocks);
    made.length = prompt + 1;
    return made;
  }
  void store(const Talker& talker, std::uint32_t first = 0) {
    cache_.store(talker.text, first, talker.length - 1, talker.blocks);
  }
  void poison(const Talker& talker, std::uint32_t first_position, std::uint32_t end) {
    for (std::uint32_t p = first_position; p < end; p += kBlock) {
      ops_->poison_block(cache_.cache(), talker.blocks[p / kBlock]);
    }
  }
  std::vector<TokenId> says(const TinyModel& model, const Talker& talker, std::uint32_t count) {
    Teller teller(*ops_, model);
    const auto committed = talker.committed();
    const auto text = teller.tell({committed.begin(), committed.end()}, talker.params, count);
    return {text.end() - count, text.end()};
  }

  std::unique_ptr<backend::Ops> ops_;
  TinyModel target_;
  TargetCache cache_;
};

TEST_F(SelfDraft, OfAllLayersProposesTheTargetsTokens) {
  const RoleScope role(engine_role);
  for (const auto& params : {greedy(), drawn(3)}) {
    Talker talker = this->talker(30, 200, params);
    store(talker);
    for (const ModelDraftOptions& options :
         {layer_skip(target_.config(), 3), draft_verify(target_.config(), {}, {}), magicdec(0, 640)}) {
      const auto drafter = this->drafter(options);
      EXPECT_THAT(tokens_of(draft(*drafter, talker, 20, 20)), ElementsAreArray(next_of(talker, 20))) << options.method;
    }
  }
}

TEST_F(SelfDraft, GoesOnFromWhateverWasCommittedAndRunsNothingAgain) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(30, 120, drawn(3));
  store(talker);
  const auto drafter = this->drafter(layer_skip(target_.config(), 3));
  std::uint64_t rows = 0;
  for (std::uint32_t count = 1; talker.length + 12 < talker.text.size(); count = count % 9 + 1) {
    ASSERT_THAT(tokens_of(draft(*drafter, talker, 8, 8)), ElementsAreArray(next_of(talker, 8)));
    EXPECT_EQ(drafter->rows_run(), rows += 8);
    const std::uint32_t first = talker.length - 1;
    talker.go_on(*drafter, count);
    store(talker, first);
  }
}

// With its weights named alike a model of fewer layers is the beginning of the target, and K and V of these are the same.
TEST_F(SelfDraft, OfTheFirstLayersProposesTheTokensOfAModelOfThese) {
  const RoleScope role(engine_role);
  for (const std::uint32_t layers : {1u, 2u}) {
    const TinyModel beginning(*ops_, tiny_config(layers));
    for (const auto& params : {greedy(), drawn(3)}) {
      Talker talker = this->talker(45, 70, params);
      store(talker);
      const auto drafter = this->drafter(layer_skip(target_.config(), layers));
      EXPECT_THAT(tokens_of(draft(*drafter, talker, 9, 9)), ElementsAreArray(says(beginning, talker, 9)));
    }
  }
}

TEST_F(SelfDraft, WithoutTheLastLayersBothPartsIsALayerSkip) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(45, 70, greedy());
  store(talker);
  const auto skip = draft(*drafter(layer_skip(target_.config(), 2)), talker, 9, 9);
  const std::vector<std::uint32_t> last{2};
  EXPECT_EQ(tokens_of(draft(*drafter(draft_verify(target_.config(), last, last)), talker, 9, 9)), tokens_of(skip));
  EXPECT_EQ(tokens_of(draft(*drafter(draft_verify(target_.config(), last)), talker, 9, 9)), tokens_of(skip));
}

TEST_F(SelfDraft, LeavesOutAttentionAndFeedForwardEachByItself) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(45, 70, greedy());
  store(talker);
  const std::vector<std::uint32_t> middle{1};
  const auto drafted = [&](const ModelDraftOptions& options) REQUIRES(engine_role) {
    const sample::TokenTree tree = draft(*drafter(options), talker, 9, 9);
    std::vector<float> likely;
    for (std::uint32_t i = 0; i < tree.size(); ++i) likely.push_back(tree.likely(i));
    return likely;
  };
  const auto all = drafted(draft_verify(target_.config(), {}, {}));
  const auto without_attention = drafted(draft_verify(target_.config(), middle, {}));
  const auto without_mlp = drafted(draft_verify(target_.config(), {}, middle));
  EXPECT_EQ(all.size(), 9u);
  EXPECT_NE(all, without_attention);
  EXPECT_NE(all, without_mlp);
  EXPECT_NE(without_attention, without_mlp);
}

TEST_F(SelfDraft, WritesNothingOutsideScratch) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(45, 90, greedy());
  store(talker);
  std::vector<std::vector<std::byte>> before;
  for (std::uint32_t i = 0; i < kBlocks; ++i) before.push_back(bytes_of(*ops_, cache_.cache(), BlockId(i)));
  for (const auto& options : {layer_skip(target_.config(), 2), magicdec(16, 16)}) {
    EXPECT_EQ(draft(*drafter(options), talker, 20, 20).size(), 20u);
  }
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(before[i], bytes_of(*ops_, cache_.cache(), BlockId(i))) << i;
  }
}

TEST_F(SelfDraft, OfASparseContextLooksAtNothingBetweenSinksAndWindow) {
  const RoleScope role(engine_role);
  Talker talker = this->talker(500, 560, drawn(3));  // in its second span; the first one's end is within no window
  store(talker);
  const auto drafter = this->drafter(magicdec(32, 300));  // from position 201 on
  const auto seen = tokens_of(draft(*drafter, talker, 20, 20));
  EXPECT_EQ(seen.size(), 20u);
  poison(talker, 32, 192);
  EXPECT_EQ(tokens_of(draft(*drafter, talker, 20, 20)), seen);
  for (std::uint32_t i = 2; i < 12; ++i) talker.blocks[i] = kNoBlock;
  EXPECT_EQ(tokens_of(draft(*drafter, talker, 20, 20)), seen);
}

TEST_F(SelfDraft, OfASparseContextLooksAtItsSinksAndAtItsWindow) {
  const RoleScope role(engine_role);
  for (const std::uint32_t poisoned : {0u, 16u, 192u, 240u, 256u, 480u}) {
    Talker talker = this->talker(500, 530, greedy());
    store(talker);
    poison(talker, poisoned, poisoned + 1);
    EXPECT_TRUE(draft(*drafter(magicdec(32, 300)), talker, 4, 4).empty()) << poisoned;
    store(talker);
    if (poisoned < 32 || poisoned >= 256) continue;
    talker.blocks[poisoned / kBlock] = kNoBlock;
    EXPECT_TRUE(draft(*drafter(magicdec(32, 300)), talker, 4, 4).empty()) << poisoned;
  }
}

TEST(SparseContext, KeepsTheFirstGroupTheSinksAndWhatReachesIntoTheWindow) {
  for (const std::uint32_t sinks : {0u, 1u, 16u, 17u, 300u}) {
    for (const std::uint32_t window : {1u, 15u, 16u, 100u, 256u, 400u}) {
      const SparseContext context{sinks, window};
      for (std::uint32_t row = 256; row < 1100; row += 13) {
        for (std::uint32_t span = 0; span < row / 256; ++span) {
          std::uint32_t kept = 0;
          for (std::uint32_t p = span * 256; p < (span + 1) * 256; ++p) {
            if (p < 16 || p < sinks || p + window > row) kept |= 1u << (p % 256 / 16);
          }
          ASSERT_EQ(context.word(span, row), kept) << sinks << ' ' << window << ' ' << row << ' ' << span;
        }
      }
    }
  }
}

TEST_F(SelfDraft, RefusesLayersThatAreNotThere) {
  using model::testing::refusal;
  EXPECT_THAT(refusal([&] { layer_skip(target_.config(), 0); }), HasSubstr("[1, 3]"));
  EXPECT_THAT(refusal([&] { layer_skip(target_.config(), 4); }), HasSubstr("exit_layer 4"));
  EXPECT_EQ(refusal([&] { layer_skip(target_.config(), 3); }), "");
  const std::vector<std::uint32_t> layers{1, 3, 9};
  const std::string said = refusal([&] { draft_verify(target_.config(), layers, layers); });
  for (const char* part : {"attention of layer 3", "mlp of layer 3", "attention of layer 9"}) {
    EXPECT_THAT(said, HasSubstr(part));
  }
  EXPECT_THROW(magicdec(16, 0), StartError);
}

TEST_F(SelfDraft, ChoosesEverySecondOfTheMiddleLayersWhereNoneIsNamed) {
  model::ModelSpec config = target_.config();
  config.layers.resize(9);
  const ModelDraftOptions options = draft_verify(config, {});
  for (std::uint32_t i = 0; i < 9; ++i) {
    const bool skipped = i == 2 || i == 4 || i == 6;
    EXPECT_EQ(options.parts[i].attention, !skipped) << i;
    EXPECT_EQ(options.parts[i].mlp, !skipped) << i;
  }
}

}  // namespace
}  // namespace quire::speculate::self_draft_test
