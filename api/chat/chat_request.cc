#include "api/chat/chat_request.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "api/chat/json_copy.h"
#include "api/chat/messages.h"
#include "api/chat/prompt.h"
#include "api/chat/tools.h"
#include "api/fields/neutral.h"
#include "api/fields/read_body.h"
#include "api/fields/settle.h"
#include "api/json/json_values.h"

namespace quire::api::chat {
namespace {

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
  const Result<bool> flag = boolean_of(path, value);
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
  const simdjson::dom::array array = array_of(value);
  return array.size() == 1 && says(array.at(0).value_unsafe(), "text");
}

template <Result<Done> (*kRead)(const std::string&, element, const Services&, ChatRequest&)>
constexpr auto kOwnReader = read_own<ChatRequest, kRead>;

// clang-format off
constexpr Field kFields[] = {
    {"messages", kChat, Shaped{"[ChatMessage]", "1 to 4096 messages, see below", kOwnReader<read_messages>}, "required", "the conversation", "api/chat/messages_test.cc"},
    {"max_completion_tokens", kChat, Integer{1, kInt32, put_max_completion_tokens}, "the model's `max_new_tokens`, or the room left in the context", "maximum length of the answer in tokens, reasoning and calls included; `max_tokens` is the older name", "api/chat/chat_request_test.cc"},
    {"logprobs", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::returns_logprobs>}, "false", "return the log probability of each token of the answer", "wire/test_chat.py"},
    {"top_logprobs", kChat, Integer{0, 0, put_top_logprobs, &RequestLimits::max_logprobs}, "0", "with `logprobs`: return this many likeliest tokens at each position, too", "wire/test_chat.py"},
    {"tools", kChat, Shaped{"[Tool]", "up to 128 functions, see below", kOwnReader<read_tools>}, "none", "functions that the model may call", "api/chat/tools_test.cc"},
    {"tool_choice", kChat, Shaped{"string|object", "`none`, `auto`, `required`, or a function", kOwnReader<read_tool_choice>}, "`auto` with tools", "allow, forbid or force calls, or name the function to call", "api/chat/tools_test.cc"},
    {"parallel_tool_calls", kChat, Shaped{"boolean", "true or false", kOwnReader<read_parallel_tool_calls>}, "true", "false: at most one call is returned", "api/chat/chat_formatter_test.cc"},
    {"add_generation_prompt", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::add_generation_prompt>}, "true", "end the prompt with the beginning of the assistant message", "api/chat/prompt_test.cc"},
    {"continue_final_message", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::continue_final_message>}, "false", "continue the last message instead of beginning a new one", "api/chat/prompt_test.cc"},
    {"chat_template_kwargs", kChat, Shaped{"object", "names and values", kOwnReader<read_template_kwargs>}, "none", "variables of the chat template, such as `enable_thinking`", "api/chat/chat_request_test.cc"},
    {"documents", kChat, Shaped{"[object]", "objects", kOwnReader<read_documents>}, "none", "documents for chat templates that use them", "api/chat/chat_request_test.cc"},
    {"reasoning_effort", kChat, Shaped{"string", "`none`, `minimal`, `low`, `medium`, `high`, `xhigh`", kOwnReader<read_reasoning_effort>}, "the template's", "a variable of the chat template; `none` also sets `enable_thinking` and `thinking` to false", "api/chat/prompt_test.cc"},
    {"include_reasoning", kChat, Shaped{"boolean", "true or false", read_flag<&ChatRequest::include_reasoning>}, "true", "false: reasoning is generated but left out of the answer", "api/chat/chat_formatter_test.cc"},
    {"metadata", kChat, Hint{"object", is_empty}, "none", "of no effect", "api/chat/chat_request_test.cc"},
    {"safety_identifier", kChat, Hint{"string"}, "none", "of no effect", "api/chat/chat_request_test.cc"},
    {"prompt_cache_key", kChat, Hint{"string"}, "none", "of no effect: prefixes are found by their tokens; `cache_salt` separates them", "api/chat/chat_request_test.cc"},
    {"prompt_cache_retention", kChat, Hint{"string"}, "none", "of no effect: prefixes stay cached until their blocks are needed", "api/chat/chat_request_test.cc"},
    {"store", kChat, Hint{"boolean", is_false}, "false", "of no effect: nothing is stored", "api/chat/chat_request_test.cc"},
    {"service_tier", kChat, Hint{"string", is_usual_tier}, "auto", "of no effect: there is one tier", "api/chat/chat_request_test.cc"},
    {"verbosity", kChat, Hint{"string", is_medium}, "medium", "of no effect: ask for it in the conversation", "api/chat/chat_request_test.cc"},
    {"modalities", kChat, Neutral{"[string]", "[\"text\"]", is_text_alone}, "text", "only text is generated", "api/chat/chat_request_test.cc"},
    {"audio", kChat, Neutral{"object", "null", is_never}, "none", "not supported", "api/chat/chat_request_test.cc"},
    {"prediction", kChat, Hint{"object"}, "none", "of no effect: `speculative` drafts tokens from the prompt", "api/chat/chat_request_test.cc"},
    {"web_search_options", kChat, Hint{"object"}, "none", "of no effect: this server runs no tools", "api/chat/chat_request_test.cc"},
    {"max_tool_calls", kChat, Hint{"integer"}, "none", "of no effect: it limits tools that the server runs, and this server runs none", "api/chat/chat_request_test.cc"},
    {"functions", kChat, Neutral{"[object]", "empty", is_empty}, "none", "replaced by `tools`", "api/chat/chat_request_test.cc"},
    {"function_call", kChat, Neutral{"string", "null", is_never}, "none", "replaced by `tool_choice`", "api/chat/chat_request_test.cc"},
    {"chat_template", kChat, Neutral{"string", "null", is_never}, "none", "set by the operator: --chat-template", "api/chat/chat_request_test.cc"},
    {"echo", kChat, Neutral{"boolean", "false", is_false}, "false", "not supported in a chat", "api/chat/chat_request_test.cc"},
    {"suffix", kChat, Neutral{"string", "null", is_never}, "none", "not supported in a chat", "api/chat/chat_request_test.cc"},
    {"prompt_logprobs", kChat, Neutral{"integer", "null", is_never}, "none", "not supported in a chat: score prompts with /v1/completions", "api/chat/chat_request_test.cc"},
    {"thinking_token_budget", kChat, Neutral{"integer", "null", is_never}, "none", "not supported", "api/chat/chat_request_test.cc"},
    {"mm_processor_kwargs", kChat, Neutral{"object", "empty", is_empty}, "none", "only text is read", "api/chat/chat_request_test.cc"},
};
// clang-format on

Result<Done> settle_logprobs(ChatRequest& request) {
  if (request.top_logprobs.value_or(0) > 0 && !request.returns_logprobs) {
    return invalid("top_logprobs", "top_logprobs needs \"logprobs\": true");
  }
  if (request.returns_logprobs) request.logprobs = request.top_logprobs.value_or(0);
  return Done{};
}

Result<Done> settle_prompt(ChatRequest& request, const Given& given) {
  if (!request.continue_final_message) return Done{};
  if (given("add_generation_prompt") && request.add_generation_prompt) {
    return invalid("continue_final_message",
                   "continue_final_message continues the last message, and add_generation_prompt begins a new one: "
                   "leave one of them out");
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
  const Result<Given> given = read_body(body, kChat, kFields, services, request);
  if (!given) return given.error();
  if (request.messages.empty()) return invalid("messages", "messages is missing");
  if ((*given)("max_tokens") && (*given)("max_completion_tokens")) {
    return invalid("max_completion_tokens",
                   "max_completion_tokens and max_tokens are the same setting: leave one of them out");
  }
  if (Result<Done> settled = settle_logprobs(request); !settled) return settled.error();
  if (Result<Done> settled = settle_prompt(request, *given); !settled) return settled.error();
  if (Result<Done> settled = settle_tools(request, services); !settled) return settled.error();
  if (Result<Done> settled = settle(request, 1, services, *given); !settled) return settled.error();
  return request;
}

Result<Done> read_template_kwargs(const std::string& path, element value, const Services& services,
                                  ChatRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  for (const auto field : object_of(value)) {
    const std::string in = path + "." + echoed(field.key);
    if (services.chat != nullptr && is_own_variable(*services.chat, field.key)) {
      return invalid(in, in + " is reserved and cannot be set by a request");
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
  const Result<bool> flag = boolean_of(path, value);
  if (!flag) return flag.error();
  request.parallel_tool_calls = *flag;
  return Done{};
}

std::span<const Field> chat_fields() { return kFields; }

}  // namespace quire::api::chat
