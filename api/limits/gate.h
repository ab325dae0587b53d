// Access control: the only place that checks a request's API key, and its role against the path.
// Shape   a key is sent as Authorization: Bearer KEY, or as x-api-key: KEY by Anthropic's clients. Both are accepted if
//         they hold the same key; a repeated header is refused.
//         /live, /ready, /startup, /health  no key
//         /metrics                          monitor, admin, and users with Caller::monitors
//         /admin and below                  admin
//         all else, unknown paths too       user, admin
// Thread  any.
// Fails   kUnauthorized for a key that is missing, wrong or repeated; kForbidden for a key of another role. No error
//         text contains a key.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "api/limits/key_table.h"
#include "api/wire/caller.h"
#include "api/wire/exchange.h"
#include "core/base/result.h"

namespace quire::api::keys {

enum class Access : std::uint8_t { kOpen, kMonitor, kUser, kAdmin };
Access access_of(std::string_view path);

// Null on a path that needs no key.
Result<std::shared_ptr<const Caller>> caller_of(const http::Request& request, const KeyTable& table);

}  // namespace quire::api::keys
