#include "api/http/headers.h"

#include <limits>

namespace quire::api::http {
namespace {

constexpr Header kRequestHeaders[] = {
    {.name = kRequestIdHeader,
     .paths = kEveryPath,
     .help = "names the request, here and in logs: letters, digits and -_.: are taken over, anything else is replaced",
     .max_bytes = kMaxRequestIdBytes},
    {.name = kRequestKeyHeader,
     .paths = kGenerating | kNamedRequests,
     .help = "who has it may ask about the request and end it: letters, digits and -_.:",
     .min_bytes = kMinRequestKeyBytes,
     .max_bytes = kMaxRequestKeyBytes},
    {.name = kTraceParentHeader,
     .paths = kEveryPath,
     .help = "whose trace the request is part of (W3C Trace Context); one that breaks its rules counts as none"},
    {.name = kTraceStateHeader, .paths = kEveryPath, .help = "handed on beside traceparent, 512 bytes at most"},
};

constexpr AnswerHeader kAnswerHeaders[] = {
    {{.name = kRequestIdHeader, .paths = kEveryPath, .help = "the request's, or 128 random bits"}, true, true},
    {{.name = kRequestKeyHeader,
      .paths = kGenerating,
      .help = "the request's, or 128 random bits, once it has entered the waiting line"},
     true,
     true},
    {{.name = kWarningsHeader,
      .paths = kPosts,
      .help = "unknown fields of the body, and fields that have no effect here: the first sixteen of each"},
     true,
     true},
    {{.name = kRetryAfterHeader,
      .paths = kEveryPath,
      .help = "seconds until trying again may help; with 429 and 503",
      .lowest = 1.0,
      .highest = std::numeric_limits<double>::infinity()},
     false,
     true},
    {{.name = kAllowHeader, .paths = kEveryPath, .help = "the methods that the path takes; with 405"}, false, true},
    {{.name = kAuthenticateHeader, .paths = kEveryPath, .help = "Bearer; with 401"}, false, true},
};

}  // namespace

std::span<const Header> request_headers() { return kRequestHeaders; }
std::span<const AnswerHeader> answer_headers() { return kAnswerHeaders; }

}  // namespace quire::api::http
