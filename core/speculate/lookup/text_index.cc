#include "core/speculate/lookup/text_index.h"

#include <algorithm>
#include <bit>

namespace quire::speculate {
namespace {

constexpr std::uint32_t kFirstCapacity = 256;
constexpr std::uint32_t kLargestCapacity = 1u << 31;

}  // namespace

TextIndex::TextIndex(std::uint32_t max_tokens)
    : max_tokens_(std::bit_ceil(std::clamp(max_tokens, 2u, kLargestCapacity))),
      tokens_(std::min(kFirstCapacity, max_tokens_)) {
  for (const std::uint32_t n : kLevels) levels_.push_back({NgramTable(n), std::vector<std::uint32_t>(tokens_.size())});
}

void TextIndex::append(TokenId token) {
  make_room();
  const std::uint32_t place = next_;
  tokens_[place] = token;
  next_ = wrap(next_ + 1);
  ++size_;
  if (token == kEnd) {
    in_text_ = 0;
    return;
  }
  // A run is linked when a token follows it, so every occurrence has a continuation.
  if (in_text_ > 0) link(wrap(place - 1));
  ++in_text_;
}

void TextIndex::find(std::span<const TokenId> context, std::size_t level, std::uint32_t max_length,
                     std::uint32_t max_count, std::vector<Occurrence>& out) const {
  out.clear();
  const std::uint32_t n = kLevels[level];
  if (context.size() < n) return;
  std::uint32_t place = levels_[level].last.find(view(), context.last(n));
  while (place != NgramTable::kNone && out.size() < max_count) {
    ++num_links_;
    out.push_back({wrap(place + 1), length_at(context, place, max_length)});
    const std::uint32_t older = levels_[level].before[place];
    // A link to an overwritten place points to a newer token. The older run must be in the ring as a whole.
    if (older == NgramTable::kNone || age(older) <= age(place) || age(older) + n > size_) break;
    place = older;
  }
}

std::uint64_t TextIndex::bytes() const {
  std::uint64_t sum = tokens_.size() * sizeof(TokenId);
  for (const Level& level : levels_) sum += level.last.bytes() + level.before.size() * sizeof(std::uint32_t);
  return sum;
}

std::uint64_t TextIndex::num_probes() const {
  std::uint64_t sum = num_links_;
  for (const Level& level : levels_) sum += level.last.num_probes();
  return sum;
}

void TextIndex::make_room() {
  if (size_ < capacity()) return;
  if (capacity() == max_tokens_) return forget_oldest();
  // The ring has never wrapped before it grows, so all places stay valid.
  next_ = capacity();
  tokens_.resize(tokens_.size() * 2);
  for (Level& level : levels_) level.before.resize(tokens_.size());
}

// Removes the runs that begin with the oldest token; a run of n tokens ends n - 1 places after it.
void TextIndex::forget_oldest() {
  const std::uint32_t oldest = wrap(next_ - size_);
  std::uint32_t run = 0;  // tokens from the oldest on that belong to one text
  while (run <= kLevels.back() && run < size_ && tokens_[wrap(oldest + run)] != kEnd) ++run;
  for (Level& level : levels_) {
    // Only runs with another token of the text after them were linked.
    if (level.last.n() < run) level.last.erase(view(), wrap(oldest + level.last.n() - 1));
  }
  --size_;
  in_text_ = std::min(in_text_, size_);
}

void TextIndex::link(std::uint32_t end) {
  for (Level& level : levels_) {
    if (level.last.n() > in_text_) break;
    level.before[end] = level.last.put(view(), end);
  }
}

std::uint32_t TextIndex::length_at(std::span<const TokenId> context, std::uint32_t end,
                                   std::uint32_t max_length) const {
  const std::uint32_t kept = size_ - age(end);  // tokens in the ring up to and including this one
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>({context.size(), max_length, kept}));
  std::uint32_t length = 0;
  while (length < limit) {
    const TokenId token = tokens_[wrap(end - length)];
    if (token == kEnd || token != context[context.size() - 1 - length]) break;
    ++length;
  }
  return length;
}

}  // namespace quire::speculate
