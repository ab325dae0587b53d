// Hash table from each run of n tokens in a text to its newest place. The text holds the tokens; the table stores one
// number per run.
// Shape   at most half of the slots are in use: 8 to 16 bytes per run. A place is the index of a run's last token.
// Owner   a drafter, or its TextIndex. The text is passed with each call and may belong to another owner: its tokens at
//         stored places must not change, and erase() runs before they leave it.
// Thread  engine; find() counts probes, so not even two readers at a time. Only put() allocates, when the slots double.
// Fails   never. Runs with equal hashes are told apart by their tokens.
// Source  open addressing with linear probing and backward-shift deletion (Knuth, TAOCP 3, 6.4, algorithm R).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace quire::speculate {

// The tokens of a text, by index, or a ring of them. `mask`: all ones, or the ring's size (a power of two) minus one.
struct TextView {
  const TokenId* tokens = nullptr;
  std::uint32_t mask = ~0u;
  TokenId at(std::uint32_t place) const { return tokens[place & mask]; }
};

class NgramTable {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  explicit NgramTable(std::uint32_t n) : n_(n) {}

  // Newest place of a run with these tokens; kNone if there is none.
  std::uint32_t find(TextView text, std::span<const TokenId> run) const;
  // Stores `end` as the newest place of the run that ends there; returns the place stored before, or kNone.
  std::uint32_t put(TextView text, std::uint32_t end);
  // Removes the run that ends at `end`, if that is its newest place.
  void erase(TextView text, std::uint32_t end);
  void clear();

  std::uint32_t n() const { return n_; }
  std::uint32_t size() const { return size_; }
  std::uint64_t bytes() const { return slots_.size() * sizeof(std::uint32_t); }
  // Slots read since construction: a machine-independent cost.
  std::uint64_t num_probes() const { return num_probes_; }

 private:
  // The slot at which the search for the run that ends at `end` begins.
  std::uint32_t home_slot(TextView text, std::uint32_t end) const;
  // Index of the slot that holds this run's place, or of the empty slot where put() would store it. run(i): its i-th
  // token. slots_ must not be empty.
  template <typename Run>
  std::uint32_t slot_of(TextView text, Run run) const;
  void grow(TextView text);

  std::uint32_t n_;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> slots_;  // size a power of two
  mutable std::uint64_t num_probes_ = 0;
};

}  // namespace quire::speculate
