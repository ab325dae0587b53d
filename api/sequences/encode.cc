#include "api/sequences/encode.h"

#include <cstddef>

#include "api/sequences/overflow.h"

namespace quire::api {
namespace {

// A prompt of up to this many times the model's context is tokenised completely, so that the error has its length.
constexpr std::size_t kCounted = 2;

Result<std::vector<TokenId>> encode(const std::string& text, bool add_special_tokens, std::size_t max_tokens,
                                    const Services& services, Allowance& allowance) {
  std::vector<TokenId> ids =
      services.tokenizer->encode(text, add_special_tokens, {.max_tokens = max_tokens, .allowance = &allowance});
  if (allowance.end() != Allowance::End::kNone) return Error{Code::kTimeout, "tokenising takes too long", "", 0};
  return ids;
}

}  // namespace

Result<std::vector<TokenId>> encode_prompt(const std::string& text, const GenerationRequest& request,
                                           const Services& services, Allowance& allowance, bool add_special_tokens) {
  if (request.truncate_prompt_tokens) {
    return encode(text, add_special_tokens, ~std::size_t{0}, services, allowance);
  }
  const std::size_t most = kCounted * services.max_model_len;
  const std::size_t least = services.tokenizer->least_tokens(text.size());
  if (least > most) return context_overflow(request, least, services);
  Result<std::vector<TokenId>> ids = encode(text, add_special_tokens, most, services, allowance);
  if (ids && ids->size() > most) return context_overflow(request, ids->size(), services);
  return ids;
}

Result<std::vector<TokenId>> encode_all(const std::string& text, const GenerationRequest& request,
                                        const Services& services, Allowance& allowance) {
  return encode(text, request.add_special_tokens, ~std::size_t{0}, services, allowance);
}

}  // namespace quire::api
