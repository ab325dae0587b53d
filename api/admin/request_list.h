// GET /admin/requests: the requests that the engine has accepted and whose answers have not ended.
// Shape   {"object": "list", "data": [{"object": "request", …}], "left_out": N}, oldest first, at most kMaxListed.
//         Times are milliseconds: age_ms and first_token_ms since the arrival, queued_ms until the first sequence ran,
//         or so far. prompt_tokens and cached_tokens count each prompt once, as usage does; generated_tokens counts
//         those of all sequences.
// Thread  any; it does not wait for the engine.
// Fails   never. Prompts, answers and request keys are no part of it.
#pragma once

#include <cstddef>

#include "api/services/services.h"
#include "api/wire/exchange.h"
#include "core/base/clock.h"

namespace quire::api::requests {

inline constexpr std::size_t kMaxListed = 256;

http::Response list(const Services& services, TimePoint now);

}  // namespace quire::api::requests
