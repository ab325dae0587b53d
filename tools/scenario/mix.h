// Requests that a scenario sends, and the seeded numbers they are made of: the same on every machine.
// Owner   values.
// Thread  any; a Random is for one thread.
// Source  SplitMix64 (Steele, Lea and Flood 2014). The standard library's distributions differ from one to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"

namespace quire::tools {

// When a step begins on the clock of a scenario that counts steps. Never zero: the engine takes that for "not yet".
inline TimePoint time_of_step(std::uint64_t step) {
  return TimePoint{} + std::chrono::milliseconds(static_cast<std::int64_t>(step) + 1);
}

// One request, and when it comes. Arrivals are in steps: what a scenario counts must not depend on a clock.
struct Job {
  std::uint64_t arrival_step = 0;
  std::vector<TokenId> prompt;
  std::uint32_t max_tokens = 1;  // and so many it says: no token ends it early
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;
  std::optional<std::uint64_t> deadline_step{};

  std::uint32_t final_length() const { return static_cast<std::uint32_t>(prompt.size()) + max_tokens; }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t value = state_ += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {  // both included
    return low + static_cast<std::uint32_t>(next() % (std::uint64_t{high} - low + 1));
  }
  // A draw from the distribution with these deciles: the minimum, nine deciles, the maximum; even between two of them.
  std::uint32_t from_deciles(std::span<const std::uint32_t, 11> deciles) {
    const std::uint32_t part = between(0, 9);
    return between(deciles[part], deciles[part + 1]);
  }
  std::vector<TokenId> tokens(std::uint32_t count, std::uint32_t vocab) {
    std::vector<TokenId> out(count);
    for (TokenId& token : out) token = static_cast<TokenId>(between(0, vocab - 1));
    return out;
  }

 private:
  std::uint64_t state_;
};

// By arrival; those that come in the same step stay in the order they were made in.
void sort_by_arrival(std::vector<Job>& jobs);

// The longest of them when it ends, prompt and answer.
std::uint32_t longest(std::span<const Job> jobs);

}  // namespace quire::tools
