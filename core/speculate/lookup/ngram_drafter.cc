#include "core/speculate/lookup/ngram_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

constexpr std::uint32_t kLongestRun = 32;

}  // namespace

NgramDrafter::NgramDrafter(const NgramOptions& options) : options_(options) {
  const auto [low, high] = options;
  std::string problems;
  if (low < 1 || low > kLongestRun) problems += fmt::format("prompt_lookup_min {}: expected 1..{}. ", low, kLongestRun);
  if (high < low || high > kLongestRun) {
    problems += fmt::format("prompt_lookup_max {}: expected prompt_lookup_min..{}. ", high, kLongestRun);
  }
  if (problems.empty()) return;
  problems.pop_back();
  throw StartError(problems);
}

void NgramDrafter::admit(const Admitted& sequence) { sequences_.erase(sequence.seq); }

void NgramDrafter::observe(const ObservedStep& step) {
  for (const Observed& observed : step.sequences) {
    if (observed.done) continue;
    // Only up to the tokens of this step: a long prompt is indexed chunk by chunk.
    const std::size_t known = observed.first_position + observed.rows.size() + 1;
    learn(index_of(observed.seq), observed.tokens.first(std::min(known, observed.tokens.size())));
  }
}

void NgramDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Index& index = index_of(asked[i].seq);
    learn(index, asked[i].tokens);
    draft(index, asked[i], trees[i]);
  }
}

void NgramDrafter::release(SeqId seq, bool /*ended*/) { sequences_.erase(seq); }

std::uint64_t NgramDrafter::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [seq, index] : sequences_) {
    for (const NgramTable& table : index.tables) sum += table.bytes();
  }
  return sum;
}

std::uint64_t NgramDrafter::num_probes() const {
  std::uint64_t sum = 0;
  for (const auto& [seq, index] : sequences_) {
    for (const NgramTable& table : index.tables) sum += table.num_probes();
  }
  return sum;
}

NgramDrafter::Index& NgramDrafter::index_of(SeqId seq) {
  const auto [entry, is_new] = sequences_.try_emplace(seq);
  Index& index = entry->second;
  if (is_new) {
    for (std::uint32_t n = options_.prompt_lookup_min; n <= options_.prompt_lookup_max; ++n)
      index.tables.emplace_back(n);
    index.foretold.resize(index.tables.size());
  }
  return index;
}

void NgramDrafter::learn(Index& index, std::span<const TokenId> tokens) const {
  const TextView text{tokens.data()};
  for (; index.num_tokens < tokens.size(); ++index.num_tokens) {
    const std::uint32_t newest = index.num_tokens;
    std::uint32_t place = NgramTable::kNone;
    Index::Foretold* by = nullptr;
    for (std::size_t i = 0; i < index.tables.size() && index.tables[i].n() <= newest; ++i) {
      const std::uint32_t before = index.tables[i].put(text, newest - 1);
      if (before == NgramTable::kNone) continue;
      place = before;  // the last one stored is the longest run's
      by = &index.foretold[i];
    }
    if (by == nullptr) continue;
    ++by->tried;
    by->right += text.at(place + 1) == text.at(newest);
  }
}

void NgramDrafter::draft(const Index& index, const Asked& asked, sample::TokenTree& tree) const {
  const std::span<const TokenId> tokens = asked.tokens;
  if (index.num_tokens != tokens.size()) return;  // the index is of another text
  std::size_t by = index.tables.size();
  std::uint32_t place = NgramTable::kNone;
  while (place == NgramTable::kNone && by-- > 0) {
    const std::uint32_t n = index.tables[by].n();
    if (n <= tokens.size()) place = index.tables[by].find({tokens.data()}, tokens.last(n));
  }
  if (place == NgramTable::kNone) return;
  const std::span<const TokenId> behind = tokens.subspan(place + 1);
  const std::uint32_t length = std::min({asked.max_nodes, asked.max_depth, sample::TokenTree::kMaxNodes});
  float likely = 1.0f;
  for (std::uint32_t i = 0; i < length; ++i) {
    // Each right draft token makes the run before the next one longer by one.
    const Index::Foretold& foretold = index.foretold[std::min(by + i, index.foretold.size() - 1)];
    likely *= (static_cast<float>(foretold.right) + 1.0f) / (static_cast<float>(foretold.tried) + 2.0f);
    tree.add(behind[i % behind.size()], static_cast<int>(i) - 1, likely);
  }
}

}  // namespace quire::speculate
