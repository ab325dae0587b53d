// What a request forbids and favours, for the engine: its bad words as tokens, and nothing where nothing is asked.
// Thread  a worker; pure function.
// Fails   kInvalidArgument naming the field: a bad word that is no token, or rules that leave no token to say.
// Source  vLLM's bad_words: a word is forbidden as it stands, and as it stands behind a blank.
#pragma once

#include <memory>
#include <span>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"
#include "core/sample/rules.h"

namespace quire::api::openai {

// `ends` are the tokens that end the answer.
Result<std::shared_ptr<const sample::Rules>> rules_of(const GenerationRequest& request, std::span<const TokenId> ends,
                                                      const Services& services);

}  // namespace quire::api::openai
