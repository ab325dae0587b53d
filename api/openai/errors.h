// The one place where a fault becomes an HTTP status and an error object.
// Shape   {"error":{"message","type","param","code"}}; code is the status as an integer, or a word where one says more
//         (invalid_api_key, context_length_exceeded); type is OpenAI's snake_case word.
//         Anthropic's has "type":"error" in front, and types of its own.
// Thread  any; pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "api/http/exchange.h"
#include "api/http/framing_guard.h"
#include "core/base/result.h"

namespace quire::api::openai {

// Of a request that was not read in the time that one may take.
Error took_too_long();

int status_of(Code code);
const char* type_of(Code code);  // OpenAI's word
int status_of(http::Fault fault);

enum class ErrorShape : std::uint8_t { kOpenAi, kAnthropic };

std::string error_json(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);
// With Retry-After where trying again may help, and WWW-Authenticate where a key is missing.
http::Response error_response(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);
http::Response error_response(const http::Refusal& refusal, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace quire::api::openai
