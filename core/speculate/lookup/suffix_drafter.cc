#include "core/speculate/lookup/suffix_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

static_assert(Followers::kNothing == TextIndex::kEnd);

constexpr std::uint32_t kMostTokens = 1u << 31;

template <typename T>
std::string out_of_range(std::string_view name, T value, T low, T high) {
  return value >= low && value <= high ? "" : fmt::format("{} {}: expected {}..{}. ", name, value, low, high);
}

void check(const SuffixOptions& options) {
  std::string problems = out_of_range("max_tree_depth", options.max_tree_depth, 1u, 64u) +
                         out_of_range("max_cached_tokens", options.max_cached_tokens, 0u, kMostTokens) +
                         out_of_range("max_own_tokens", options.max_own_tokens, 256u, kMostTokens) +
                         out_of_range("max_occurrences", options.max_occurrences, 1u, 4096u) +
                         out_of_range("max_spec_factor", options.max_spec_factor, 0.0f, 64.0f) +
                         out_of_range("max_spec_offset", options.max_spec_offset, 0u, 64u) +
                         out_of_range("min_token_prob", options.min_token_prob, 0.0f, 1.0f);
  if (problems.empty()) return;
  problems.pop_back();
  throw StartError(problems);
}

// Occurrences in one text.
class InText final : public Followers {
 public:
  InText(const TextIndex& text, std::span<const TextIndex::Occurrence> found, bool repeats)
      : text_(text), found_(found), repeats_(repeats) {}
  TokenId after(std::uint32_t occurrence, std::uint32_t ahead) const override {
    const std::uint32_t next = found_[occurrence].next;
    return repeats_ ? text_.after_repeating(next, ahead) : text_.after(next, ahead);
  }

 private:
  const TextIndex& text_;
  std::span<const TextIndex::Occurrence> found_;
  bool repeats_;
};

}  // namespace

SuffixDrafter::SuffixDrafter(const SuffixOptions& options) : options_(options) {
  check(options);
  found_.reserve(options.max_occurrences);
}

void SuffixDrafter::admit(const Admitted& sequence) {
  Sequence& known = sequences_[sequence.seq];
  known.cache_namespace = sequence.cache_namespace;
  known.prompt_tokens = sequence.prompt.size();
  known.num_tokens = 0;
  known.own.reset();
}

void SuffixDrafter::observe(const ObservedStep& step) {
  for (const Observed& observed : step.sequences) {
    const auto known = sequences_.find(observed.seq);
    if (known == sequences_.end()) continue;
    // Only up to the tokens of this step: a long prompt is indexed chunk by chunk.
    const std::size_t seen = observed.first_position + observed.rows.size() + 1;
    learn(known->second, observed.tokens.first(std::min(seen, observed.tokens.size())));
  }
}

void SuffixDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto known = sequences_.find(asked[i].seq);
    if (known == sequences_.end()) continue;
    Sequence& sequence = known->second;
    learn(sequence, asked[i].tokens);
    if (sequence.num_tokens != asked[i].tokens.size()) continue;  // the index is of another text
    foresight_.learn(sequence.last, asked[i].tokens);
    Best best{&trees[i]};
    if (sequence.own) look_in(*sequence.own, /*own=*/true, asked[i], best);
    const auto past = sequence.cache_namespace ? namespaces_.find(*sequence.cache_namespace) : namespaces_.end();
    if (past != namespaces_.end()) look_in(past->second.answers, /*own=*/false, asked[i], best);
    foresight_.promise(trees[i], best.match, asked[i].tokens.size(), sequence.last);
  }
}

void SuffixDrafter::release(SeqId seq, bool ended) {
  const auto known = sequences_.find(seq);
  if (known == sequences_.end()) return;
  Sequence& sequence = known->second;
  if (!ended) {  // a preempted sequence's tokens are all observed again
    sequence.num_tokens = 0;
    sequence.own.reset();
    return;
  }
  keep(sequence);
  sequences_.erase(known);
}

std::uint64_t SuffixDrafter::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [seq, sequence] : sequences_) sum += sequence.own ? sequence.own->bytes() : 0;
  for (const auto& [cache_namespace, past] : namespaces_) sum += past.answers.bytes();
  return sum;
}

std::uint64_t SuffixDrafter::num_probes() const {
  std::uint64_t sum = 0;
  for (const auto& [seq, sequence] : sequences_) sum += sequence.own ? sequence.own->num_probes() : 0;
  for (const auto& [cache_namespace, past] : namespaces_) sum += past.answers.num_probes();
  return sum;
}

void SuffixDrafter::learn(Sequence& sequence, std::span<const TokenId> tokens) const {
  if (!sequence.own) sequence.own.emplace(options_.max_own_tokens);
  for (; sequence.num_tokens < tokens.size(); ++sequence.num_tokens) {
    sequence.own->append(tokens[sequence.num_tokens]);
  }
}

void SuffixDrafter::keep(const Sequence& sequence) {
  if (!sequence.cache_namespace || !sequence.own || sequence.num_tokens <= sequence.prompt_tokens) return;
  if (options_.max_cached_tokens < 2) return;
  // A ring's size is a power of two and must not exceed max_cached_tokens.
  const std::uint32_t largest = std::bit_floor(options_.max_cached_tokens);
  auto entry = namespaces_.find(*sequence.cache_namespace);
  const std::uint32_t before = entry == namespaces_.end() ? 0 : entry->second.answers.capacity();
  if (entry == namespaces_.end())
    entry = namespaces_.emplace(*sequence.cache_namespace, Past{TextIndex(largest)}).first;
  TextIndex& answers = entry->second.answers;
  entry->second.fed_at = ++num_fed_;
  const std::uint64_t said = sequence.num_tokens - sequence.prompt_tokens;
  const auto kept = static_cast<std::uint32_t>(std::min<std::uint64_t>(said, sequence.own->size()));
  for (std::uint32_t ago = kept; ago-- > 0;) answers.append(sequence.own->newest(ago));
  answers.end_text();
  cached_tokens_ += answers.capacity() - before;
  make_room(*sequence.cache_namespace);
}

void SuffixDrafter::make_room(CacheNamespace for_namespace) {
  while (cached_tokens_ > options_.max_cached_tokens) {
    auto oldest = namespaces_.end();
    for (auto entry = namespaces_.begin(); entry != namespaces_.end(); ++entry) {
      if (entry->first == for_namespace) continue;
      if (oldest == namespaces_.end() || entry->second.fed_at < oldest->second.fed_at) oldest = entry;
    }
    CHECK(oldest != namespaces_.end());  // a single ring never exceeds the limit
    cached_tokens_ -= oldest->second.answers.capacity();
    namespaces_.erase(oldest);
  }
}

void SuffixDrafter::look_in(const TextIndex& text, bool own, const Asked& asked, Best& best) {
  // Longest run first: its draft often promises more tokens than a shorter match may draft at all, which is then
  // skipped.
  std::uint32_t up_to = std::numeric_limits<std::uint32_t>::max();
  for (std::size_t level = TextIndex::kLevels.size(); level-- > 0;) {
    const std::uint32_t n = TextIndex::kLevels[level];
    if (n > options_.max_tree_depth) continue;
    text.find(asked.tokens, level, options_.max_tree_depth, options_.max_occurrences, found_);
    try_lengths(text, own, n, up_to, asked, best);
    up_to = n - 1;
  }
}

// Tries the matches in found_ of at least `at_least` tokens: for each length, longest first, all matches at least as
// long.
void SuffixDrafter::try_lengths(const TextIndex& text, bool own, std::uint32_t at_least, std::uint32_t up_to,
                                const Asked& asked, Best& best) {
  std::ranges::stable_sort(found_, std::ranges::greater(), &TextIndex::Occurrence::length);
  const std::uint32_t most = std::min({asked.max_nodes, options_.max_tree_depth, sample::TokenTree::kMaxNodes});
  for (std::size_t count = 0; count < found_.size();) {
    const std::uint32_t length = found_[count].length;
    if (length < at_least) break;
    while (count < found_.size() && found_[count].length == length) ++count;
    if (length > up_to) continue;  // the chain of a longer run has these, and more of them
    const float allowed =
        options_.max_spec_factor * static_cast<float>(length) + static_cast<float>(options_.max_spec_offset);
    const auto draft_tokens = std::min(most, static_cast<std::uint32_t>(allowed));
    if (static_cast<float>(draft_tokens) <= best.score) continue;  // no probability exceeds 1
    candidate_.clear();
    const float score = continuations_.grow(
        InText(text, std::span(found_).first(count), own), static_cast<std::uint32_t>(count),
        {draft_tokens, std::min(asked.max_depth, options_.max_tree_depth), options_.min_token_prob, options_.width},
        candidate_);
    if (score <= best.score) continue;
    best.score = score;
    best.match = length;
    *best.tree = candidate_;
  }
}

}  // namespace quire::speculate
