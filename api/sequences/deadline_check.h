// Early rejection of requests that would be late: estimates from the engine's measured speed when an answer would be
// complete, before the request enters the queue.
// Shape   a deadline is the time after arrival by which the answer must be complete: the smaller of deadline_ms and
//         X-Request-Timeout. An answer that only its length can end is expected to be that long, any other as long as
//         recent answers. The estimate includes waiting sequences only under policy fcfs; what has not been measured
//         yet counts as no time.
// Thread  any; check_deadline() reads the engine's measurements.
// Fails   check_deadline(): kDeadline if the deadline has passed; kQueueFull with Retry-After if the answer would be
//         late, and for a sheddable request also if it would have to wait or would miss an objective.
// Source  shedding early: Site Reliability Engineering (Beyer et al. 2016), chapters 21 and 22. Objectives reject only
//         sheddable requests: the rule of llm-d's endpoint picker.
#pragma once

#include <optional>
#include <span>

#include "api/fields/generation_request.h"
#include "api/sequences/prompt_run.h"
#include "api/services/services.h"
#include "api/services/slo_hints.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/flow/request.h"

namespace quire::api {

struct Deadline {
  Duration after_arrival;
  const char* name;  // of the field or the header that sets it
};
std::optional<Deadline> deadline_of(const GenerationRequest& request, const requests::SloHints& slo_hints);

// `sequences` and `prompts` are those of `request`.
Result<Done> check_deadline(const GenerationRequest& request, const requests::SloHints& slo_hints,
                            std::span<const flow::Request> sequences, std::span<const PromptRun> prompts,
                            const Services& services, TimePoint now);

// The error of a request whose deadline has passed.
Error too_late(const GenerationRequest& request, const requests::SloHints& slo_hints, const char* while_what);

}  // namespace quire::api
