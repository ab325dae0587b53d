// The tables of docs/api.md, from the tables of fields and of headers.
// Thread  any; pure functions.
#pragma once

#include <span>
#include <string>

#include "api/openai/fields/field.h"

namespace quire::api::openai {

// The endpoint's own fields, then those that it shares, a line each.
std::string fields_markdown(Endpoint endpoint, std::span<const Field> own);
// What a request's head may say, and an answer's.
std::string headers_markdown();
std::string answer_headers_markdown();

}  // namespace quire::api::openai
