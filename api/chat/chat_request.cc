#include "api/chat/chat_request.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "api/chat/json_copy.h"
#include "api/chat/messages.h"
#include "api/chat/prompt.h"
#include "api/chat/tools.h"
#include "api/openai/fields/neutral.h"
#include "api/openai/fields/read_body.h"
#include "api/openai/fields/settle.h"
#include "api/openai/json_values.h"

namespace quire::api::chat {
namespace {

using openai::Field;
using openai::GenerationRequest;
using openai::Hint;
using openai::Integer;
using openai::kChat;
using openai::Neutral;
using openai::Shaped;
using simdjson::dom::element;

constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();

ChatRequest& own(GenerationRequest& request) { return static_cast<ChatRequest&>(request); }

void put_max_completion_tokens(GenerationRequest& request, std::int64_t value) {
  request.max_tokens = static_cast<std::uint32_t>(value);
  request.max_tokens_field = "max_completion_tokens";
}
void put_top_logprobs(GenerationRequest& request, std::int64_t value) {
  own(request).top_logprobs = static_cast<std::uint32_t>(value);
}

template <bool ChatRequest::*kMember>
Result<Done> read_flag(const std::string& path, element value, const Services&, GenerationRequest& request) {
  const Result<bool> flag = openai::boolean_of(path, value);
  if (!flag) return flag.error();
  own(request).*kMember = *flag;
  return Done{};
}

Result<Done> read_documents(const std::string& path, element value, const Services&, ChatRequest& request) {
  Result<json::Value> copied = copy_of(path, value);
  if (!copied) return copied.error();
  const auto is_object = [](const json::Value& one) { return one.is_object(); };
  if (!copied->is_array() || !std::all_of(copied->get_array().begin(), copied->get_array().end(), is_object)) {
    return invalid(path, path + " must be a list of objects");
  }
  request.documents = std::move(copied->get_array());
  return Done{};
}

constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};

bool says(element value, std::string_view word) {
  return value.is_string() && value.get_string().value_unsafe() == word;
}
bool is_text_alone(element value) {
  if (!value.is_array()) return false;
  const simdjson::dom::array array = openai::array_of(value);
  return array.size() == 1 && says(array.at(0).value_unsafe(), "text");
}

template <Result<Done> (*kRead)(const std::string&, element, const Services&, ChatRequest&)>
constexpr auto kOwnReader = openai::read_own<ChatRequest, kRead>;

// clang-format off
constexpr Field kFields[] = {
    {"messages", kChat, Shaped{"array", "1 to 4096 messages, see below", kOwnReader<read_messages>}, "required", "the conversation", "api/chat/messages_test.cc"},
    {"max_completion_tokens", kChat, Integer{1, kInt32, put_max_completion_tokens}, "the model's `max_new_tokens`, or what room is left", "longest answer, in tokens, reasoning and calls among them; `max_tokens` is its older name", "api/chat/chat_request_test.cc"},
    {"logprobs", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::tells_logprobs>}, "false", "log probability of each token of the answer", "wire/test_chat.py"},
    {"top_logprobs", kChat, Integer{0, 0, put_top_logprobs, &RequestLimits::max_logprobs}, "0", "so many likeliest tokens beside each, with `logprobs`", "wire/test_chat.py"},
    {"tools", kChat, Shaped{"array", "up to 128 functions, see below", kOwnReader<read_tools>}, "none", "functions that the model may call", "api/chat/tools_test.cc"},
    {"tool_choice", kChat, Shaped{"string|object", "`none`, `auto`, `required`, or a function", kOwnReader<read_tool_choice>}, "`auto` with tools", "whether it may or must call", "api/chat/tools_test.cc"},
    {"parallel_tool_calls", kChat, Shaped{"boolean", "true or false", kOwnReader<read_parallel_tool_calls>}, "true", "false: at most one call is returned", "api/chat/chat_form_test.cc"},
    {"add_generation_prompt", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::add_generation_prompt>}, "true", "end the prompt with the beginning of the assistant's turn", "api/chat/prompt_test.cc"},
    {"continue_final_message", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::continue_final_message>}, "false", "go on where the last message ends, instead of beginning a turn", "api/chat/prompt_test.cc"},
    {"chat_template_kwargs", kChat, Shaped{"object", "names and values", kOwnReader<read_template_kwargs>}, "none", "variables of the chat template, as `enable_thinking`", "api/chat/chat_request_test.cc"},
    {"documents", kChat, Shaped{"array", "objects", kOwnReader<read_documents>}, "none", "for templates that know them", "api/chat/chat_request_test.cc"},
    {"reasoning_effort", kChat, Shaped{"string", "`none`, `minimal`, `low`, `medium`, `high`, `xhigh`", kOwnReader<read_reasoning_effort>}, "the template's", "a variable of the chat template; `none` sets `enable_thinking` and `thinking` to false, too", "api/chat/prompt_test.cc"},
    {"include_reasoning", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::include_reasoning>}, "true", "false: reasoning is generated, and left out of the answer", "api/chat/chat_form_test.cc"},
    {"metadata", kChat, Hint{"object", openai::is_empty}, "none", "of no effect", "api/chat/chat_request_test.cc"},
    {"safety_identifier", kChat, Hint{"string"}, "none", "of no effect", "api/chat/chat_request_test.cc"},
    {"prompt_cache_key", kChat, Hint{"string"}, "none", "of no effect: prefixes are found by their tokens; `cache_salt` parts them", "api/chat/chat_request_test.cc"},
    {"prompt_cache_retention", kChat, Hint{"string"}, "none", "of no effect: prefixes stay as long as there is room", "api/chat/chat_request_test.cc"},
    {"store", kChat, Hint{"boolean", openai::is_false}, "false", "of no effect: nothing is stored", "api/chat/chat_request_test.cc"},
    {"service_tier", kChat, Hint{"string", openai::is_usual_tier}, "auto", "of no effect: there is one tier", "api/chat/chat_request_test.cc"},
    {"verbosity", kChat, Hint{"string", openai::is_medium}, "medium", "of no effect: say it in the conversation", "api/chat/chat_request_test.cc"},
    {"modalities", kChat, Neutral{"array", "[\"text\"]", is_text_alone}, "text", "only text goes out", "api/chat/chat_request_test.cc"},
    {"audio", kChat, Neutral{"object", "null", openai::is_never}, "none", "not supported", "api/chat/chat_request_test.cc"},
    {"prediction", kChat, Hint{"object"}, "none", "of no effect: `speculative` guesses from the prompt itself", "api/chat/chat_request_test.cc"},
    {"web_search_options", kChat, Hint{"object"}, "none", "of no effect: this server runs no tools", "api/chat/chat_request_test.cc"},
    {"max_tool_calls", kChat, Hint{"integer"}, "none", "of no effect: it is for tools that a server runs", "api/chat/chat_request_test.cc"},
    {"functions", kChat, Neutral{"array", "empty", openai::is_empty}, "none", "`tools` took its place", "api/chat/chat_request_test.cc"},
    {"function_call", kChat, Neutral{"string", "null", openai::is_never}, "none", "`tool_choice` took its place", "api/chat/chat_request_test.cc"},
    {"chat_template", kChat, Neutral{"string", "null", openai::is_never}, "none", "the operator chooses templates: --chat-template", "api/chat/chat_request_test.cc"},
    {"echo", kChat, Neutral{"boolean", "false", openai::is_false}, "false", "not supported in a chat", "api/chat/chat_request_test.cc"},
    {"suffix", kChat, Neutral{"string", "null", openai::is_never}, "none", "not supported in a chat", "api/chat/chat_request_test.cc"},
    {"prompt_logprobs", kChat, Neutral{"integer", "null", openai::is_never}, "none", "score prompts with /v1/completions", "api/chat/chat_request_test.cc"},
    {"thinking_token_budget", kChat, Neutral{"integer", "null", openai::is_never}, "none", "not supported", "api/chat/chat_request_test.cc"},
    {"mm_processor_kwargs", kChat, Neutral{"object", "empty", openai::is_empty}, "none", "only text goes in", "api/chat/chat_request_test.cc"},
};
// clang-format on

Result<Done> settle_logprobs(ChatRequest& request) {
  if (request.top_logprobs.value_or(0) > 0 && !request.tells_logprobs) {
    return invalid("top_logprobs", "top_logprobs needs \"logprobs\": true");
  }
  if (request.tells_logprobs) request.logprobs = request.top_logprobs.value_or(0);
  return Done{};
}

Result<Done> settle_prompt(ChatRequest& request, const openai::Given& given) {
  if (!request.continue_final_message) return Done{};
  if (given("add_generation_prompt") && request.add_generation_prompt) {
    return invalid("continue_final_message",
                   "continue_final_message goes on with a message, and add_generation_prompt "
                   "begins one: leave one of them out");
  }
  request.add_generation_prompt = false;
  return Done{};
}

}  // namespace

ChatRequest::ChatRequest() {
  prompt_field = "messages";
  default_max_tokens = std::numeric_limits<std::uint32_t>::max();
  add_special_tokens = false;
}

Result<ChatRequest> parse_chat_request(const std::string& body, const Services& services) {
  ChatRequest request;
  const Result<openai::Given> given = openai::read_body(body, kChat, kFields, services, request);
  if (!given) return given.error();
  if (request.messages.empty()) return invalid("messages", "messages is missing");
  if ((*given)("max_tokens") && (*given)("max_completion_tokens")) {
    return invalid("max_completion_tokens", "max_completion_tokens and max_tokens are the same: leave one of them out");
  }
  if (Result<Done> settled = settle_logprobs(request); !settled) return settled.error();
  if (Result<Done> settled = settle_prompt(request, *given); !settled) return settled.error();
  if (Result<Done> settled = settle_tools(request, services); !settled) return settled.error();
  if (Result<Done> settled = openai::settle(request, 1, services, *given); !settled) return settled.error();
  return request;
}

Result<Done> read_template_kwargs(const std::string& path, element value, const Services& services,
                                  ChatRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  for (const auto field : openai::object_of(value)) {
    const std::string in = path + "." + openai::echoed(field.key);
    if (services.chat != nullptr && is_own_variable(*services.chat, field.key)) {
      return invalid(in, in + " is not for a request to say");
    }
    Result<json::Value> copied = copy_of(in, field.value);
    if (!copied) return copied.error();
    request.template_kwargs[field.key] = std::move(*copied);
  }
  return Done{};
}

Result<Done> read_reasoning_effort(const std::string& path, element value, const Services&, ChatRequest& request) {
  if (value.is_string()) {
    const std::string_view word = value.get_string().value_unsafe();
    if (std::find(std::begin(kEfforts), std::end(kEfforts), word) != std::end(kEfforts)) {
      request.reasoning_effort = word;
      return Done{};
    }
  }
  return invalid(path, path + " must be none, minimal, low, medium, high or xhigh");
}

Result<Done> read_parallel_tool_calls(const std::string& path, element value, const Services&, ChatRequest& request) {
  const Result<bool> flag = openai::boolean_of(path, value);
  if (!flag) return flag.error();
  request.parallel_tool_calls = *flag;
  return Done{};
}

std::span<const Field> chat_fields() { return kFields; }

}  // namespace quire::api::chat
