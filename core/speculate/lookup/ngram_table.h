// Where each run of n tokens of a text stood last, by hashing: the text keeps the tokens, the table one number a run.
// Shape   at most half of the slots are taken: 8 to 16 bytes a run. A place is the index of a run's last token.
// Owner   whoever owns the text. Its tokens at the places kept here must not change: what leaves the text is erased first.
// Thread  one. put() allocates where the slots double, nothing else does.
// Fails   nothing. Two runs are never mixed up: a hash finds a slot, the tokens decide.
// Source  open addressing with linear probing and backward-shift deletion (Knuth, TAOCP 3, 6.4, algorithm R).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace quire::speculate {

// A text by place. `mask`: all ones, or the size of a ring, a power of two, less one.
struct TextView {
  const TokenId* tokens = nullptr;
  std::uint32_t mask = ~0u;
  TokenId at(std::uint32_t place) const { return tokens[place & mask]; }
};

class NgramTable {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  explicit NgramTable(std::uint32_t n) : n_(n) {}

  // The place of the run equal to this one that was put last.
  std::uint32_t find(TextView text, std::span<const TokenId> run) const;
  // The run that ends here stands here, from now on; gives where it stood before.
  std::uint32_t put(TextView text, std::uint32_t end);
  // Forgets the run that ends here, if this is where it stood last.
  void erase(TextView text, std::uint32_t end);
  void clear();

  std::uint32_t n() const { return n_; }
  std::uint32_t size() const { return size_; }
  std::uint64_t bytes() const { return slots_.size() * sizeof(std::uint32_t); }
  // Slots looked at since it was made: what its calls cost, whatever the machine.
  std::uint64_t num_probes() const { return num_probes_; }

 private:
  std::uint32_t home(TextView text, std::uint32_t end) const;
  // The slot with this run, or the empty one where it would go. There are slots.
  template <typename Run>
  std::uint32_t slot_of(TextView text, Run run) const;
  void grow(TextView text);

  std::uint32_t n_;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> slots_;  // a power of two of them
  mutable std::uint64_t num_probes_ = 0;
};

}  // namespace quire::speculate
