// What comes back of lookahead nodes: what the row of each one that ran says behind its own path, wherever the walk
// went.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/support/engine_rig.h"

namespace quire::engine::lookahead_nodes_test {
namespace {

using namespace quire::testing;
using sample::TokenTree;

// Random trees without equal siblings; every node is a lookahead node or not by chance, and half of them are what the
// model would say.
class LookaheadNodesDrafter final : public speculate::Drafter {
 public:
  std::string method() const override { return "scouting"; }

  void propose(std::span<const speculate::Asked> asked, std::span<TokenTree> trees) override {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Sent& sent = sent_[asked[i].seq];
      sent = {{asked[i].tokens.begin(), asked[i].tokens.end()}, *asked[i].sampling, {}};
      while (trees[i].size() < asked[i].max_nodes) add_node(asked[i], sent, trees[i]);
      sent.tree = trees[i];
    }
  }

  void observe(const speculate::ObservedStep& step) override {
    for (const speculate::Observed& one : step.sequences) {
      const auto at = sent_.find(one.seq);
      if (at == sent_.end()) {
        EXPECT_TRUE(one.lookahead_results.empty());
        continue;
      }
      expect_received(at->second, one);
      sent_.erase(at);
    }
  }

  void release(SeqId seq, bool /*ended*/) override { sent_.erase(seq); }

  std::uint64_t num_received = 0;
  std::uint64_t num_visited = 0;
  std::uint64_t num_left_out = 0;
  TokenId spoiled = -1;  // rows that see it say nothing

 private:
  struct Sent {
    std::vector<TokenId> text;
    sample::Params sampling;
    TokenTree tree;
  };

  void add_node(const speculate::Asked& asked, const Sent& sent, TokenTree& tree) {
    const int parent = static_cast<int>(random_() % (tree.size() + 1)) - 1;
    if (parent >= 0 && tree.depth(static_cast<std::uint32_t>(parent)) == asked.max_depth) return;
    TokenId token = static_cast<TokenId>(random_() % 50);
    if (random_() % 2 == 0) token = said_behind(sent, tree, parent, sent.sampling);
    if (tree.child(parent, token) >= 0) return;
    const auto node = static_cast<std::uint32_t>(tree.add(token, parent));
    if (random_() % 2 == 0) tree.make_lookahead_node(node, static_cast<std::uint8_t>(node * 3));
  }

  static std::vector<TokenId> path_to(const TokenTree& tree, int node) {
    std::vector<TokenId> path;
    for (; node >= 0; node = tree.parent(static_cast<std::uint32_t>(node))) {
      path.insert(path.begin(), tree.token(static_cast<std::uint32_t>(node)));
    }
    return path;
  }

  static TokenId said_behind(const Sent& sent, const TokenTree& tree, int node, const sample::Params& params) {
    ToyPast past;
    for (const TokenId token : sent.text) past.push(token);
    for (const TokenId token : path_to(tree, node)) past.push(token);
    return toy_choose(past.hash(), params, past.length());
  }

  // Those of the tree's first nodes, as many as ran, in order.
  void expect_received(const Sent& sent, const speculate::Observed& one) {
    std::size_t next = 0;
    for (std::uint32_t node = 0; node < sent.tree.size(); ++node) {
      if (!sent.tree.is_lookahead_node(node)) continue;
      const std::vector<TokenId> path = path_to(sent.tree, static_cast<int>(node));
      if (std::ranges::find(path, spoiled) != path.end()) continue;
      if (next == one.lookahead_results.size()) {
        ++num_left_out;
        continue;
      }
      const auto said = one.tokens.subspan(sent.text.size());
      const bool visited = said.size() > path.size() && std::ranges::equal(path, said.first(path.size()));
      num_visited += visited ? 1 : 0;
      ++num_received;
      EXPECT_EQ(one.lookahead_results[next].number, node * 3 % 256);
      EXPECT_EQ(one.lookahead_results[next].token,
                visited ? said[path.size()] : said_behind(sent, sent.tree, static_cast<int>(node), {.temperature = 0}));
      ++next;
    }
    EXPECT_EQ(next, one.lookahead_results.size());
  }

  std::map<SeqId, Sent> sent_;
  std::mt19937 random_{7};
};

struct Case {
  const char* name;
  RigOptions options;
  TokenId spoiled = -1;
};

TEST(LookaheadNodes, ReportTheTokensOfTheirRowsAndEmitNone) {
  const RoleScope role(engine_role);
  const Case cases[] = {
      {"room for all", {.num_blocks = 200, .max_num_batched_tokens = 400, .max_logits_rows = 300}},
      {"few rows", {.num_blocks = 200, .max_num_batched_tokens = 30, .max_logits_rows = 300}},
      {"few rows of logits", {.num_blocks = 200, .max_num_batched_tokens = 400, .max_logits_rows = 20}},
      {"few blocks", {.num_blocks = 16, .max_num_batched_tokens = 400, .max_logits_rows = 300}},
      {"rows that are not finite", {.num_blocks = 200, .max_num_batched_tokens = 400, .max_logits_rows = 300}, 8},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    LookaheadNodesDrafter drafter;
    drafter.spoiled = one.spoiled;
    RigOptions options = one.options;
    options.block_tokens = 8;
    options.drafter = &drafter;
    options.max_draft_nodes = 24;
    ToyRunner runner(options.num_blocks, options.block_tokens);
    runner.poisoned_token = one.spoiled;
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    std::vector<sample::Params> params(6);
    for (std::uint32_t i = 0; i < params.size(); ++i) {
      params[i].temperature = i % 2 == 0 ? 0.0f : 1.0f;
      params[i].seed = i;
      clients.push_back(rig.submit(toy_prompt(9, i + 20), 40, params[i]));
    }
    rig.run(clients);
    for (std::uint32_t i = 0; i < params.size(); ++i) {
      const std::vector<TokenId> answer = toy_answer(toy_prompt(9, i + 20), params[i], 40);
      if (std::ranges::find(answer, one.spoiled) == answer.end()) {
        EXPECT_EQ(clients[i].tokens, answer);
      }
    }
    EXPECT_GT(drafter.num_received, 100u);
    EXPECT_GT(drafter.num_visited, 10u);
    const bool is_tight =
        options.max_num_batched_tokens == 30 || options.max_logits_rows == 20 || options.num_blocks == 16;
    EXPECT_TRUE(drafter.num_left_out > 0 || !is_tight);
  }
}

}  // namespace
}  // namespace quire::engine::lookahead_nodes_test
