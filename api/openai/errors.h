// The one place where a fault becomes an HTTP status and an OpenAI error object.
// Shape   {"error":{"message","type","param","code"}}; code is the status as an integer, type is OpenAI's snake_case word.
// Thread  any; pure functions.
#pragma once

#include <string>

#include "api/http/exchange.h"
#include "api/http/framing_guard.h"
#include "core/base/result.h"

namespace quire::api::openai {

int status_of(Code code);
int status_of(http::Fault fault);

std::string error_json(const Error& error);
http::Response error_response(const Error& error);  // with Retry-After where trying again may help
http::Response error_response(const http::Refusal& refusal);

}  // namespace quire::api::openai
