// Tokenises the text of a prompt.
// Shape   encode_prompt() tokenises only the part of a text that shows that it exceeds the model's context, and nothing
//         if its size in bytes shows it, so that a refusal is cheap. With truncate_prompt_tokens it tokenises the whole
//         text.
// Thread  a worker; pure functions.
// Fails   kInvalidArgument naming the request's prompt_field: the text exceeds the context. kTimeout: the allowance has
//         ended.
#pragma once

#include <string>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/allowance.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace quire::api {

Result<std::vector<TokenId>> encode_prompt(const std::string& text, const GenerationRequest& request,
                                           const Services& services, Allowance& allowance, bool add_special_tokens);
inline Result<std::vector<TokenId>> encode_prompt(const std::string& text, const GenerationRequest& request,
                                                  const Services& services, Allowance& allowance) {
  return encode_prompt(text, request, services, allowance, request.add_special_tokens);
}

// For a text of any length.
Result<std::vector<TokenId>> encode_all(const std::string& text, const GenerationRequest& request,
                                        const Services& services, Allowance& allowance);

}  // namespace quire::api
