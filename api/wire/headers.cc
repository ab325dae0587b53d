#include "api/wire/headers.h"

#include <limits>

namespace quire::api::http {
namespace {

constexpr Header kRequestHeaders[] = {
    {.name = kRequestIdHeader,
     .paths = kEveryPath,
     .help = "id of the request, in answers and in the log: a value of letters, digits and -_.: is kept; any other is "
             "replaced by a random one",
     .max_bytes = kMaxRequestIdBytes},
    {.name = kRequestKeyHeader,
     .paths = kGenerating | kNamedRequests,
     .help = "key to query and cancel the request: letters, digits and -_.:",
     .min_bytes = kMinRequestKeyBytes,
     .max_bytes = kMaxRequestKeyBytes},
    {.name = kTraceParentHeader,
     .paths = kEveryPath,
     .help = "trace context of the request (W3C Trace Context); an invalid value is ignored"},
    {.name = kTraceStateHeader, .paths = kEveryPath, .help = "passed on with traceparent, at most 512 bytes"},
    {.name = kAnthropicVersionHeader,
     .paths = kModels,
     .help = "if it is there, the answer has Anthropic's shape; its value does not matter"},
};

constexpr AnswerHeader kAnswerHeaders[] = {
    {{.name = kRequestIdHeader, .paths = kEveryPath, .help = "id of the request: the one it sent, or 128 random bits"},
     true,
     true},
    {{.name = kAnthropicIdHeader, .paths = kAnthropicForm, .help = "the same, in Anthropic's shape only"}, true, true},
    {{.name = kRequestKeyHeader,
      .paths = kGenerating,
      .help = "key of the request: the one it sent, or 128 random bits; only if it has entered the waiting line"},
     true,
     true},
    {{.name = kWarningsHeader,
      .paths = kPosts,
      .help = "unknown fields of the body, and fields that have no effect: the first sixteen of each"},
     true,
     true},
    {{.name = kRetryAfterHeader,
      .paths = kEveryPath,
      .help = "seconds to wait before trying again; with 429 and 503",
      .lowest = 1.0,
      .highest = std::numeric_limits<double>::infinity()},
     false,
     true},
    {{.name = kAllowHeader, .paths = kEveryPath, .help = "methods that the path allows; with 405"}, false, true},
    {{.name = kAuthenticateHeader, .paths = kEveryPath, .help = "authentication scheme, Bearer; with 401"},
     false,
     true},
};

}  // namespace

std::span<const Header> request_headers() { return kRequestHeaders; }
std::span<const AnswerHeader> answer_headers() { return kAnswerHeaders; }

}  // namespace quire::api::http
