// A prompt's text as token ids.
// Shape   encode_prompt(): of a text that is longer than the model takes no more is tokenised than shows that, and
//         nothing where its bytes show it: a refusal costs little. With truncate_prompt_tokens every text is
//         tokenised whole.
// Thread  a worker; pure functions.
// Fails   kInvalidArgument naming the request's prompt_field: longer than the model takes. kTimeout: the allowance
//         has ended.
#pragma once

#include <string>
#include <vector>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/allowance.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<std::vector<TokenId>> encode_prompt(const std::string& text, const GenerationRequest& request,
                                           const Services& services, Allowance& allowance, bool add_special_tokens);
inline Result<std::vector<TokenId>> encode_prompt(const std::string& text, const GenerationRequest& request,
                                                  const Services& services, Allowance& allowance) {
  return encode_prompt(text, request, services, allowance, request.add_special_tokens);
}

// Of whatever length.
Result<std::vector<TokenId>> encode_all(const std::string& text, const GenerationRequest& request,
                                        const Services& services, Allowance& allowance);

}  // namespace quire::api::openai
