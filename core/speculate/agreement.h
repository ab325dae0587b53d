// Startup test of a drafter: the fraction of its first draft tokens that equal the target's next token, on greedy text
// that the target generates itself, before anything is served. A head that reads the states of wrong layers, or in a
// wrong order, or was trained for another model drafts badly without any error; this test shows it.
// Shape   one sequence from position 0, one step a token, in block ids 0 and up. No sequence may hold a block yet; the
//         test leaves rows in those blocks, which may be overwritten.
// Thread  engine.
// Fails   never: text whose logits are not finite ends there.
// Source  ours. kFloor lies between a large model's head (0.45 and more) and the same head with its layers off by one
//         (0.1) or ignored (0.01), as reported in vLLM's issues. A small model's head loses less and stays above the
//         floor; so a head that is not sure() is compared with other readings of its states.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/model/run/runner.h"
#include "core/speculate/drafter.h"

namespace quire::speculate {

struct AgreementText {
  std::vector<TokenId> prompt;     // 1 .. the runner's max rows
  std::uint32_t block_tokens = 0;  // P
  // Number of draft tokens to test after the prompt; if they take longer than `limit`, fewer, but at least `least`.
  std::uint32_t num_draft_tokens = 48;
  std::uint32_t least = 16;
  Duration limit = std::chrono::seconds(5);

  std::uint32_t num_blocks() const {
    return (static_cast<std::uint32_t>(prompt.size()) + num_draft_tokens + block_tokens - 1) / block_tokens;
  }
};

struct Agreement {
  static constexpr double kFloor = 0.2;
  static constexpr double kSure = 0.9;           // from here on the head is taken to be right
  static constexpr double kClearlyMore = 0.125;  // more than chance makes of 48 draft tokens

  std::uint32_t num_right = 0;
  std::uint32_t num_draft_tokens = 0;

  double share() const { return num_draft_tokens == 0 ? 0.0 : static_cast<double>(num_right) / num_draft_tokens; }
  bool too_low() const { return num_draft_tokens > 0 && share() < kFloor; }
  bool sure() const { return share() >= kSure; }
  bool clearly_less_than(const Agreement& other) const { return share() + kClearlyMore <= other.share(); }
};

// Other states that a head may have been trained on, in place of the inputs of layers `boundaries`.
struct OtherReading {
  std::string what;  // "each layer one later"
  std::vector<std::uint32_t> boundaries;
};
std::vector<OtherReading> other_readings(std::span<const std::uint32_t> boundaries, std::uint32_t num_layers);

// Runs the test. The runner must capture the states that the drafter, or the tested reading, needs.
Agreement measure_agreement(Drafter& drafter, model::Runner& runner, const AgreementText& text, const Clock& clock)
    REQUIRES(engine_role);

}  // namespace quire::speculate
