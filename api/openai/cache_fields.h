// Fields of a completion that say with whom it shares the cache, what it keeps of it, and when its turn comes.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, as `kv_policy.window` where it lies deeper. A null never comes here, it
//         means "not given".
// Source  cache_salt and priority are vLLM's; deadline_ms and kv_policy are ours, see core/flow/request.h.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/openai/completion_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_cache_salt(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_priority(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_deadline_ms(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_kv_policy(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);

}  // namespace quire::api::openai
