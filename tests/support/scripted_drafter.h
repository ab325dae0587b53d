// A drafter that is right where it is told to be, and else as wrong as a drafter can be: random trees with duplicate
// siblings, tokens that do not exist, paths that are too deep and too many nodes. Every fourth node is a lookahead
// node: it learns nothing from what those say.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::testing {

struct DrafterScript {
  double truth = 0.5;     // part of the nodes behind a true path that are true as well
  bool chains = false;    // every node hangs below the one before
  bool nonsense = false;  // what no drafter should give
  std::uint32_t seed = 1;
};

class ScriptedDrafter final : public speculate::Drafter {
 public:
  // `texts`: prompts with their answers, which it knows.
  ScriptedDrafter(const DrafterScript& how, std::uint32_t vocab, std::vector<std::vector<TokenId>> texts = {})
      : how_(how), vocab_(vocab), texts_(std::move(texts)), random_(how.seed) {}

  std::string method() const override { return "guessing"; }
  void observe(const speculate::ObservedStep& step) override {
    for (const speculate::Observed& one : step.sequences) {
      num_observed += one.rows.size();
      num_scouted += one.lookahead_results.size();
    }
  }
  void propose(std::span<const speculate::Asked> asked, std::span<sample::TokenTree> trees) override {
    for (std::size_t i = 0; i < asked.size(); ++i) propose(asked[i], trees[i]);
  }

  std::uint64_t num_observed = 0;
  std::uint64_t num_scouted = 0;
  std::uint64_t num_proposed = 0;

 private:
  void propose(const speculate::Asked& asked, sample::TokenTree& tree) {
    // The texts that go on from here, and how far each node has followed one of them.
    std::vector<const std::vector<TokenId>*> goes_on;
    for (const auto& text : texts_) {
      if (text.size() > asked.tokens.size() &&
          std::ranges::equal(asked.tokens, std::span(text).first(asked.tokens.size())))
        goes_on.push_back(&text);
    }
    std::vector<const std::vector<TokenId>*> of_node;
    const std::uint32_t count = how_.nonsense ? below(sample::TokenTree::kMaxNodes + 8) : below(asked.max_nodes + 1);
    for (std::uint32_t n = 0; n < count; ++n) {
      const int last = static_cast<int>(tree.size()) - 1;
      const int parent = how_.chains ? last : static_cast<int>(below(tree.size() + 1)) - 1;
      const std::vector<TokenId>* text = nullptr;
      if (parent == sample::TokenTree::kRoot) {
        text = goes_on.empty() ? nullptr : goes_on[below(static_cast<std::uint32_t>(goes_on.size()))];
      } else {
        text = of_node[static_cast<std::size_t>(parent)];
      }
      const std::size_t depth = parent < 0 ? 1 : tree.depth(static_cast<std::uint32_t>(parent)) + 1;
      const std::size_t at = asked.tokens.size() + depth - 1;
      const bool tells_truth = text != nullptr && at < text->size() && below(1000) < 1000 * how_.truth;
      TokenId token = static_cast<TokenId>(below(how_.nonsense ? vocab_ + 3 : vocab_)) - (how_.nonsense ? 1 : 0);
      if (tells_truth) token = (*text)[at];
      if (!how_.nonsense && depth > asked.max_depth) continue;
      const int node = tree.add(token, parent);
      if (node < 0) continue;
      of_node.push_back(tells_truth ? text : nullptr);
      if (n % 4 == 3) tree.make_lookahead_node(static_cast<std::uint32_t>(node), static_cast<std::uint8_t>(node));
    }
    num_proposed += tree.size();
  }
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

  const DrafterScript how_;
  const std::uint32_t vocab_;
  const std::vector<std::vector<TokenId>> texts_;
  std::mt19937 random_;
};

}  // namespace quire::testing
