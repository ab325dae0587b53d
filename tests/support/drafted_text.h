// A sequence that a drafter is told of as the engine does it: admitted, observed step by step, asked, released. No
// model: its text is what the test says it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/speculate/drafter.h"

namespace quire::test {

class DraftedText {
 public:
  DraftedText(speculate::Drafter& drafter, std::uint64_t id, std::vector<TokenId> prompt,
              std::optional<CacheNamespace> cache_namespace = {}) REQUIRES(engine_role)
      : drafter_(drafter),
        seq_(id),
        cache_namespace_(cache_namespace),
        prompt_tokens_(prompt.size()),
        tokens_(std::move(prompt)) {
    admit();
  }

  void admit() REQUIRES(engine_role) {
    drafter_.admit({seq_, std::span(tokens_).first(prompt_tokens_), cache_namespace_});
  }
  // One step: so many rows ran, the next ones that have not run yet, or fewer where there are fewer.
  void step(std::size_t num_rows) REQUIRES(engine_role) {
    if (tokens_.empty()) return;
    const std::size_t rows = std::min(num_rows, tokens_.size() - 1 - num_run_);
    const std::vector<std::uint32_t> row_ids(rows);
    const speculate::Observed observed{seq_, tokens_, static_cast<std::uint32_t>(num_run_), row_ids};
    num_run_ += rows;
    drafter_.observe({{&observed, 1}});
  }
  void say(std::span<const TokenId> said) REQUIRES(engine_role) {
    for (const TokenId token : said) {
      tokens_.push_back(token);
      step(tokens_.size());
    }
  }
  sample::TokenTree draft(std::uint32_t max_nodes, std::uint32_t max_depth = 64) REQUIRES(engine_role) {
    const speculate::Asked asked{seq_, tokens_, {}, nullptr, max_nodes, max_depth};
    sample::TokenTree tree;
    drafter_.propose({&asked, 1}, {&tree, 1});
    return tree;
  }
  void release(bool ended) REQUIRES(engine_role) {
    drafter_.release(seq_, ended);
    num_run_ = 0;
  }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  speculate::Drafter& drafter_;
  SeqId seq_;
  std::optional<CacheNamespace> cache_namespace_;
  std::size_t prompt_tokens_;
  std::vector<TokenId> tokens_;
  std::size_t num_run_ = 0;
};

// Its tokens, node by node: of a chain what it says.
inline std::vector<TokenId> tokens_of(const sample::TokenTree& tree) {
  std::vector<TokenId> out;
  for (std::uint32_t i = 0; i < tree.size(); ++i) out.push_back(tree.token(i));
  return out;
}

// Whatever they promise.
inline bool same_drafts(const sample::TokenTree& a, const sample::TokenTree& b) {
  if (a.size() != b.size()) return false;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    if (a.token(i) != b.token(i) || a.parent(i) != b.parent(i)) return false;
  }
  return true;
}

inline bool same(const sample::TokenTree& a, const sample::TokenTree& b) {
  if (!same_drafts(a, b)) return false;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    if (a.likely(i) != b.likely(i)) return false;
  }
  return true;
}

}  // namespace quire::test
