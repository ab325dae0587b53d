// Conversion of errors into HTTP responses: the only place that maps a Code or a Fault to a status and an error object.
// Shape   {"error":{"message","type","param","code"}}: code is Error::reason if there is one (invalid_api_key,
//         context_length_exceeded), else the status as an integer; type is a word of OpenAI's. Anthropic's shape has
//         "type":"error" in front and Anthropic's types.
// Thread  any; pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "api/wire/exchange.h"
#include "api/wire/fault.h"
#include "core/base/result.h"

namespace quire::api {

// The error for a request whose reading took more CPU time than Workers::kSlowTime.
Error took_too_long();

int status_of(Code code);
const char* type_of(Code code);  // in OpenAI's shape
int status_of(http::Fault fault);

http::ReportedError reported(const Error& error);

enum class ErrorShape : std::uint8_t { kOpenAi, kAnthropic };

std::string error_json(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);
// Adds Retry-After to 429 and 503, and WWW-Authenticate to 401.
http::Response error_response(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);
http::Response error_response(const http::Refusal& refusal, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace quire::api
