#include "core/speculate/heads/eagle_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "core/cpu/cpu_ops.h"
#include "tests/core/speculate/book_tree.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::eagle_drafter_test {
namespace {

using model::testing::TempDir;
using testing::Grown;
using testing::Path;

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kBlocks = 40;
constexpr std::uint32_t kMaxLen = 200;
constexpr std::uint32_t kMaxRows = 96;

struct Text {
  SeqId seq;
  std::vector<TokenId> tokens;
  std::vector<BlockId> table{};
  std::uint32_t computed = 0;  // tokens that the target has run
};

std::vector<TokenId> random_tokens(std::uint32_t seed, std::size_t num) {
  std::vector<TokenId> tokens(num);
  for (std::size_t i = 0; i < num; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens[i] = static_cast<TokenId>((seed >> 16) % 40);
  }
  return tokens;
}

// A target and a drafter at its side; who runs and where is up to the test.
class World {
 public:
  explicit World(const std::function<void(const TempDir&)>& write_head, EagleOptions options = {}) {
    testing::write_target(target_dir_);
    write_head(head_dir_);
    target_files_ = model::ModelFiles::directory(target_dir_.path());
    head_files_ = model::ModelFiles::directory(head_dir_.path());
    ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = kMaxLen});
    target_.emplace(*ops_, model::load_config(*target_files_), *target_files_, kMaxLen);
    EagleLimits limits;
    limits.max_rows = kMaxRows;
    limits.max_sequences = 8;
    limits.max_model_len = kMaxLen;
    limits.block_tokens = kBlockTokens;
    limits.num_blocks = kBlocks;
    limits.num_swap_blocks = 8;
    drafter_.emplace(*ops_, *target_, *head_files_, options, limits);
    cache_ = ops_->make_kv(target_->config().kv_shape(kBlockTokens, kBlocks, backend::KvType::kF32));
    const Needs needs = drafter_->needs();
    captures_ = {.boundaries = needs.boundaries, .final_norm = needs.final_norm};
    workspace_ = target_->make_workspace(kMaxLen, 1, captures_);
  }

  EagleDrafter& drafter() { return *drafter_; }

  void grow_table(Text& text, std::size_t num_tokens) {
    while (text.table.size() * kBlockTokens < num_tokens) text.table.emplace_back(kBlocks - 1 - next_block_++);
  }
  BlockId fresh_block() { return BlockId(kBlocks - 1 - next_block_++); }

  struct Run {
    Text* text;
    std::uint32_t num_rows;      // committed
    std::uint32_t rejected = 0;  // more rows, of guesses that were wrong
  };
  // One step of the target and what it says to the drafter.
  void step(const std::vector<Run>& runs) REQUIRES(engine_role) {
    RowBatch batch;
    std::vector<std::vector<std::uint32_t>> rows;
    for (const Run& run : runs) {
      Text& text = *run.text;
      CHECK_LT(text.computed + run.num_rows, text.tokens.size());
      grow_table(text, text.computed + run.num_rows + run.rejected);
      batch.begin_sequence(text.table);
      rows.emplace_back();
      for (std::uint32_t i = 0; i < run.num_rows + run.rejected; ++i) {
        const std::uint32_t position = text.computed + i;
        const std::uint32_t slot = text.table[position / kBlockTokens].value * kBlockTokens + position % kBlockTokens;
        if (i < run.num_rows) rows.back().push_back(batch.num_rows());
        batch.add_row(i < run.num_rows ? text.tokens[position] : 39, position, slot);
      }
    }
    target_->forward(batch.batch(), *cache_, workspace_);
    ops_->collect({});
    std::vector<Observed> observed;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Text& text = *runs[i].text;
      observed.push_back({.seq = text.seq,
                          .tokens = std::span(text.tokens).first(text.computed + runs[i].num_rows + 1),
                          .first_position = text.computed,
                          .rows = rows[i],
                          .table = text.table});
      text.computed += runs[i].num_rows;
    }
    drafter_->observe({.sequences = observed, .states = workspace_.states.get()});
  }
  // Its next rows as if they had run where it lies: a run of the whole text elsewhere has the states.
  void observe_apart(Text& text, std::uint32_t num_rows) REQUIRES(engine_role) {
    RowBatch batch;
    add_rows(batch, {SeqId(0), text.tokens, whole_table()}, 0, static_cast<std::uint32_t>(text.tokens.size()), 0);
    auto cache = ops_->make_kv(target_->config().kv_shape(kBlockTokens, kBlocks, backend::KvType::kF32));
    target_->forward(batch.batch(), *cache, workspace_);
    ops_->collect({});
    std::vector<std::uint32_t> rows(num_rows);
    std::iota(rows.begin(), rows.end(), text.computed);
    const Observed observed{.seq = text.seq,
                            .tokens = std::span(text.tokens).first(text.computed + num_rows + 1),
                            .first_position = text.computed,
                            .rows = rows,
                            .table = text.table};
    drafter_->observe({.sequences = {&observed, 1}, .states = workspace_.states.get()});
    text.computed += num_rows;
  }
  // All but its last token, `chunk` at a time.
  void run_all(Text& text, std::uint32_t chunk = kMaxRows) REQUIRES(engine_role) {
    while (text.computed + 1 < text.tokens.size()) {
      step({{&text,
             std::min<std::uint32_t>(chunk, static_cast<std::uint32_t>(text.tokens.size()) - 1 - text.computed)}});
    }
  }

  std::vector<std::vector<Grown>> propose(const std::vector<Text*>& texts, const TreeLimits& limits,
                                          const sample::Params& params) REQUIRES(engine_role) {
    std::vector<Asked> asked;
    for (const Text* text : texts) {
      asked.push_back({.seq = text->seq,
                       .tokens = text->tokens,
                       .table = std::span(text->table).first((text->tokens.size() - 2) / kBlockTokens + 1),
                       .sampling = &params,
                       .max_nodes = limits.max_nodes,
                       .max_depth = limits.max_depth});
    }
    std::vector<sample::TokenTree> trees(asked.size());
    drafter_->propose(asked, trees);
    std::vector<std::vector<Grown>> nodes;
    for (const sample::TokenTree& tree : trees) nodes.push_back(testing::nodes_of(tree));
    return nodes;
  }

  // The head alone, over the whole text in one batch and then token by token: what it guesses below a path.
  testing::RowDistribution odds(const std::vector<TokenId>& tokens, std::uint32_t width, const sample::Params& params) {
    auto cache = ops_->make_kv(target_->config().kv_shape(kBlockTokens, kBlocks, backend::KvType::kF32));
    auto workspace = std::make_shared<model::Workspace>(target_->make_workspace(kMaxLen, 1, captures_));
    const Text text{SeqId(0), tokens, whole_table()};
    RowBatch batch;
    add_rows(batch, text, 0, static_cast<std::uint32_t>(tokens.size()), 0);
    target_->forward(batch.batch(), *cache, *workspace);
    ops_->collect({});
    HeadLimits limits = drafter_->head().limits();
    limits.max_rows = kMaxLen;
    limits.num_blocks = kBlocks;
    const HeadConfig& config = drafter_->head().config();
    auto head = std::make_shared<DraftHead>(*ops_, *target_, config,
                                            load_head_weights(*ops_, config, *head_files_, std::nullopt), limits);
    return [=](const Path& path) { return draft_tokens(*head, *workspace->states, text, path, width, params); };
  }
  std::vector<Grown> expected(const Text& text, const TreeLimits& limits, const sample::Params& params) {
    return testing::by_the_book(limits, odds(text.tokens, limits.width, params));
  }

 private:
  static std::vector<BlockId> whole_table() {
    std::vector<BlockId> table;
    for (std::uint32_t i = 0; i < kBlocks; ++i) table.emplace_back(i);
    return table;
  }
  // Rows at [first, first + num) with the tokens `ahead` further on.
  static void add_rows(RowBatch& batch, const Text& text, std::uint32_t first, std::uint32_t num, std::uint32_t ahead) {
    batch.begin_sequence(text.table);
    for (std::uint32_t i = first; i < first + num; ++i) batch.add_row(text.tokens[i + ahead], i, i);
  }
  static std::vector<std::pair<TokenId, float>> draft_tokens(DraftHead& head, const backend::Buffer& states, Text text,
                                                             const Path& path, std::uint32_t width,
                                                             const sample::Params& params) {
    const bool noise = params.temperature >= sample::kGreedyTemperature;
    const auto num = static_cast<std::uint32_t>(text.tokens.size());
    const std::uint32_t wanted =
        std::min(Children::num_candidates_to_request(width, params, noise), head.config().draft_vocab);
    std::vector<std::uint32_t> all(num - 1);
    std::iota(all.begin(), all.end(), 0u);
    head.take_states(states, all);
    head.begin_with_features();
    RowBatch batch;
    add_rows(batch, text, 0, num - 1, 1);
    batch.add_logits_row(wanted);
    std::vector<backend::Choice> choices(1);
    head.run(batch.batch(), choices);
    std::uint32_t last = num - 2;
    text.tokens.insert(text.tokens.end(), path.begin(), path.end());
    for (std::uint32_t i = 0; i < path.size(); ++i) {
      head.begin_with_outputs({&last, 1});
      last = 0;
      batch.clear();
      add_rows(batch, text, num - 1 + i, 1, 1);
      batch.add_logits_row(wanted);
      head.run(batch.batch(), choices);
    }
    Children children;
    for (const sample::Candidate& draft_token : choices[0].top)
      children.add(head.token_of(draft_token.token), draft_token.logprob);
    const auto position = static_cast<std::uint32_t>(text.tokens.size());
    std::vector<std::pair<TokenId, float>> found;
    for (const Child& child : noise ? children.drawn(width, params, position) : children.likeliest(width)) {
      found.emplace_back(child.token, child.log_likely);
    }
    return found;
  }

  TempDir target_dir_, head_dir_;
  std::unique_ptr<model::ModelFiles> target_files_, head_files_;
  std::unique_ptr<backend::Ops> ops_;
  std::optional<model::Decoder> target_;
  std::optional<EagleDrafter> drafter_;
  std::unique_ptr<backend::KvCache> cache_;
  model::Captures captures_;
  model::Workspace workspace_;
  std::uint32_t next_block_ = 0;
};

void expect_same(const std::vector<Grown>& nodes, const std::vector<Grown>& expected) {
  ASSERT_EQ(nodes.size(), expected.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].path, expected[i].path) << i;
    EXPECT_NEAR(nodes[i].score, std::exp(expected[i].score), 1e-5f);
  }
}

const sample::Params kGreedy{.temperature = 0.0f};
const sample::Params kDrawn{.temperature = 0.8f, .top_k = 20, .seed = 77, .choice_index = 1};

struct Case {
  const char* name;
  std::function<void(const TempDir&)> write_head;
};
class EagleDrafterTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Heads, EagleDrafterTest,
                         ::testing::Values(Case{"eagle3", [](const TempDir& dir) { testing::write_eagle3(dir); }},
                                           Case{"eagle3_two_layers",
                                                [](const TempDir& dir) { testing::write_eagle3(dir, 2); }},
                                           Case{"eagle", testing::write_eagle1}),
                         [](const auto& head) { return std::string(head.param.name); });

TEST_P(EagleDrafterTest, GrowsTheTreesThatTheBookMakesOfTheHeadsDraftTokens) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 3, .max_depth = 4, .max_nodes = 12};
  World world(GetParam().write_head, {.width = 3, .max_depth = 4});
  std::vector<Text> texts;
  std::vector<World::Run> together;
  for (const std::uint32_t num : {2u, 16u, 17u, 18u, 33u, 47u}) texts.push_back({SeqId(num), random_tokens(num, num)});
  // Chunks first, so that all have one row to go, which they run in one step.
  for (Text& text : texts) {
    const auto num = static_cast<std::uint32_t>(text.tokens.size());
    while (text.computed + 2 < num) world.step({{&text, std::min(7u, num - 2 - text.computed)}});
  }
  std::vector<Text*> asked;
  for (Text& text : texts) {
    together.push_back({&text, 1});
    asked.insert(asked.begin(), &text);
  }
  world.step(together);
  for (const sample::Params& params : {kGreedy, kDrawn}) {
    const std::vector<std::vector<Grown>> trees = world.propose(asked, limits, params);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      SCOPED_TRACE(asked[i]->tokens.size());
      expect_same(trees[i], world.expected(*asked[i], limits, params));
    }
  }
}

TEST_P(EagleDrafterTest, GrowsLongChainsOverTheEndsOfBlocks) {
  const RoleScope role(engine_role);
  World world(GetParam().write_head, {.width = 1, .max_depth = 40});
  Text text{SeqId(1), random_tokens(5, 30)};
  world.run_all(text);
  const TreeLimits limits{.width = 1, .max_depth = 40, .max_nodes = 40};
  const std::vector<Grown> chain = world.propose({&text}, limits, kGreedy).front();
  EXPECT_EQ(chain.size(), 40u);
  expect_same(chain, world.expected(text, limits, kGreedy));
}

// A draft leaves nothing behind in rows that others look at; rejected rows neither.
TEST_P(EagleDrafterTest, ProposesTheSameWhateverWasDraftedBefore) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 3, .max_depth = 4, .max_nodes = 12};
  World world(GetParam().write_head, {.width = 3, .max_depth = 4});
  Text text{SeqId(1), random_tokens(8, 60)};
  const std::vector<TokenId> all = text.tokens;
  std::uint32_t num = 10;
  while (num < 60) {
    text.tokens.assign(all.begin(), all.begin() + num);
    const std::uint32_t rows = num - 1 - text.computed;
    world.step({{&text, rows, 5}});
    SCOPED_TRACE(num);
    expect_same(world.propose({&text}, limits, kGreedy).front(), world.expected(text, limits, kGreedy));
    num += 1 + num % 4;
  }
}

TEST_P(EagleDrafterTest, FindsThePrefixOfAnotherText) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 2, .max_depth = 3, .max_nodes = 6};
  World world(GetParam().write_head, {.width = 2, .max_depth = 3});
  Text first{SeqId(1), random_tokens(8, 45)};
  world.run_all(first, 20);
  // The same two blocks, then something else: the last row there was made for another next token.
  Text second{SeqId(2), random_tokens(9, 40), {first.table[0], first.table[1]}, 32};
  std::copy_n(first.tokens.begin(), 32, second.tokens.begin());
  second.tokens[32] = (first.tokens[32] + 1) % 40;
  world.run_all(second);
  expect_same(world.propose({&second}, limits, kGreedy).front(), world.expected(second, limits, kGreedy));
}

TEST_P(EagleDrafterTest, StoresOneRowWhereTwoTextsFillABlockInOneStep) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 2, .max_depth = 3, .max_nodes = 6};
  World world(GetParam().write_head, {.width = 2, .max_depth = 3});
  Text first{SeqId(1), random_tokens(5, 40)};
  Text second{SeqId(2), first.tokens};
  second.tokens[kBlockTokens] = (first.tokens[kBlockTokens] + 1) % 40;  // what the block's last row was made for
  world.grow_table(first, first.tokens.size());
  second.table = {first.table[0]};
  world.step({{&first, kBlockTokens}, {&second, kBlockTokens}});
  world.run_all(first);
  expect_same(world.propose({&first}, limits, kGreedy).front(), world.expected(first, limits, kGreedy));
}

TEST_P(EagleDrafterTest, FollowsItsBlocks) {
  const RoleScope role(engine_role);
  using enum flow::BlockOp::Kind;
  const TreeLimits limits{.width = 2, .max_depth = 3, .max_nodes = 6};
  World world(GetParam().write_head, {.width = 2, .max_depth = 3});
  Text text{SeqId(1), random_tokens(8, 45)};
  const std::vector<TokenId> all = text.tokens;
  text.tokens.pop_back();
  world.run_all(text);
  // To host memory and back, elsewhere; then a copy of the open block, as a fork makes it.
  std::vector<flow::BlockOp> ops;
  std::vector<BlockId> elsewhere;
  for (std::uint32_t i = 0; i < 3; ++i) ops.push_back({kSwapOut, text.table[i].value, i});
  for (std::uint32_t i = 0; i < 3; ++i) ops.push_back({kPoison, 0, text.table[i].value});
  for (std::uint32_t i = 0; i < 3; ++i) {
    elsewhere.push_back(world.fresh_block());
    ops.push_back({kSwapIn, i, elsewhere[i].value});
  }
  const BlockId fork = world.fresh_block();
  ops.push_back({kCopy, elsewhere[2].value, fork.value});
  ops.push_back({kPoison, 0, elsewhere[2].value});
  world.drafter().track(ops);
  world.drafter().release(text.seq, false);
  Text again{SeqId(1), all, {elsewhere[0], elsewhere[1], fork}, 0};
  again.computed = 43;
  world.observe_apart(again, 1);
  expect_same(world.propose({&again}, limits, kGreedy).front(), world.expected(again, limits, kGreedy));
}

TEST_P(EagleDrafterTest, HasNoDraftForWhomTheLastStepDidNotRun) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 2, .max_depth = 3, .max_nodes = 6};
  World world(GetParam().write_head, {.width = 2, .max_depth = 3});
  Text one{SeqId(1), random_tokens(1, 20)};
  Text two{SeqId(2), random_tokens(2, 20)};
  world.run_all(one);
  world.run_all(two);
  const auto trees = world.propose({&one, &two}, limits, kGreedy);
  EXPECT_TRUE(trees[0].empty());
  EXPECT_FALSE(trees[1].empty());
  world.drafter().release(two.seq, true);
  EXPECT_TRUE(world.propose({&two}, limits, kGreedy).front().empty());
}

// Loaded from a file, or made by a server that did not speculate.
TEST_P(EagleDrafterTest, ProposesBehindAContextThatItNeverSaw) {
  const RoleScope role(engine_role);
  const TreeLimits limits{.width = 2, .max_depth = 3, .max_nodes = 6};
  World world(GetParam().write_head, {.width = 2, .max_depth = 3});
  Text text{SeqId(1), random_tokens(1, 150)};
  world.run_all(text);  // the target has its rows
  std::vector<flow::BlockOp> poison;
  for (const BlockId block : text.table) poison.push_back({flow::BlockOp::Kind::kPoison, 0, block.value});
  world.drafter().track(poison);
  world.drafter().release(text.seq, /*ended=*/false);
  text.computed = 148;
  world.step({{&text, 1}});
  const std::vector<Grown> nodes = world.propose({&text}, limits, kGreedy).front();
  EXPECT_EQ(nodes.size(), 6u);
  for (const Grown& node : nodes) EXPECT_TRUE(node.score > 0.0f && node.score <= 1.0f);
}

TEST_P(EagleDrafterTest, AsksNoMoreOfATreeThanItMay) {
  const RoleScope role(engine_role);
  World world(GetParam().write_head, {.width = 4, .max_depth = 6});
  Text text{SeqId(1), random_tokens(1, 20)};
  world.run_all(text);
  for (std::uint32_t max_nodes = 1; max_nodes < 9; ++max_nodes) {
    for (std::uint32_t max_depth = 1; max_depth < 5; ++max_depth) {
      const TreeLimits limits{.width = 4, .max_depth = max_depth, .max_nodes = max_nodes};
      const std::vector<Grown> nodes = world.propose({&text}, limits, kGreedy).front();
      EXPECT_LE(nodes.size(), max_nodes);
      for (const Grown& node : nodes) EXPECT_LE(node.path.size(), max_depth);
    }
  }
}

}  // namespace
}  // namespace quire::speculate::eagle_drafter_test
