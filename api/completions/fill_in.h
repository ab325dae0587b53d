// Fill in the middle (FIM): a prompt and its suffix as one prompt, framed by the tokenizer's FIM tokens.
// Thread  any; pure function.
// Fails   kInvalidArgument: `suffix`, if the tokenizer has no FIM tokens. Else as encode_prompt().
// Source  Bavarian et al. 2022; the tokens' spellings, and the order of prompt and suffix, are those of published
//         tokenizers (Qwen, StarCoder, CodeLlama, DeepSeek, Codestral).
#pragma once

#include <vector>

#include "api/completions/completion_request.h"
#include "core/base/result.h"
#include "core/text/tokenizer.h"

namespace quire::api {

Result<std::vector<TokenId>> fill_in(const Prompt& prompt, const CompletionRequest& request, const Services& services,
                                     Allowance& allowance);

}  // namespace quire::api
