// A chain in three levels: what the target says of a part of its context, as far as a small model guessed it.
#include "core/speculate/models/triforce_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"
#include "core/speculate/models/self_draft.h"
#include "tests/core/speculate/draft_rig.h"

namespace quire::speculate::triforce_drafter_test {
namespace {

using ::testing::ElementsAreArray;
using namespace testing;

constexpr std::uint32_t kBlocks = 80;
constexpr std::uint32_t kDepth = 12;

// Says what the target will say, but for every n-th token.
class Prophet final : public Drafter {
 public:
  Prophet(const std::vector<Talker>& talkers, std::uint32_t wrong_every)
      : talkers_(talkers), wrong_every_(wrong_every) {}
  std::string method() const override { return "prophet"; }
  void observe(const ObservedStep& /*step*/) override {}
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto talker = std::ranges::find(talkers_, asked[i].seq, &Talker::seq);
      for (std::uint32_t d = 0; d < std::min(asked[i].max_nodes, asked[i].max_depth); ++d) {
        if (asked[i].tokens.size() + d >= talker->text.size()) break;  // it knows no more
        const TokenId truth = talker->text[asked[i].tokens.size() + d];
        const bool wrong = wrong_every_ != 0 && (d + 1) % wrong_every_ == 0;
        trees[i].add(wrong ? (truth + 1) % static_cast<TokenId>(kTinyVocab) : truth, static_cast<int>(d) - 1);
      }
    }
  }

 private:
  const std::vector<Talker>& talkers_;
  std::uint32_t wrong_every_;
};

class Triforce : public ::testing::Test {
 protected:
  Triforce()
      : ops_(cpu::make_cpu_ops({.num_threads = 2})),
        target_(*ops_, tiny_config(2)),
        cache_(*ops_, target_, kBlocks + 20) {}

  static ModelDraftLimits limits() {
    ModelDraftLimits limits;
    limits.max_sequences = 4;
    limits.max_rows = 30;
    limits.max_depth = kDepth;
    limits.num_blocks = kBlocks;
    return limits;
  }
  void add_talker(std::uint32_t prompt, const sample::Params& params) {
    Teller teller(*ops_, target_);
    const auto seq = static_cast<std::uint32_t>(talkers_.size());
    talkers_.push_back({SeqId(seq + 1), teller.tell(random_text(prompt, seq), params, 30), params,
                        blocks_from(seq * 40, 40), prompt + 1});
    cache_.store(talkers_.back().text, 0, prompt, talkers_.back().blocks);
  }
  std::unique_ptr<TriforceDrafter> drafter(std::uint32_t wrong_every, const SparseContext& context) {
    return std::make_unique<TriforceDrafter>(*ops_, *target_.decoder, cache_.cache(),
                                             std::make_unique<Prophet>(talkers_, wrong_every), limits(), context);
  }

  std::unique_ptr<backend::Ops> ops_;
  TinyModel target_;
  TargetCache cache_;
  std::vector<Talker> talkers_;
};

TEST_F(Triforce, ProposesTheTargetsTokensOneFurtherThanWasDraftedRight) {
  const RoleScope role(engine_role);
  add_talker(250, drawn(3));  // its guesses pass into another span
  for (const std::uint32_t wrong_every : {0u, 1u, 2u, 5u, 11u, 12u}) {
    const auto drafter = this->drafter(wrong_every, {16, 600});
    const std::uint32_t count = wrong_every == 0 ? kDepth : std::min(kDepth, wrong_every);
    EXPECT_THAT(tokens_of(draft(*drafter, talkers_[0], 64, 64)), ElementsAreArray(next_of(talkers_[0], count)));
  }
}

TEST_F(Triforce, BeginsAsTheSparseTargetAloneWould) {
  const RoleScope role(engine_role);
  ModelDraftOptions options = magicdec(16, 100);
  options.min_likely = 0.0f;
  for (const auto& [prompt, params] : {std::pair{395u, greedy()}, {503u, drawn(4)}}) {
    talkers_.clear();
    add_talker(prompt, params);
    ModelDrafter sparse(*ops_, *target_.decoder, cache_.cache(), limits(), options);
    const auto alone = tokens_of(draft(sparse, talkers_[0], 64, kDepth));
    talkers_[0].text.resize(talkers_[0].length);
    talkers_[0].text.insert(talkers_[0].text.end(), alone.begin(), alone.end());  // what the prophet says
    const auto drafter = this->drafter(0, options.context);
    EXPECT_EQ(tokens_of(draft(*drafter, talkers_[0], 64, 64)), alone);
  }
}

TEST_F(Triforce, LooksThroughManyAsThroughEachAloneAndWritesNothingOutsideScratch) {
  const RoleScope role(engine_role);
  add_talker(20, greedy());
  add_talker(45, drawn(4));
  std::vector<std::vector<std::byte>> before;
  for (std::uint32_t i = 0; i < kBlocks; ++i) before.push_back(bytes_of(*ops_, cache_.cache(), BlockId(i)));
  const auto drafter = this->drafter(7, {16, 600});
  const std::vector<Asked> asked{talkers_[0].asked(64, 64), talkers_[1].asked(64, 3), talkers_[0].asked(1, 64)};
  std::vector<sample::TokenTree> trees(3);
  drafter->propose(asked, trees);
  EXPECT_THAT(tokens_of(trees[0]), ElementsAreArray(next_of(talkers_[0], 7)));
  EXPECT_THAT(tokens_of(trees[1]), ElementsAreArray(next_of(talkers_[1], 3)));
  EXPECT_THAT(tokens_of(trees[2]), ElementsAreArray(next_of(talkers_[0], 1)));
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(before[i], bytes_of(*ops_, cache_.cache(), BlockId(i))) << i;
  }
}

TEST_F(Triforce, RefusesAWindowOfNothing) { EXPECT_THROW(drafter(0, {16, 0}), StartError); }

}  // namespace
}  // namespace quire::speculate::triforce_drafter_test
