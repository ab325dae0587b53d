#include "core/speculate/synthetic_drafter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

void spin_for(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

SyntheticDrafter::SyntheticDrafter(const SyntheticOptions& options, std::function<void(double)> burn)
    : options_(options), burn_(burn ? std::move(burn) : spin_for), random_(options.seed) {
  CHECK_GE(options_.vocab, 2u);
}

void SyntheticDrafter::add_answer(std::vector<TokenId> prompt, std::vector<TokenId> answer) {
  CHECK(sequences_.empty());
  answers_[std::move(prompt)] = std::move(answer);
}

void SyntheticDrafter::admit(const Admitted& sequence) {
  const auto at = answers_.find({sequence.prompt.begin(), sequence.prompt.end()});
  if (at != answers_.end()) sequences_[sequence.seq] = {sequence.prompt.size(), &at->second};
}

void SyntheticDrafter::release(SeqId seq, bool ended) {
  if (ended) sequences_.erase(seq);
}

void SyntheticDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto at = sequences_.find(asked[i].seq);
    if (at == sequences_.end()) continue;
    draft(at->second, asked[i], trees[i]);
    most = std::max(most, trees[i].size());
  }
  burn_(most * options_.seconds_per_node);
}

void SyntheticDrafter::draft(const Known& known, const Asked& asked, sample::TokenTree& tree) {
  std::size_t next = asked.tokens.size() - known.prompt_tokens;
  bool is_right = true;
  for (std::uint32_t depth = 0; depth < std::min(asked.max_nodes, asked.max_depth); ++depth, ++next) {
    if (next >= known.answer->size()) return;
    is_right = is_right && std::bernoulli_distribution(options_.alpha)(random_);
    const TokenId right = (*known.answer)[next];
    const TokenId wrong = (right + 1) % static_cast<TokenId>(options_.vocab);
    tree.add(is_right ? right : wrong, static_cast<int>(depth) - 1);
  }
}

}  // namespace quire::speculate
