// The tables of docs/api.md, made from the tables of fields and headers.
// Thread  any; pure functions.
#pragma once

#include <span>
#include <string>

#include "api/fields/field.h"

namespace quire::api {

// The endpoint's own fields, then its shared ones, one row each.
std::string fields_markdown(Endpoint endpoint, std::span<const Field> own);
// The headers of requests, and those of answers.
std::string headers_markdown();
std::string answer_headers_markdown();

}  // namespace quire::api
