// POST /tokenize and /detokenize: a text or a conversation to token ids, encoded as for generation, and ids to text,
// special tokens included.
// Thread  any (a worker); pure functions of the body and the Services.
// Fails   every fault is a response: 400 naming the field, 404 for a model that is not served.
// Source  vLLM's shapes: {"prompt" or "messages", "add_special_tokens", "return_token_strs"} → {"count",
//         "max_model_len", "tokens", "token_strs"}, and {"tokens"} → {"prompt"}. A conversation's fields are those of
//         /v1/chat/completions.
#pragma once

#include <span>
#include <string>

#include "api/fields/field.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api {

http::Response tokenize(const Services& services, const std::string& body, Allowance& allowance);
http::Response detokenize(const Services& services, const std::string& body, Allowance& allowance);

std::span<const Field> tokenize_fields();
std::span<const Field> detokenize_fields();

}  // namespace quire::api
