// Requests of a scenario, made from seeded random numbers that are the same on every machine.
// Owner   values.
// Thread  any; a Random is for one thread.
// Source  SplitMix64 (Steele, Lea and Flood 2014). The standard library's distributions differ between implementations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"

namespace quire::tools {

// Begin of a step on the clock of a scenario that counts steps. Never zero, which the engine reads as "not yet".
inline TimePoint time_of_step(std::uint64_t step) {
  return TimePoint{} + std::chrono::milliseconds(static_cast<std::int64_t>(step) + 1);
}

// A request and its arrival. Arrivals are in steps, so that counts do not depend on a clock.
struct Job {
  std::uint64_t arrival_step = 0;
  std::vector<TokenId> prompt;
  std::uint32_t max_tokens = 1;  // exactly as many are sampled: no token ends the answer early
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
  // A sample of the distribution with these deciles (minimum, nine deciles, maximum), uniform between two deciles.
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

// Stable: jobs of the same step keep their order.
void sort_by_arrival(std::vector<Job>& jobs);

// The greatest final length of a job, prompt and answer.
std::uint32_t longest(std::span<const Job> jobs);

}  // namespace quire::tools
