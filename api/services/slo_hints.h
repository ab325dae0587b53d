// The SLO hints in a request's headers: deadline, latency objectives, priority and tenant.
// Shape   X-Request-Timeout                seconds, 0.001 to 3600: a deadline, by which the answer must be complete
//         x-slo-ttft-ms, x-slo-tpot-ms     milliseconds, 0.001 to 3600000: objectives for the time to the first token,
//                                          and from one token to the next
//         x-gateway-inference-objective    sheddable, standard, critical, or the gateway's priority, an integer: higher
//                                          goes first, below 0 is sheddable; other names are ignored
//         x-gateway-inference-fairness-id  the tenant of policy fair, on a server without API keys
//         x-session-id, x-session-token, x-session-affinity: for the log only
//         Times are decimal numbers without sign or exponent. Objective and fairness id may also be named
//         x-llm-d-inference-objective and x-llm-d-inference-fairness-id.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the header: not a number, out of range, too long, or repeated.
// Source  names and meanings of llm-d's endpoint picker, whose gateway sets them; X-Request-Timeout is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/services/services.h"
#include "api/wire/exchange.h"
#include "api/wire/headers.h"
#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::api::requests {

inline constexpr const char* kTimeoutHeader = "X-Request-Timeout";
inline constexpr const char* kFirstTokenHeader = "x-slo-ttft-ms";
inline constexpr const char* kTokenTimeHeader = "x-slo-tpot-ms";
inline constexpr const char* kObjectiveHeader = "x-gateway-inference-objective";

struct SloHints {
  std::optional<Duration> timeout{};
  std::optional<Duration> first_token{};
  std::optional<Duration> token_time{};
  std::optional<std::int32_t> priority{};  // as in a body: lower goes first
  bool sheddable = false;                  // rejected if it would have to wait or would miss an objective
  std::string fairness_id{};
};

// The headers that slo_hints_of() and labels_of() read.
std::span<const http::Header> slo_hint_headers();

// `headers` are in any order; a repeated header is in the list repeatedly.
Result<SloHints> slo_hints_of(std::span<const http::Field> headers, const RequestLimits& limits);

// The labels among the headers, for a log line: key=value,key=value … with unsafe characters replaced.
std::string labels_of(std::span<const http::Field> headers);

// The tenant number of a fairness id: one of 4096, by its hash, above the numbers of API keys' tenants. Ids with the
// same number share a tenant. Empty: 0, the default tenant.
std::uint32_t tenant_of(std::string_view fairness_id);

}  // namespace quire::api::requests
