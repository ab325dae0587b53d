// Fill in the middle: a prompt and a suffix as one prompt, with the tokens that a model was trained to do this with.
// Thread  any; pure function.
// Fails   kInvalidArgument: `suffix` where the tokenizer has no such tokens.
// Source  Bavarian et al. 2022; the spellings are those of published tokenizers (Qwen, StarCoder, CodeLlama, DeepSeek,
//         Codestral), which also say whether the suffix comes first.
#pragma once

#include <vector>

#include "api/openai/completions/request.h"
#include "core/base/result.h"
#include "core/text/tokenizer.h"

namespace quire::api::openai {

Result<std::vector<TokenId>> fill_in(const Prompt& prompt, const CompletionRequest& request, const Services& services,
                                     Allowance& allowance);

}  // namespace quire::api::openai
