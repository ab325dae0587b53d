// Ring of the newest tokens of one or several texts, with an index that finds earlier occurrences of given tokens,
// newest first. It answers what a suffix tree of bounded depth answers for a path from its root, with a fixed number of
// bytes per token and O(1) removal of the oldest token: places with equal runs of 1, 2, 4 and 8 tokens are chained, and
// a longer match is searched for in the chain of the longest of these runs.
// Shape   at most max_tokens tokens, rounded up to a power of two. The ring doubles up to that size, then each new
//         token replaces the oldest. At most 52 bytes per token of the ring: 4 token, 16 chains, 32 tables.
//         No occurrence reaches over the end of a text.
// Owner   a drafter.
// Thread  engine. Only append() allocates, when the ring or a table doubles.
// Fails   never.
// Source  hash chains as in LZ77 compressors (RFC 1951, section 4), over tokens; the four run lengths are ours.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/speculate/lookup/ngram_table.h"

namespace quire::speculate {

class TextIndex {
 public:
  static constexpr std::array<std::uint32_t, 4> kLevels = {1, 2, 4, 8};
  static constexpr TokenId kEnd = -1;  // of a text

  // An occurrence of the context's last `length` tokens; the token at place `next` follows it and exists.
  struct Occurrence {
    std::uint32_t next;
    std::uint32_t length;
  };

  explicit TextIndex(std::uint32_t max_tokens);

  void append(TokenId token);
  // Ends the current text; append() then starts another.
  void end_text() { append(kEnd); }
  // Finds the newest max_count occurrences of the last kLevels[level] tokens of `context`, newest first, each with its
  // match length up to max_length. Clears `out` first.
  void find(std::span<const TokenId> context, std::size_t level, std::uint32_t max_length, std::uint32_t max_count,
            std::vector<Occurrence>& out) const;
  // Token at `next` + `ahead`; kEnd after the text's end. The tokens from `next` up to it must be of one text.
  TokenId after(std::uint32_t next, std::uint32_t ahead) const {
    return ahead > age(next) ? kEnd : tokens_[wrap(next + ahead)];
  }
  // after(), as if the newest text repeated its tokens from `next` on for ever.
  TokenId after_repeating(std::uint32_t next, std::uint32_t ahead) const {
    return after(next, ahead % (age(next) + 1));
  }

  std::uint32_t size() const { return size_; }
  // Token `ago` places before the newest one; ago < size().
  TokenId newest(std::uint32_t ago) const { return view().at(next_ - 1 - ago); }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint64_t bytes() const;
  // Table slots and chain links read since construction.
  std::uint64_t num_probes() const;

 private:
  struct Level {
    NgramTable last;
    std::vector<std::uint32_t> before;  // by place: place of the previous occurrence of the run that ends here
  };

  TextView view() const { return {tokens_.data(), capacity() - 1}; }
  std::uint32_t wrap(std::uint32_t place) const { return place & (capacity() - 1); }
  // Number of tokens newer than the one at this place of the ring.
  std::uint32_t age(std::uint32_t place) const { return wrap(next_ - 1 - place); }
  void make_room();
  void forget_oldest();
  void link(std::uint32_t end);
  std::uint32_t length_at(std::span<const TokenId> context, std::uint32_t end, std::uint32_t max_length) const;

  const std::uint32_t max_tokens_;
  std::vector<TokenId> tokens_;  // [capacity]
  std::vector<Level> levels_;
  std::uint32_t next_ = 0;  // place of the next token
  std::uint32_t size_ = 0;
  std::uint32_t in_text_ = 0;  // tokens of the newest text that are still in the ring
  mutable std::uint64_t num_links_ = 0;
};

}  // namespace quire::speculate
