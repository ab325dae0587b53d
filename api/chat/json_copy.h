// A copy of a part of a request's body, as a JSON value that chat templates read.
// Shape   members keep their order; a name that occurs twice keeps its first position and its last value.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming `path`: nested more than kMaxDepth deep.
#pragma once

#include <simdjson.h>

#include <string>

#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

// Nesting of objects and lists. core/chat's values may be 64 deep (kMaxValueDepth), with the message around this one.
inline constexpr int kMaxDepth = 48;

Result<json::Value> copy_of(const std::string& path, simdjson::dom::element value);

}  // namespace quire::api::chat
