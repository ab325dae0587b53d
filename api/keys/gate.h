// Who may ask for what: the one place where a request's key is looked at.
// Shape   a key comes as Authorization: Bearer KEY, or as x-api-key: KEY, as Anthropic's clients send it. Both may be there
//         where they say the same; either twice is refused.
//         /live, /ready, /startup, /health  nobody needs a key
//         /metrics                    monitor, admin, and users that monitor, too
//         /admin and below            admin
//         all else, unknown paths too  user, admin
// Thread  any.
// Fails   kUnauthorized alike for a key that is missing, wrong, or given twice; kForbidden for one of another role. No
//         error repeats any of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "api/http/exchange.h"
#include "api/keys/caller.h"
#include "api/keys/key_table.h"
#include "core/base/result.h"

namespace quire::api::keys {

enum class Access : std::uint8_t { kOpen, kMonitor, kUser, kAdmin };
Access access_of(std::string_view path);

// Null for paths that are open to all.
Result<std::shared_ptr<const Caller>> caller_of(const http::Request& request, const KeyTable& table);

}  // namespace quire::api::keys
