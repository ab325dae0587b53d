// What the headers of a request say of how soon its answer is wanted, and of whose it is.
// Shape   X-Request-Timeout              seconds, 0.001 to 3600: the answer has to be whole then
//         x-slo-ttft-ms, x-slo-tpot-ms   milliseconds, 0.001 to 3600000: hoped for until the first token, and from one
//         to the next x-gateway-inference-objective  sheddable, standard, critical, or a priority as the gateway
//                                        counts: higher goes first, below 0 is sheddable; another name means nothing
//         here x-gateway-inference-fairness-id  whose share of the machine it takes, where the server has no API keys
//         x-session-id, x-session-token, x-session-affinity  for the log alone
//         Times are decimal numbers without sign or exponent. The objective and the fairness id may be called x-llm-d-…
//         too.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the header: no such number, out of range, too long, or given more than once.
// Source  names and meanings: llm-d's endpoint picker, whose gateway sets them; X-Request-Timeout is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/http/exchange.h"
#include "api/http/headers.h"
#include "api/services.h"
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
  std::optional<std::int32_t> priority{};  // as a body says it: lower goes first
  bool sheddable = false;                  // rather refused than late, and never waits
  std::string fairness_id{};
};

// The headers that slo_hints_of() and labels_of() know.
std::span<const http::Header> wish_headers();

// `headers` in any order; one that was given twice stands there twice.
Result<SloHints> slo_hints_of(std::span<const http::Field> headers, const RequestLimits& limits);

// What of them is logged: key=value,key=value … of those that tell requests apart, fit for a log line.
std::string labels_of(std::span<const http::Field> headers);

// The number of a tenant that a fairness id names: one of 4096, above those of API keys. Ids that meet in one share its
// part.
std::uint32_t tenant_of(std::string_view fairness_id);

}  // namespace quire::api::requests
