#include "core/speculate/lookup/ngram_table.h"

#include <utility>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

constexpr std::size_t kFirstSlots = 64;

// A run inside the text (given by its first place) or outside it: run(i) is its i-th token.
struct Inside {
  TextView text;
  std::uint32_t first;
  TokenId operator()(std::uint32_t i) const { return text.at(first + i); }
};
struct Outside {
  std::span<const TokenId> tokens;
  TokenId operator()(std::uint32_t i) const { return tokens[i]; }
};

template <typename Run>
std::uint32_t hash_of(Run run, std::uint32_t n) {
  std::uint64_t hash = n;
  for (std::uint32_t i = 0; i < n; ++i) {
    hash = (hash ^ static_cast<std::uint32_t>(run(i))) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

template <typename Run>
std::uint32_t NgramTable::slot_of(TextView text, Run run) const {
  const auto mask = static_cast<std::uint32_t>(slots_.size() - 1);
  for (std::uint32_t slot = hash_of(run, n_) & mask;; slot = (slot + 1) & mask) {
    ++num_probes_;
    if (slots_[slot] == kNone) return slot;
    const Inside there{text, slots_[slot] + 1 - n_};
    std::uint32_t same = 0;
    while (same < n_ && there(same) == run(same)) ++same;
    if (same == n_) return slot;
  }
}

std::uint32_t NgramTable::home_slot(TextView text, std::uint32_t end) const {
  return hash_of(Inside{text, end + 1 - n_}, n_) & static_cast<std::uint32_t>(slots_.size() - 1);
}

std::uint32_t NgramTable::find(TextView text, std::span<const TokenId> run) const {
  CHECK_EQ(run.size(), n_);
  return slots_.empty() ? kNone : slots_[slot_of(text, Outside{run})];
}

std::uint32_t NgramTable::put(TextView text, std::uint32_t end) {
  if ((size_ + std::size_t{1}) * 2 > slots_.size()) grow(text);
  std::uint32_t& place = slots_[slot_of(text, Inside{text, end + 1 - n_})];
  if (place == kNone) ++size_;
  return std::exchange(place, end);
}

void NgramTable::erase(TextView text, std::uint32_t end) {
  if (slots_.empty()) return;
  const auto mask = static_cast<std::uint32_t>(slots_.size() - 1);
  std::uint32_t hole = slot_of(text, Inside{text, end + 1 - n_});
  if (slots_[hole] != end) return;
  --size_;
  // Moves an entry after the hole into it unless that would put the entry before its home slot.
  for (std::uint32_t slot = (hole + 1) & mask; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    ++num_probes_;
    const std::uint32_t from_home = (slot - home_slot(text, slots_[slot])) & mask;
    if (from_home < ((slot - hole) & mask)) continue;
    slots_[hole] = slots_[slot];
    hole = slot;
  }
  slots_[hole] = kNone;
}

void NgramTable::clear() {
  slots_.clear();
  size_ = 0;
}

void NgramTable::grow(TextView text) {
  std::vector<std::uint32_t> before(slots_.empty() ? kFirstSlots : slots_.size() * 2, kNone);
  before.swap(slots_);
  for (const std::uint32_t end : before) {
    if (end != kNone) slots_[slot_of(text, Inside{text, end + 1 - n_})] = end;
  }
}

}  // namespace quire::speculate
