#include "api/sequences/overflow.h"

#include <fmt/format.h>

#include <string>

namespace quire::api {
namespace {

constexpr const char* kReason = "context_length_exceeded";

std::string of_openai(const GenerationRequest& request, std::size_t prompt_tokens, std::size_t limit) {
  const char* prompt = request.prompt_field;
  const std::string text =
      fmt::format("This model's maximum context length is {} tokens. However, you requested ", limit);
  if (!request.max_tokens || request.embeds()) {
    return text + fmt::format("{} tokens ({} in the {}). Please reduce the length of the {}. ({})", prompt_tokens,
                              prompt_tokens, prompt, prompt, kReason);
  }
  const std::uint32_t answer = *request.max_tokens;
  return text +
         fmt::format("{} tokens ({} in the {}, {} in the completion). Please reduce the length of the {} or {}. ({})",
                     prompt_tokens + answer, prompt_tokens, prompt, answer, prompt, request.max_tokens_field, kReason);
}

std::string of_anthropic(const GenerationRequest& request, std::size_t prompt_tokens, std::size_t limit, bool alone) {
  if (alone) return fmt::format("prompt is too long: {} tokens > {} maximum", prompt_tokens, limit);
  return fmt::format(
      "input length and `max_tokens` exceed context limit: {} + {} > {}, decrease input length or `max_tokens` and try "
      "again",
      prompt_tokens, request.max_tokens.value_or(0), limit);
}

}  // namespace

Error context_overflow(const GenerationRequest& request, std::size_t prompt_tokens, const Services& services) {
  const std::size_t limit = services.max_model_len;
  const bool scores = request.max_tokens == 0u;  // no answer is generated
  const bool alone = prompt_tokens + (scores ? 0 : 1) > limit;
  Error error = invalid(alone ? request.prompt_field : request.max_tokens_field,
                        request.in_anthropics_words ? of_anthropic(request, prompt_tokens, limit, alone)
                                                    : of_openai(request, prompt_tokens, limit));
  error.reason = kReason;
  return error;
}

}  // namespace quire::api
