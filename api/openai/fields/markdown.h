// The tables of docs/api.md, from the tables of fields.
// Thread  any; pure function.
#pragma once

#include <span>
#include <string>

#include "api/openai/fields/field.h"

namespace quire::api::openai {

// The endpoint's own fields, then those that it shares, a line each.
std::string fields_markdown(Endpoint endpoint, std::span<const Field> own);

}  // namespace quire::api::openai
