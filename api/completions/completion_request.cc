#include "api/completions/completion_request.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/fields/read_body.h"
#include "api/fields/settle.h"
#include "api/json/json_values.h"

namespace quire::api {
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

// `true` counts as 1 and `false` as 0, as in vLLM.
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
    {"prompt", kCompletions, Shaped{"string|[string]|[integer]|[[integer]]", kPromptsRange, read_own<CompletionRequest, read_prompt>}, "required", "the text or token ids to continue", "wire/test_completions.py"},
    {"suffix", kCompletions, Shaped{"string", "a text", read_own<CompletionRequest, read_suffix>}, "none", "text after the answer: fill in the middle; refused with 400 if the tokenizer has no tokens for it", "api/completions/completion_formatter_test.cc"},
    {"echo", kCompletions, Flag{&GenerationRequest::echo}, "false", "return the prompt before the answer; with `logprobs`, also its log probabilities", "wire/test_scoring.py"},
    {"logprobs", kCompletions, Shaped{"integer|boolean", "0 to 20; true is 1, false is 0", read_logprobs}, "none", "log probability of each token, and of this many likeliest tokens; 0: the token's own only", "wire/test_logprobs.py"},
};
// clang-format on

Result<Done> check_together(const CompletionRequest& request) {
  if (request.prompts.empty()) return invalid("prompt", "prompt is missing");
  if (request.suffix && request.echo) {
    return invalid("echo", "echo cannot be combined with suffix: leave one of them out");
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

}  // namespace quire::api
