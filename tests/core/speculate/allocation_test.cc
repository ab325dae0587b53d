// A head that drafts what it has drafted before allocates nothing: operator new is counted.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/speculate/heads/eagle_drafter.h"
#include "tests/core/speculate/heads/tiny_head.h"
#include "tests/support/allocation_counter.h"

namespace quire::speculate::allocation_test {
namespace {

using quire::testing::num_allocations;

constexpr std::uint32_t kMaxLen = 128;
constexpr std::uint32_t kSequences = 3;
constexpr std::uint32_t kRows = 64;  // of a step that are observed

class DraftingAllocates : public ::testing::TestWithParam<std::pair<std::uint32_t, sample::Params>> {
 protected:
  DraftingAllocates() {
    testing::write_target(target_dir_);
    testing::write_eagle1(head_dir_);
    const auto target_files = model::ModelFiles::directory(target_dir_.path());
    const auto head_files = model::ModelFiles::directory(head_dir_.path());
    ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = kMaxLen});
    target_ = std::make_unique<model::Decoder>(*ops_, model::load_config(*target_files), *target_files, kMaxLen);
    RunnerLimits limits;
    limits.max_rows = kMaxLen;
    limits.max_sequences = kSequences;
    limits.max_model_len = kMaxLen;
    limits.num_blocks = 32;
    drafter_ = std::make_unique<EagleDrafter>(*ops_, *target_, *head_files,
                                              EagleOptions{.width = GetParam().first, .max_depth = 5}, limits);
    std::vector<float> values;
    states_ = testing::random_states(*ops_, kRows, values);
  }

  // What is said of these texts, `num_rows` rows further on, and who asks for drafts behind them.
  void observe(std::uint64_t first_seq, std::uint32_t num_texts, std::uint32_t computed, std::uint32_t num_rows)
      REQUIRES(engine_role) {
    asked_.clear();
    std::vector<Observed> observed;
    std::vector<std::uint32_t> rows(num_texts * num_rows);
    std::iota(rows.begin(), rows.end(), 0u);
    for (std::uint32_t i = 0; i < num_texts; ++i) {
      observed.push_back({.seq = SeqId(first_seq + i),
                          .tokens = std::span(texts_[i]).first(computed + num_rows + 1),
                          .first_position = computed,
                          .rows = std::span(rows).subspan(i * num_rows, num_rows),
                          .table = tables_[i]});
      asked_.push_back({.seq = SeqId(first_seq + i),
                        .tokens = observed.back().tokens,
                        .table = tables_[i],
                        .sampling = &GetParam().second,
                        .max_nodes = 12,
                        .max_depth = 5});
    }
    drafter_->observe({.sequences = observed, .states = states_.get()});
  }
  std::vector<TokenId> text(std::uint32_t seed) const {
    std::vector<TokenId> tokens(kMaxLen);
    for (TokenId& token : tokens) token = static_cast<TokenId>((seed = seed * 1664525u + 1013904223u) >> 16) % 40;
    return tokens;
  }
  static std::vector<BlockId> table(std::uint32_t first) {
    std::vector<BlockId> blocks;
    for (std::uint32_t i = 0; i < 8; ++i) blocks.emplace_back(first + i);
    return blocks;
  }

  model::testing::TempDir target_dir_, head_dir_;
  std::unique_ptr<backend::Ops> ops_;
  std::unique_ptr<model::Decoder> target_;
  std::unique_ptr<EagleDrafter> drafter_;
  std::unique_ptr<backend::Buffer> states_;
  const std::vector<std::vector<TokenId>> texts_ = {text(1), text(2), text(3)};
  const std::vector<std::vector<BlockId>> tables_ = {table(0), table(8), table(16)};
  std::vector<Asked> asked_;
};

TEST_P(DraftingAllocates, NothingWhereStepsAreNoLargerThanBefore) {
  const RoleScope role(engine_role);
  std::vector<sample::TokenTree> trees(kSequences);
  for (const std::uint64_t first_seq : {1u, 11u}) {
    observe(first_seq, kSequences, 0, 20);
    for (std::uint32_t step = 0; step < 30; ++step) {
      const std::uint32_t num = 1 + step % kSequences;
      observe(first_seq, num, 20 + step, 1);
      for (sample::TokenTree& tree : trees) tree.clear();
      const long before = num_allocations.load();
      drafter_->propose(asked_, std::span(trees).first(num));
      if (first_seq > 1) {
        ASSERT_EQ(num_allocations.load(), before) << "step " << step;
      }
      EXPECT_FALSE(trees[0].empty());
    }
    for (std::uint32_t i = 0; i < kSequences; ++i) drafter_->release(SeqId(first_seq + i), /*ended=*/true);
  }
}

INSTANTIATE_TEST_SUITE_P(By, DraftingAllocates,
                         ::testing::Values(std::pair(1u, sample::Params{.temperature = 0.0f}),
                                           std::pair(1u, sample::Params{.seed = 3}),
                                           std::pair(4u, sample::Params{.temperature = 0.0f}),
                                           std::pair(4u, sample::Params{.seed = 3}),
                                           std::pair(1u, sample::Params{.seed = 3, .accept = sample::Accept::kRatio}),
                                           std::pair(4u, sample::Params{.seed = 3, .accept = sample::Accept::kRatio})));

}  // namespace
}  // namespace quire::speculate::allocation_test
