// The answers of the paths …/render, from which routers get token ids: the prompts and parameters that a request would
// run with, without running it.
//   body → request → prompts → sequences → one object per prompt
// Shape   {"request_id", "token_ids", "features", "sampling_params", "model", "stream", "cache_salt", "priority",
//         "count", "max_model_len"}: one object per prompt. The seed is null if the body has none.
// Thread  a worker; pure functions of the request and the Services.
// Fails   as sequences_of(): a request that could not run is refused. A grammar is read, but not compiled.
// Source  vLLM's GenerateRequest, with the names of its SamplingParams; `count` and `max_model_len` are those of
//         /tokenize.
#pragma once

#include <string_view>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/json/response_writer.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/flow/request.h"

namespace quire::api {

// The first sequence of each prompt, in order.
Result<std::vector<flow::Request>> sequences_to_render(const GenerationRequest& request,
                                                       std::vector<std::vector<TokenId>> prompts,
                                                       const Services& services);

// Writes the members of a prompt's object; `id_prefix` is "cmpl-" or the like.
void write_rendered(JsonWriter& json, std::string_view id_prefix, const GenerationRequest& request,
                    const flow::Request& sequence, const Services& services);

// The response, with X-Quire-Warnings if fields of the body had no effect.
http::Response rendered_response(const GenerationRequest& request, std::string body);

}  // namespace quire::api
