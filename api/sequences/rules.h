// The sampling rules of a request for the engine (penalties, biases, allowed tokens, bad words as tokens); null if it
// has none.
// Thread  a worker; pure function.
// Fails   kInvalidArgument naming the field: a bad word without tokens, or rules that forbid every token.
// Source  vLLM's bad_words: a word is forbidden both without and with a blank in front.
#pragma once

#include <memory>
#include <span>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"
#include "core/sample/rules.h"

namespace quire::api {

// `ends`: the tokens that end the answer.
Result<std::shared_ptr<const sample::Rules>> rules_of(const GenerationRequest& request, std::span<const TokenId> ends,
                                                      const Services& services);

}  // namespace quire::api
