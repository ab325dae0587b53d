#include "core/speculate/heads/hydra_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/speculate/book_tree.h"
#include "tests/core/speculate/heads/plain_hydra.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::hydra_drafter_test {
namespace {

using model::testing::replaced;
using model::testing::TempDir;
using model::testing::TestTensor;
using testing::Grown;
using testing::kHeadVocab;
using testing::kHydraHeads;
using testing::kHydraMlp;
using testing::kHydraPrefix;
using testing::kTinyHidden;
using testing::Path;
using testing::PlainHydra;
using testing::Repeated;

constexpr std::uint32_t kMaxLen = 64;
constexpr std::uint32_t kBlockTokens = 16;

const sample::Params kGreedy{.temperature = 0.0f};
const sample::Params kDrawn{.temperature = 0.8f, .top_k = 20, .seed = 77, .choice_index = 1};

struct Text {
  SeqId seq;
  std::vector<TokenId> tokens;
  std::vector<BlockId> table;
  std::uint32_t computed = 0;
};

std::vector<BlockId> blocks(std::initializer_list<std::uint32_t> numbers) {
  std::vector<BlockId> table;
  for (const std::uint32_t number : numbers) table.emplace_back(number);
  return table;
}

std::vector<TokenId> some_tokens(std::uint32_t seed, std::size_t num) {
  std::vector<TokenId> tokens(num);
  for (std::size_t i = 0; i < num; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens[i] = static_cast<TokenId>((seed >> 16) % kHeadVocab);
  }
  return tokens;
}

class HydraDrafterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_target(target_dir_);
    target_files_ = model::ModelFiles::directory(target_dir_.path());
    ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = kMaxLen});
    target_.emplace(*ops_, model::load_config(*target_files_), *target_files_, kMaxLen);
    states_ = testing::random_states(*ops_, kMaxLen, values_);
  }
  std::unique_ptr<HydraDrafter> load(const std::vector<TestTensor>& tensors, const std::string& config,
                                     std::uint32_t width = 3) {
    head_dir_.write("config.json", config);
    head_dir_.write("model.safetensors", model::testing::safetensors_file(tensors));
    const auto files = model::ModelFiles::directory(head_dir_.path());
    RunnerLimits limits;
    limits.max_rows = kMaxLen;
    limits.max_sequences = 8;
    limits.max_model_len = kMaxLen;
    limits.block_tokens = kBlockTokens;
    limits.num_blocks = 12;
    limits.num_swap_blocks = 4;
    return std::make_unique<HydraDrafter>(
        *ops_, *target_, *files, HydraOptions{.width = width, .max_depth = 4, .kv_dtype = backend::KvType::kF32},
        limits);
  }
  std::unique_ptr<HydraDrafter> load_prefix() {
    return load(PlainHydra(Repeated::kWritten, /*prefix=*/true).tensors, kHydraPrefix);
  }

  // A step runs its next rows; the state at a position is what states_ has there, but `shift` further on.
  void observe(HydraDrafter& drafter, Text& text, std::uint32_t num_rows, std::uint32_t shift = 0)
      REQUIRES(engine_role) {
    std::vector<std::uint32_t> rows(num_rows);
    std::iota(rows.begin(), rows.end(), text.computed + shift);
    const Observed one{.seq = text.seq,
                       .tokens = std::span(text.tokens).first(text.computed + num_rows + 1),
                       .first_position = text.computed,
                       .rows = rows,
                       .table = text.table};
    drafter.observe({.sequences = {&one, 1}, .states = states_.get()});
    text.computed += num_rows;
  }
  static Asked asked(const Text& text, const sample::Params& params, const TreeLimits& limits) {
    return {.seq = text.seq,
            .tokens = text.tokens,
            .table = std::span(text.table).first((text.tokens.size() - 2) / kBlockTokens + 1),
            .sampling = &params,
            .max_nodes = limits.max_nodes,
            .max_depth = limits.max_depth};
  }
  static std::vector<Grown> propose(HydraDrafter& drafter, const Text& text, const TreeLimits& limits = kLimits)
      REQUIRES(engine_role) {
    const Asked one = asked(text, kGreedy, limits);
    sample::TokenTree tree;
    drafter.propose({&one, 1}, {&tree, 1});
    return testing::nodes_of(tree);
  }
  // What a drafter says that saw all of the text in one step.
  std::vector<Grown> at_once(Text text, std::uint32_t first_shifted = kMaxLen, std::uint32_t shift = 0)
      REQUIRES(engine_role) {
    const std::unique_ptr<HydraDrafter> fresh = load_prefix();
    const auto num = static_cast<std::uint32_t>(text.tokens.size()) - 1;
    text.seq = SeqId(99);
    text.table = blocks({8, 9, 10, 11});
    text.computed = 0;
    std::vector<std::uint32_t> rows(num);
    for (std::uint32_t i = 0; i < num; ++i) rows[i] = i < first_shifted ? i : i + shift;
    const Observed one{.seq = text.seq, .tokens = text.tokens, .first_position = 0, .rows = rows, .table = text.table};
    fresh->observe({.sequences = {&one, 1}, .states = states_.get()});
    return propose(*fresh, text);
  }

  static constexpr TreeLimits kLimits{.width = 3, .max_depth = 3, .max_nodes = 9};

  TempDir target_dir_, head_dir_;
  std::unique_ptr<model::ModelFiles> target_files_;
  std::unique_ptr<backend::Ops> ops_;
  std::optional<model::Decoder> target_;
  std::vector<float> values_;
  std::unique_ptr<backend::Buffer> states_;
};

class HydraBlocksTest : public HydraDrafterTest, public ::testing::WithParamInterface<Repeated> {};

INSTANTIATE_TEST_SUITE_P(Layouts, HydraBlocksTest,
                         ::testing::Values(Repeated::kWritten, Repeated::kLeftOut, Repeated::kDifferent),
                         [](const auto& one) {
                           return std::string(one.param == Repeated::kWritten   ? "written_again"
                                              : one.param == Repeated::kLeftOut ? "left_out"
                                                                                : "different");
                         });

TEST_P(HydraBlocksTest, GrowsTheTreesThatTheBookMakesOfTheHeads) {
  const RoleScope role(engine_role);
  const PlainHydra plain(GetParam());
  const std::unique_ptr<HydraDrafter> drafter = load(plain.tensors, kHydraMlp);
  EXPECT_EQ(drafter->num_heads(), kHydraHeads);
  EXPECT_TRUE(drafter->needs().final_norm);
  const std::vector<std::vector<std::uint32_t>> rows = {{7, 8, 9}, {0}, {2, 5}};
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6};
  for (const sample::Params& params : {kGreedy, kDrawn}) {
    std::vector<Observed> observed;
    std::vector<Asked> wanted;
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      const auto num = static_cast<std::uint32_t>(rows[i].size());
      observed.push_back({.seq = SeqId(i), .tokens = tokens, .first_position = 5 - num, .rows = rows[i]});
      wanted.push_back({.seq = SeqId(i), .tokens = tokens, .sampling = &params, .max_nodes = 7, .max_depth = 2 + i});
    }
    drafter->observe({.sequences = observed, .states = states_.get()});
    std::vector<sample::TokenTree> trees(wanted.size());
    drafter->propose(wanted, trees);
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(i);
      const auto odds = [&](const Path& below) {
        Path path = {tokens.back()};
        path.insert(path.end(), below.begin(), below.end());
        const std::vector<double> logprobs = plain.logprobs(&values_[std::size_t{rows[i].back()} * kTinyHidden], path);
        std::vector<std::pair<TokenId, float>> all;
        for (std::uint32_t token = 0; token < kHeadVocab; ++token) {
          all.emplace_back(token, static_cast<float>(logprobs[token]));
        }
        std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.second; });
        const bool noise = params.temperature > 0.0f;
        all.resize(std::min<std::size_t>(Children::num_candidates_to_request(3, params, noise), kHeadVocab));
        Children children;
        for (const auto& [token, logprob] : all) children.add(token, logprob);
        const auto position = static_cast<std::uint32_t>(tokens.size() + below.size());
        all.clear();
        for (const Child& child : noise ? children.drawn(3, params, position) : children.likeliest(3)) {
          all.emplace_back(child.token, child.log_likely);
        }
        return all;
      };
      const std::vector<Grown> expected =
          testing::by_the_book({.width = 3, .max_depth = std::min(2 + i, kHydraHeads), .max_nodes = 7}, odds);
      const std::vector<Grown> nodes = testing::nodes_of(trees[i]);
      ASSERT_EQ(nodes.size(), expected.size());
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        EXPECT_EQ(nodes[n].path, expected[n].path);
        EXPECT_NEAR(nodes[n].score, std::exp(expected[n].score), 1e-4f);
      }
    }
  }
}

TEST_F(HydraDrafterTest, SeesTheTokensOfAPath) {
  const RoleScope role(engine_role);
  const std::unique_ptr<HydraDrafter> drafter = load(PlainHydra(Repeated::kWritten).tensors, kHydraMlp);
  Text one{SeqId(1), some_tokens(1, 20), blocks({0, 1})};
  Text other = one;
  other.tokens.back() = (one.tokens.back() + 1) % static_cast<TokenId>(kHeadVocab);
  observe(*drafter, one, 19);
  const std::vector<Grown> draft_tokens = propose(*drafter, one);
  observe(*drafter, other, 19);
  EXPECT_NE(propose(*drafter, other), draft_tokens);
}

TEST_F(HydraDrafterTest, ProposesTheSameInHoweverManyStepsTheContextCame) {
  const RoleScope role(engine_role);
  const std::unique_ptr<HydraDrafter> drafter = load_prefix();
  for (const std::uint32_t chunk : {1u, 7u, 16u, 17u}) {
    Text text{SeqId(chunk), some_tokens(3, 45), blocks({0, 2, 4})};
    while (text.computed < 44) observe(*drafter, text, std::min(chunk, 44 - text.computed));
    const std::vector<Grown> draft_tokens = propose(*drafter, text);
    EXPECT_EQ(draft_tokens.size(), 9u);
    EXPECT_EQ(draft_tokens, at_once(text)) << chunk;
    drafter->release(text.seq, /*ended=*/true);
  }
}

TEST_F(HydraDrafterTest, LooksAtTheWholeContextWithAPrefixLayer) {
  const RoleScope role(engine_role);
  const Text text{SeqId(1), some_tokens(3, 45), blocks({0, 2, 4})};
  EXPECT_NE(at_once(text), at_once(text, /*first_shifted=*/0, /*shift=*/1));
}

TEST_F(HydraDrafterTest, FindsThePrefixOfAnotherText) {
  const RoleScope role(engine_role);
  const std::unique_ptr<HydraDrafter> drafter = load_prefix();
  Text first{SeqId(1), some_tokens(8, 45), blocks({0, 1, 2})};
  observe(*drafter, first, 44);
  // The same two blocks, then something else.
  Text second{SeqId(2), some_tokens(9, 40), blocks({0, 1, 5}), 32};
  std::copy_n(first.tokens.begin(), 32, second.tokens.begin());
  second.tokens[32] = (first.tokens[32] + 1) % static_cast<TokenId>(kHeadVocab);
  observe(*drafter, second, 7, /*shift=*/20);
  EXPECT_EQ(propose(*drafter, second), at_once(second, 32, 20));
}

TEST_F(HydraDrafterTest, FollowsItsBlocks) {
  const RoleScope role(engine_role);
  using enum flow::BlockOp::Kind;
  const std::unique_ptr<HydraDrafter> drafter = load_prefix();
  Text text{SeqId(1), some_tokens(8, 45), blocks({0, 1, 2})};
  observe(*drafter, text, 43);
  std::vector<flow::BlockOp> moves;
  for (std::uint32_t i = 0; i < 3; ++i) moves.push_back({kSwapOut, i, i});
  for (std::uint32_t i = 0; i < 3; ++i) moves.push_back({kPoison, 0, i});
  for (std::uint32_t i = 0; i < 3; ++i) moves.push_back({kSwapIn, i, 4 + i});
  moves.push_back({kCopy, 6, 7});
  moves.push_back({kPoison, 0, 6});
  drafter->track(moves);
  drafter->release(text.seq, /*ended=*/false);
  text.table = blocks({4, 5, 7});
  observe(*drafter, text, 1);
  EXPECT_EQ(propose(*drafter, text), at_once(text));
}

// Loaded from a file, or made by a server that did not speculate.
TEST_F(HydraDrafterTest, ProposesBehindAContextThatItNeverSaw) {
  const RoleScope role(engine_role);
  const std::unique_ptr<HydraDrafter> drafter = load_prefix();
  std::vector<flow::BlockOp> poison;
  for (std::uint32_t i = 0; i < 3; ++i) poison.push_back({flow::BlockOp::Kind::kPoison, 0, i});
  drafter->track(poison);
  Text text{SeqId(1), some_tokens(1, 45), blocks({0, 1, 2}), 43};
  observe(*drafter, text, 1);
  const std::vector<Grown> nodes = propose(*drafter, text);
  EXPECT_EQ(nodes.size(), 9u);
  for (const Grown& node : nodes) EXPECT_TRUE(node.score > 0.0f && node.score <= 1.0f);
}

TEST_F(HydraDrafterTest, HasNoDraftForWhomTheLastStepDidNotRun) {
  const RoleScope role(engine_role);
  for (const bool prefix : {false, true}) {
    const std::unique_ptr<HydraDrafter> drafter =
        load(PlainHydra(Repeated::kWritten, prefix).tensors, prefix ? kHydraPrefix : kHydraMlp);
    Text one{SeqId(1), some_tokens(1, 20), blocks({0, 1})};
    Text two{SeqId(2), some_tokens(2, 20), blocks({2, 3})};
    EXPECT_TRUE(propose(*drafter, one).empty());
    observe(*drafter, one, 19);
    observe(*drafter, two, 19);
    EXPECT_TRUE(propose(*drafter, one).empty());
    EXPECT_FALSE(propose(*drafter, two).empty());
    drafter->release(two.seq, /*ended=*/true);
    EXPECT_TRUE(propose(*drafter, two).empty());
  }
}

TEST_F(HydraDrafterTest, AsksNoMoreOfATreeThanItMay) {
  const RoleScope role(engine_role);
  const std::unique_ptr<HydraDrafter> drafter = load(PlainHydra(Repeated::kWritten).tensors, kHydraMlp, /*width=*/4);
  Text text{SeqId(1), some_tokens(1, 20), blocks({0, 1})};
  observe(*drafter, text, 19);
  for (std::uint32_t max_nodes = 1; max_nodes < 9; ++max_nodes) {
    for (std::uint32_t max_depth = 1; max_depth < 5; ++max_depth) {
      const TreeLimits limits{.width = 4, .max_depth = max_depth, .max_nodes = max_nodes};
      const std::vector<Grown> nodes = propose(*drafter, text, limits);
      EXPECT_FALSE(nodes.empty());
      EXPECT_LE(nodes.size(), max_nodes);
      for (const Grown& node : nodes) EXPECT_LE(node.path.size(), std::min(max_depth, kHydraHeads));
    }
  }
}

TEST_F(HydraDrafterTest, AsksForTheStateThatItsConfigNames) {
  const PlainHydra plain(Repeated::kWritten);
  EXPECT_TRUE(load(plain.tensors, kHydraMlp)->needs().final_norm);
  const std::string offset = replaced(kHydraMlp, "\"hidden_state_offset\": 0", "\"hidden_state_offset\": 1");
  const std::unique_ptr<HydraDrafter> drafter = load(plain.tensors, offset);
  EXPECT_EQ(drafter->needs().boundaries, std::vector<std::uint32_t>{2});
  EXPECT_FALSE(drafter->needs().final_norm);
}

}  // namespace
}  // namespace quire::speculate::hydra_drafter_test
