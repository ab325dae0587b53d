// The newest tokens of one text or several, one behind the other, and where in them any few tokens stood before, newest first.
// It answers what a suffix tree of bounded depth answers for a path from its root, with a fixed number of bytes a token and with
// the oldest token forgotten in O(1): places with equal runs of 1, 2, 4 and 8 tokens are chained, and a longer match is looked for
// among those of the longest run that it begins with.
// Shape   a ring of at most max_tokens tokens (rounded up to a power of two); it doubles until it is that large, then each new token
//         takes the place of the oldest. At most 52 bytes a token of the ring: 4 the token, 16 chains, 32 tables.
//         No occurrence reaches over the end of a text.
// Owner   a drafter.
// Thread  engine. append() allocates where the ring or a table doubles, nothing else does.
// Fails   nothing.
// Source  hash chains as in LZ77 compressors (RFC 1951, 4), over tokens; the levels are ours.
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

  // Where the context's last `length` tokens stand; what follows them begins at place `next`, and there is such a token.
  struct Occurrence {
    std::uint32_t next;
    std::uint32_t length;
  };

  explicit TextIndex(std::uint32_t max_tokens);

  void append(TokenId token);
  // What comes next is another text.
  void end_text() { append(kEnd); }
  // Of the last kLevels[level] tokens of the context, the newest max_count occurrences, newest first; each says how long it is, up
  // to max_length. `out` is emptied first.
  void find(std::span<const TokenId> context, std::size_t level, std::uint32_t max_length, std::uint32_t max_count,
            std::vector<Occurrence>& out) const;
  // What stands so many tokens behind `next`, all tokens between being of one text; kEnd behind that text's end.
  TokenId after(std::uint32_t next, std::uint32_t ahead) const {
    return ahead > age(next) ? kEnd : tokens_[wrap(next + ahead)];
  }
  // The same as if the newest text went on by repeating what it says from `next` on, over and over.
  TokenId after_repeating(std::uint32_t next, std::uint32_t ahead) const {
    return after(next, ahead % (age(next) + 1));
  }

  std::uint32_t size() const { return size_; }
  // The token said so many tokens before the newest one, 0 that itself: of the size() that are kept.
  TokenId newest(std::uint32_t ago) const { return view().at(next_ - 1 - ago); }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint64_t bytes() const;
  // Table slots and chain links looked at since it was made.
  std::uint64_t num_probes() const;

 private:
  struct Level {
    NgramTable last;
    std::vector<std::uint32_t> before;  // by place: where the run that ends here ended the time before
  };

  TextView view() const { return {tokens_.data(), capacity() - 1}; }
  std::uint32_t wrap(std::uint32_t place) const { return place & (capacity() - 1); }
  // How many tokens came after the one at this place. The place is one of the ring.
  std::uint32_t age(std::uint32_t place) const { return wrap(next_ - 1 - place); }
  void make_room();
  void forget_oldest();
  void link(std::uint32_t end);
  std::uint32_t length_at(std::span<const TokenId> context, std::uint32_t end, std::uint32_t max_length) const;

  const std::uint32_t max_tokens_;
  std::vector<TokenId> tokens_;  // [capacity]
  std::vector<Level> levels_;
  std::uint32_t next_ = 0;  // where the next token goes
  std::uint32_t size_ = 0;
  std::uint32_t in_text_ = 0;  // tokens of the newest text, as far as they are kept
  mutable std::uint64_t num_links_ = 0;
};

}  // namespace quire::speculate
