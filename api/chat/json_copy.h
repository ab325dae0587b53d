// A part of a request's body as a value that templates read.
// Shape   members in their order; of a name that is there twice the last value counts, at the first one's place.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming `path`: nested deeper than templates are let look.
#pragma once

#include <simdjson.h>

#include <string>

#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

inline constexpr int kMaxDepth = 48;  // of objects and lists; core/chat's values go 64 deep with what is around these

Result<json::Value> copy_of(const std::string& path, simdjson::dom::element value);

}  // namespace quire::api::chat
