// The object `timings` of an answer: the time and the tokens of each phase of its request.
// Shape   queued: from arrival until the first of its sequences starts. prompt: from then until each has its first
//         token. predicted: from the earliest first token to the last token of all. draft: verified draft tokens of all
//         sequences, and the accepted ones; left out if there were none.
// Thread  any; a pure function of what the engine has recorded so far.
// Source  names and units of llama.cpp's server (prompt_n counts computed tokens without cached ones; draft_n,
//         draft_n_accepted); queued_ms is ours.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/bridge/timeline.h"

namespace quire::api::requests {

// Token counts as in `usage`.
struct TokenCounts {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;  // of the prompt
  std::uint64_t completion = 0;
};

// The ends of the phases, over all sequences, and the draft tokens in them.
struct Phases {
  using Micros = bridge::Timeline::Micros;
  std::optional<Micros> first_start;
  flow::WaitCause waited_for = flow::WaitCause::kNone;  // of the sequence that started first
  std::optional<Micros> first_token;                    // the earliest first token of a sequence
  std::optional<Micros> last_first_token;               // the latest first token of a sequence
  std::optional<Micros> last_token;
  std::optional<Micros> last_end;     // of the sequences that have ended
  std::uint64_t num_logits_rows = 0;  // sequences that have a token
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
};
Phases phases_of(std::span<const std::shared_ptr<const bridge::Timeline>> timelines);

// Appends "timings":{…}, without a comma on either side.
void append_timings(std::string& json, std::span<const std::shared_ptr<const bridge::Timeline>> timelines,
                    const TokenCounts& counts);

}  // namespace quire::api::requests
