// The header fields that mean something here: names for who reads and writes them, and what /openapi.json and
// docs/api.md tell.
// Shape   those of a request's SLO hints stand in api/requests/slo_hints; Authorization and x-api-key are a matter of
//         security there.
// Thread  any; constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quire::api::http {

inline constexpr const char* kRequestIdHeader = "X-Request-Id";
inline constexpr const char* kRequestKeyHeader = "X-Request-Key";
inline constexpr const char* kTraceParentHeader = "traceparent";
inline constexpr const char* kTraceStateHeader = "tracestate";
inline constexpr const char* kApiKeyHeader = "x-api-key";
inline constexpr const char* kAnthropicVersionHeader = "anthropic-version";
inline constexpr const char* kAnthropicIdHeader = "request-id";  // X-Request-Id, for clients of Anthropic's

inline constexpr const char* kWarningsHeader = "X-Quire-Warnings";
inline constexpr const char* kRetryAfterHeader = "Retry-After";
inline constexpr const char* kAllowHeader = "Allow";
inline constexpr const char* kAuthenticateHeader = "WWW-Authenticate";

inline constexpr std::uint32_t kMaxRequestIdBytes = 128;
inline constexpr std::uint32_t kMinRequestKeyBytes = 16;  // nobody guesses it
inline constexpr std::uint32_t kMaxRequestKeyBytes = 128;

// Which paths have it.
enum Paths : std::uint8_t {
  kEveryPath = 1,
  kGenerating = 2,     // those that take a place in the waiting line
  kNamedRequests = 4,  // /v1/requests/{id}
  kPosts = 8,          // those with a body
};

struct Header {
  const char* name;
  std::uint8_t paths;  // of Paths
  std::string_view help;
  double lowest = 0.0;          // of a number; a text where highest is 0
  double highest = 0.0;         // infinity: there is none
  std::uint32_t min_bytes = 0;  // of a text
  std::uint32_t max_bytes = 0;  // 0: as long as a head may be
};

// Request headers, besides the SLO hints.
std::span<const Header> request_headers();

struct AnswerHeader {
  Header header;
  bool with_answer;  // a 200 may have it
  bool with_refusal;
};

std::span<const AnswerHeader> answer_headers();

}  // namespace quire::api::http
