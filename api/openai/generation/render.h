// What a request would run, without running it: the answers of the paths …/render, which routers ask for token ids.
//   body → request → prompts → sequences → told, one for each prompt
// Shape   {"request_id", "token_ids", "features", "sampling_params", "model", "stream", "cache_salt", "priority", "count",
//         "max_model_len"}: an object for each prompt. Where a body gives no seed, none is drawn: it is null.
// Thread  a worker; pure functions of the request and the Services.
// Fails   as sequences_of() does: what cannot run is not told either. A grammar is read and not made.
// Source  vLLM's GenerateRequest, with the names of its SamplingParams; `count` and `max_model_len` are those of /tokenize.
#pragma once

#include <string_view>
#include <vector>

#include "api/http/exchange.h"
#include "api/openai/generation/request.h"
#include "api/openai/response_writer.h"
#include "api/services.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/flow/request.h"

namespace quire::api::openai {

// One for each prompt, in order.
Result<std::vector<flow::Request>> sequences_to_tell(const GenerationRequest& request,
                                                     std::vector<std::vector<TokenId>> prompts,
                                                     const Services& services);

// The members of the object; `id_prefix` is "cmpl-" or the like.
void write_rendered(JsonWriter& json, std::string_view id_prefix, const GenerationRequest& request,
                    const flow::Request& sequence, const Services& services);

// With what was passed over in the body, if anything was.
http::Response rendered_response(const GenerationRequest& request, std::string body);

}  // namespace quire::api::openai
