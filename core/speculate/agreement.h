// How well a drafter knows its target: how many of its first guesses are what the target says, on greedy text of the target's own,
// before anybody is served. A head that takes the states of other layers, or takes them in another order, or was made for another
// model guesses badly and says nothing of it; this does.
// Shape   one sequence from position 0 on, a step for each token, in the pool's first blocks. Nobody may hold a block yet; what
//         stands in them afterwards may be overwritten.
// Thread  engine.
// Fails   never: a text that turns out not to be finite ends there.
// Source  ours. The floor lies between what a large model's head says first (0.45 and more) and what is left of that with layers
//         off by one (0.1) or ignored (0.01), as vLLM's issues have it. A small model's head loses less by it, and is above the floor
//         still: so whoever is not sure is compared with other readings of the same head.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/model/runner.h"
#include "core/speculate/drafter.h"

namespace quire::speculate {

struct AgreementText {
  std::vector<TokenId> prompt;     // 1 .. the runner's rows
  std::uint32_t block_tokens = 0;  // P
  // So many guesses, the prompt before them; fewer, but `least`, where they take longer than `limit`.
  std::uint32_t num_guesses = 48;
  std::uint32_t least = 16;
  Duration limit = std::chrono::seconds(5);

  std::uint32_t num_blocks() const {
    return (static_cast<std::uint32_t>(prompt.size()) + num_guesses + block_tokens - 1) / block_tokens;
  }
};

struct Agreement {
  static constexpr double kFloor = 0.2;
  static constexpr double kSure = 0.9;           // nothing is wrong with such a one
  static constexpr double kClearlyMore = 0.125;  // than chance makes of 48 guesses

  std::uint32_t num_right = 0;
  std::uint32_t num_guesses = 0;

  double share() const { return num_guesses == 0 ? 0.0 : static_cast<double>(num_right) / num_guesses; }
  bool too_low() const { return num_guesses > 0 && share() < kFloor; }
  bool sure() const { return share() >= kSure; }
  bool clearly_less_than(const Agreement& other) const { return share() + kClearlyMore <= other.share(); }
};

// States that a head was perhaps meant to take in place of those before layers `boundaries`.
struct OtherReading {
  std::string what;  // "each layer one later"
  std::vector<std::uint32_t> boundaries;
};
std::vector<OtherReading> other_readings(std::span<const std::uint32_t> boundaries, std::uint32_t num_layers);

// The runner captures what the drafter needs.
Agreement measure_agreement(Drafter& drafter, model::Runner& runner, const AgreementText& text, const Clock& clock)
    REQUIRES(engine_role);

}  // namespace quire::speculate
