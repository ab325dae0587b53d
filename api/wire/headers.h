// The HTTP header fields that the server reads and writes: their names, and the help for /openapi.json and docs/api.md.
// Shape   SLO hints have their own table in api/services/slo_hints. Authorization and x-api-key are not in the tables:
//         /openapi.json has them as security schemes.
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
inline constexpr const char* kAnthropicIdHeader = "request-id";  // X-Request-Id as Anthropic's clients know it

inline constexpr const char* kWarningsHeader = "X-Quire-Warnings";
inline constexpr const char* kRetryAfterHeader = "Retry-After";
inline constexpr const char* kAllowHeader = "Allow";
inline constexpr const char* kAuthenticateHeader = "WWW-Authenticate";

inline constexpr std::uint32_t kMaxRequestIdBytes = 128;
inline constexpr std::uint32_t kMinRequestKeyBytes = 16;  // long enough that it cannot be guessed
inline constexpr std::uint32_t kMaxRequestKeyBytes = 128;

// The paths on which a header has a meaning.
enum Paths : std::uint8_t {
  kEveryPath = 1,
  kGenerating = 2,      // paths whose requests enter the admission queue
  kNamedRequests = 4,   // /v1/requests/{id}
  kPosts = 8,           // paths whose requests have a body
  kModels = 16,         // /v1/models and below
  kAnthropicForm = 32,  // paths whose answers may have Anthropic's shape
};

struct Header {
  const char* name;
  std::uint8_t paths;  // bits of Paths
  std::string_view help;
  double lowest = 0.0;          // of a number
  double highest = 0.0;         // of a number; infinity: no upper limit; 0: the header is a text
  std::uint32_t min_bytes = 0;  // of a text
  std::uint32_t max_bytes = 0;  // of a text; 0: limited only by the size of the head
};

// Request headers except the SLO hints.
std::span<const Header> request_headers();

struct AnswerHeader {
  Header header;
  bool with_answer;   // a 200 may have it
  bool with_refusal;  // an error may have it
};

std::span<const AnswerHeader> answer_headers();

}  // namespace quire::api::http
