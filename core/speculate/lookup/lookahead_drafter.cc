#include "core/speculate/lookup/lookahead_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

class InPaths final : public Followers {
 public:
  explicit InPaths(std::span<const TokenId> paths) : paths_(paths) {}
  TokenId after(std::uint32_t occurrence, std::uint32_t ahead) const override {
    constexpr std::uint32_t kLongest = LookaheadDrafter::kLongest;
    return ahead < kLongest ? paths_[std::size_t{occurrence} * kLongest + ahead] : kNothing;
  }

 private:
  std::span<const TokenId> paths_;
};

// Nodes reserved for the window: as many columns as fit in half of the draft.
std::uint32_t nodes_for_window(const LookaheadOptions& options, std::uint32_t max_nodes) {
  const std::uint32_t columns = std::min(options.window, (max_nodes / 2 + 1) / (options.ngram_size - 1));
  return JacobiWindow::num_nodes(columns, options.ngram_size);
}

}  // namespace

LookaheadDrafter::LookaheadDrafter(const LookaheadOptions& options)
    : options_(options), length_(options.ngram_size - 1) {
  std::string problems;
  const auto range = [&problems](std::string_view name, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
    if (value < low || value > high) problems += fmt::format("{} {}: expected {}..{}. ", name, value, low, high);
  };
  range("window", options.window, 0, 32);
  range("ngram_size", options.ngram_size, 2, 8);
  range("guesses", options.ngrams_per_token, 1, 32);
  if (problems.empty() && options.window * length_ > LookaheadOptions::kMostRows) {
    problems = fmt::format("window {} and ngram_size {}: window · (ngram_size - 1) must be at most {}. ",
                           options.window, options.ngram_size, LookaheadOptions::kMostRows);
  }
  if (!problems.empty()) {
    problems.pop_back();
    throw StartError(problems);
  }
  paths_.resize(std::size_t{options.ngrams_per_token} * kLongest);
}

void LookaheadDrafter::admit(const Admitted& sequence) { sequences_.erase(sequence.seq); }

void LookaheadDrafter::observe(const ObservedStep& step) {
  for (const Observed& observed : step.sequences) {
    if (observed.done) continue;
    Known& known = sequences_[observed.seq];
    observe_window(known, observed);
    // Only up to the tokens of this step: a long prompt is pooled chunk by chunk.
    const std::size_t said = observed.first_position + observed.rows.size() + 1;
    learn(known.pool, observed.tokens.first(std::min(said, observed.tokens.size())));
  }
}

void LookaheadDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Asked& one = asked[i];
    Known& known = sequences_[one.seq];
    learn(known.pool, one.tokens);
    if (one.tokens.empty()) continue;
    if (options_.window > 0 && known.window.empty()) {
      known.window.seed(one.tokens, options_.window, options_.ngram_size);
    }
    known.num_asked = one.tokens.size();
    foresight_.learn(known.last, one.tokens);
    const std::uint32_t num_paths = look_ahead(known.pool, one.tokens.back());
    const std::uint32_t max_candidates = one.max_nodes - nodes_for_window(options_, one.max_nodes);
    continuations_.grow(InPaths(paths_), num_paths,
                        {max_candidates, one.max_depth, 0.0f, /*width=*/sample::TokenTree::kMaxNodes}, trees[i]);
    foresight_.promise(trees[i], 1, one.tokens.size(), known.last);
    known.window.add_to(trees[i], one.max_nodes, one.max_depth);
  }
}

void LookaheadDrafter::release(SeqId seq, bool /*ended*/) { sequences_.erase(seq); }

std::uint64_t LookaheadDrafter::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [seq, known] : sequences_) {
    const std::size_t window = std::size_t{known.window.num_columns()} * length_;
    sum += (known.pool.ngrams.size() + window) * sizeof(TokenId);
  }
  return sum;
}

void LookaheadDrafter::learn(Pool& pool, std::span<const TokenId> tokens) const {
  for (; pool.num_tokens < tokens.size(); ++pool.num_tokens) {
    const std::uint64_t end = pool.num_tokens + 1;
    if (end >= options_.ngram_size) put(pool, tokens.subspan(end - options_.ngram_size, options_.ngram_size));
  }
}

// Pools the window's n-grams before the newly committed tokens, which then count as newer.
void LookaheadDrafter::observe_window(Known& known, const Observed& observed) const {
  if (observed.lookahead_results.empty() || known.window.empty() || known.num_asked >= observed.tokens.size()) return;
  for (const LookaheadResult& lookahead_node : observed.lookahead_results) {
    put(known.pool,
        known.window.advance(lookahead_node.number, observed.tokens[known.num_asked - 1], lookahead_node.token));
  }
  known.window.pass(observed.tokens.size() - known.num_asked - 1);
}

void LookaheadDrafter::put(Pool& pool, std::span<const TokenId> ngram) const {
  const auto [entry, is_new] = pool.by_token.try_emplace(ngram.front());
  Kept& kept = entry->second;
  if (is_new) {
    kept.first = static_cast<std::uint32_t>(pool.ngrams.size());
    pool.ngrams.resize(pool.ngrams.size() + std::size_t{options_.ngrams_per_token} * length_);
  }
  const auto place = [&](std::uint32_t i) { return pool.ngrams.begin() + kept.first + i * length_; };
  std::uint32_t at = 0;  // its present index; else a new one, or the oldest n-gram's
  while (at < kept.count && !std::equal(place(at), place(at + 1), ngram.begin() + 1)) ++at;
  if (at == kept.count) {
    kept.count = std::min(kept.count + 1, options_.ngrams_per_token);
    at = kept.count - 1;
  }
  std::move_backward(place(0), place(at), place(at + 1));
  std::copy(ngram.begin() + 1, ngram.end(), place(0));
}

std::uint32_t LookaheadDrafter::look_ahead(const Pool& pool, TokenId token) {
  const auto begin = pool.by_token.find(token);
  if (begin == pool.by_token.end()) return 0;
  for (std::uint32_t i = 0; i < begin->second.count; ++i) {
    const std::span<TokenId> path = std::span(paths_).subspan(std::size_t{i} * kLongest, kLongest);
    std::uint32_t from = begin->second.first + i * length_;
    for (std::uint32_t filled = 0; filled < kLongest;) {
      const std::uint32_t count = std::min(length_, kLongest - filled);
      std::copy_n(pool.ngrams.begin() + from, count, path.begin() + filled);
      filled += count;
      const auto next = pool.by_token.find(path[filled - 1]);
      if (next == pool.by_token.end()) {  // no n-gram is known after it
        std::fill(path.begin() + filled, path.end(), Followers::kNothing);
        break;
      }
      from = next->second.first;
    }
  }
  return begin->second.count;
}

}  // namespace quire::speculate
