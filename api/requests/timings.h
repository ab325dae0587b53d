// Where the time of one request went, as its answer tells it: `timings`.
// Shape   queued: from arrival to the first run of any of its sequences. prompt: from there to the last one's first
//         token. predicted: from the first token of any of them to the last of all. draft: guesses that were verified
//         for all of them, and how many of these were said; told where there were any.
// Thread  any; a pure function of what the engine has written so far.
// Source  names and units of llama.cpp's server (prompt_n counts what was computed, not what the cache held; draft_n,
//         draft_n_accepted); queued_ms is ours.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/bridge/timeline.h"

namespace quire::api::requests {

// As `usage` says them.
struct TokenCounts {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;  // of the prompt
  std::uint64_t completion = 0;
};

// The ends of each part, over all sequences, and what was drafted in them.
struct Phases {
  using Micros = bridge::Timeline::Micros;
  std::optional<Micros> first_start;
  flow::WaitCause waited_for = flow::WaitCause::kNone;  // of whoever started first
  std::optional<Micros> first_token;                    // of whoever spoke first
  std::optional<Micros> last_first_token;               // of whoever spoke last
  std::optional<Micros> last_token;
  std::optional<Micros> last_end;  // of those that have ended
  std::uint64_t num_logits_rows = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
};
Phases phases_of(std::span<const std::shared_ptr<const bridge::Timeline>> timelines);

// "timings":{…}, without a comma on either side.
void append_timings(std::string& json, std::span<const std::shared_ptr<const bridge::Timeline>> timelines,
                    const TokenCounts& counts);

}  // namespace quire::api::requests
