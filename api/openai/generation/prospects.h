// Whether a request can be in time, as far as the engine's measured pace says. Asked before it takes a place in the
// line.
// Shape   a deadline is when the answer has to be whole, after arrival: the smaller of deadline_ms and
//         X-Request-Timeout. An answer is expected to be as long as it may be where nothing but its length ends it,
//         else as long as answers are of late.
// Thread  any; check_prospects() reads what the engine measures.
// Fails   check_prospects(): kDeadline where it has passed already; kQueueFull with Retry-After where the answer would
//         be late, and for a sheddable request, where it would wait, or be slower than hoped for. Nobody is refused for
//         what has not been measured yet, nor, but under fcfs, for who waits already.
// Source  shedding early: Site Reliability Engineering (Beyer et al. 2016), chapters 21 and 22; that what is hoped for
//         sheds sheddable requests alone is llm-d's endpoint picker's rule.
#pragma once

#include <optional>
#include <span>

#include "api/openai/generation/form.h"
#include "api/openai/generation/request.h"
#include "api/requests/slo_hints.h"
#include "api/services.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/flow/request.h"

namespace quire::api::openai {

struct Deadline {
  Duration after_arrival;
  const char* name;  // the field or the header that says it
};
std::optional<Deadline> deadline_of(const GenerationRequest& request, const requests::SloHints& slo_hints);

// The sequences of `request`, and their prompts.
Result<Done> check_prospects(const GenerationRequest& request, const requests::SloHints& slo_hints,
                             std::span<const flow::Request> sequences, std::span<const PromptRun> prompts,
                             const Services& services, TimePoint now);

// The end of one whose deadline has passed.
Error too_late(const GenerationRequest& request, const requests::SloHints& slo_hints, const char* while_what);

}  // namespace quire::api::openai
