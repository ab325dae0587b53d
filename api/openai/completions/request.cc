#include "api/openai/completions/request.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/openai/fields/read_body.h"
#include "api/openai/fields/settle.h"
#include "api/openai/json_values.h"

namespace quire::api::openai {
namespace {

using simdjson::dom::element;

Result<Done> read_prompt(const std::string& name, element value, const Services& services, CompletionRequest& request) {
  Result<std::vector<Prompt>> prompts = prompts_of(name, value, services, services.limits.max_prompts);
  if (!prompts) return prompts.error();
  request.prompts = std::move(*prompts);
  return Done{};
}

Result<Done> read_suffix(const std::string& name, element value, const Services&, CompletionRequest& request) {
  Result<std::string> suffix = string_of(name, value, std::numeric_limits<std::size_t>::max());
  if (!suffix) return suffix.error();
  request.suffix = std::move(*suffix);
  return Done{};
}

// true is 1 and false is 0, as vLLM reads them.
Result<Done> read_logprobs(const std::string& name, element value, const Services& services,
                           GenerationRequest& request) {
  if (value.is_bool()) {
    request.logprobs = std::min<std::uint32_t>(value.get_bool().value_unsafe() ? 1 : 0, services.limits.max_logprobs);
    return Done{};
  }
  const Result<std::int64_t> number = integer_of(name, value, 0, services.limits.max_logprobs);
  if (!number) return number.error();
  request.logprobs = static_cast<std::uint32_t>(*number);
  return Done{};
}

// clang-format off
constexpr Field kOwn[] = {
    {"prompt", kCompletions, Shaped{"string|array", kPromptsRange, read_own<CompletionRequest, read_prompt>}, "required", "what the model goes on from", "wire/test_completions.py"},
    {"suffix", kCompletions, Shaped{"string", "a text", read_own<CompletionRequest, read_suffix>}, "none", "what comes after the answer: fill in the middle, where the tokenizer has the tokens for it, else 400", "api/openai/completions/completion_form_test.cc"},
    {"echo", kCompletions, Flag{&GenerationRequest::echo}, "false", "the prompt in front of the answer, with `logprobs` its log probabilities, too", "wire/test_scoring.py"},
    {"logprobs", kCompletions, Shaped{"integer|boolean", "0 to 20; true is 1, false is 0", read_logprobs}, "none", "log probability of each token and so many likeliest; 0: of the token alone", "wire/test_logprobs.py"},
};
// clang-format on

Result<Done> check_together(const CompletionRequest& request) {
  if (request.prompts.empty()) return invalid("prompt", "prompt is missing");
  if (request.suffix && request.echo) {
    return invalid("echo", "echo has no place beside suffix: the prompt is not followed by the answer alone");
  }
  return Done{};
}

}  // namespace

std::span<const Field> completion_fields() { return kOwn; }

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services) {
  CompletionRequest request;
  request.goes_on = true;
  const Result<Given> given = read_body(body, kCompletions, kOwn, services, request);
  if (!given) return given.error();
  if (Result<Done> checked = check_together(request); !checked) return checked.error();
  if (Result<Done> settled = settle(request, request.prompts.size(), services, *given); !settled) {
    return settled.error();
  }
  return request;
}

}  // namespace quire::api::openai
