#include "api/responses/responses_request.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/chat/tools.h"
#include "api/fields/grammar_fields.h"
#include "api/fields/neutral.h"
#include "api/fields/read_body.h"
#include "api/fields/settle.h"
#include "api/json/json_values.h"
#include "api/responses/input_items.h"

namespace quire::api::responses {
namespace {

using chat::ChatRequest;
using simdjson::dom::element;

constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
// Limits of metadata, OpenAI's numbers.
constexpr std::size_t kMaxPairs = 16;
constexpr std::size_t kMaxKey = 64;     // bytes
constexpr std::size_t kMaxValue = 512;  // bytes

bool says(element value, std::string_view word) {
  return value.is_string() && value.get_string().value_unsafe() == word;
}

void put_max_output_tokens(GenerationRequest& request, std::int64_t value) {
  request.max_tokens = static_cast<std::uint32_t>(value);
}

Result<Done> read_instructions(const std::string& path, element value, const Services&, ResponsesRequest& request) {
  Result<std::string> text = string_of(path, value, chat::kAnyText);
  if (!text) return text.error();
  request.instructions = std::move(*text);
  return Done{};
}

// Reads a text that the response repeats and that has no other effect, which a warning says.
template <std::string ResponsesRequest::*kMember>
Result<Done> read_name(const std::string& path, element value, const Services& services, ResponsesRequest& request) {
  Result<std::string> text = string_of(path, value, services.limits.max_user_bytes);
  if (!text) return text.error();
  request.*kMember = std::move(*text);
  leave_out(request, path);
  return Done{};
}

// ---- tools

// A tool as the response repeats it: a function has its missing type, parameters and strict added.
std::string as_returned(element tool) {
  std::string text = simdjson::minify(tool);
  element part;
  const bool is_function = tool.is_object() && (!chat::is_given(tool, "type", part) || says(part, "function"));
  if (!is_function || text.size() < 3) return text;
  text.pop_back();
  if (tool["type"].error() != simdjson::SUCCESS) text += R"(,"type":"function")";
  if (tool["parameters"].error() != simdjson::SUCCESS) text += R"(,"parameters":{})";
  if (tool["strict"].error() != simdjson::SUCCESS) text += R"(,"strict":false)";
  return text + '}';
}

Result<Done> read_tools(const std::string& path, element value, const Services& services, ResponsesRequest& request) {
  if (value.is_array()) {
    std::string list;
    for (const element one : array_of(value)) list += (list.empty() ? "" : ",") + as_returned(one);
    request.tools_json = '[' + list + ']';
  }
  return chat::read_flat_tools(path, value, services, request);
}

Result<Done> read_tool_choice(const std::string& path, element value, const Services& services,
                              ResponsesRequest& request) {
  request.tool_choice_json = simdjson::minify(value);
  return chat::read_flat_tool_choice(path, value, services, request);
}

// ---- objects with members of their own

Result<Done> read_text(const std::string& path, element value, const Services& services, ResponsesRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  for (const auto field : object_of(value)) {
    const std::string inner = path + "." + echoed(field.key);
    if (field.value.is_null()) continue;
    if (field.key == "format") {
      if (Result<Done> read = read_flat_format(inner, field.value, services, request); !read) {
        return read.error();
      }
      request.format_json = simdjson::minify(field.value);
    } else if (field.key == "verbosity") {
      if (!field.value.is_string()) return invalid(inner, inner + " must be a string");
      if (!is_medium(field.value)) leave_out(request, inner);
    } else {
      pass_over(request, inner);
    }
  }
  return Done{};
}

constexpr std::string_view kSummaries[] = {"auto", "concise", "detailed"};

Result<Done> read_reasoning(const std::string& path, element value, const Services& services,
                            ResponsesRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  for (const auto field : object_of(value)) {
    const std::string inner = path + "." + echoed(field.key);
    if (field.value.is_null()) continue;
    if (field.key == "effort") {
      if (Result<Done> read = chat::read_reasoning_effort(inner, field.value, services, request); !read) {
        return read.error();
      }
    } else if (field.key == "summary") {
      const auto word = [&](std::string_view one) { return says(field.value, one); };
      const auto* found = std::find_if(std::begin(kSummaries), std::end(kSummaries), word);
      if (found == std::end(kSummaries)) return invalid(inner, inner + " must be auto, concise or detailed");
      request.reasoning_summary = *found;
    } else {
      pass_over(request, inner);
    }
  }
  return Done{};
}

Result<Done> read_metadata(const std::string& path, element value, const Services&, ResponsesRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  const simdjson::dom::object pairs = object_of(value);
  if (pairs.size() > kMaxPairs) {
    return invalid(path, path + " may hold at most " + std::to_string(kMaxPairs) + " pairs");
  }
  for (const auto pair : pairs) {
    const std::string inner = path + "." + echoed(pair.key);
    if (pair.key.size() > kMaxKey) {
      return invalid(path, path + ": keys may have at most " + std::to_string(kMaxKey) + " bytes");
    }
    if (const Result<std::string> text = string_of(inner, pair.value, kMaxValue); !text) return text.error();
  }
  request.metadata_json = simdjson::minify(value);
  return Done{};
}

constexpr std::string_view kLogprobs = "message.output_text.logprobs";
constexpr std::string_view kIncludes[] = {
    kLogprobs,
    "reasoning.encrypted_content",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
};

// Only kLogprobs has an effect: answers of this server never have the data that the other known names ask for. Unknown
// names give a warning.
Result<Done> read_include(const std::string& path, element value, const Services&, ResponsesRequest& request) {
  if (!value.is_array()) return invalid(path, path + " must be a list of strings");
  std::size_t index = 0;
  for (const element one : array_of(value)) {
    const std::string in = chat::at(path, index++);
    const auto word = [&](std::string_view known) { return says(one, known); };
    if (!one.is_string()) return invalid(in, in + " must be a string");
    if (std::none_of(std::begin(kIncludes), std::end(kIncludes), word)) leave_out(request, in);
    request.returns_logprobs = request.returns_logprobs || says(one, kLogprobs);
  }
  return Done{};
}

void put_top_logprobs(GenerationRequest& request, std::int64_t value) {
  static_cast<ResponsesRequest&>(request).top_logprobs = static_cast<std::uint32_t>(value);
}

Result<Done> read_truncation(const std::string& path, element value, const Services&, ResponsesRequest& request) {
  if (says(value, "auto")) {
    request.truncate_prompt_tokens = -1;
  } else if (!says(value, "disabled")) {
    return invalid(path, path + " must be auto or disabled");
  }
  return Done{};
}

template <Result<Done> (*kRead)(const std::string&, element, const Services&, ResponsesRequest&)>
constexpr auto kOwn = read_own<ResponsesRequest, kRead>;
template <Result<Done> (*kRead)(const std::string&, element, const Services&, ChatRequest&)>
constexpr auto kOfChat = read_own<ChatRequest, kRead>;

// clang-format off
constexpr Field kFields[] = {
    {"input", kResponses, Shaped{"string|[InputItem]", "a text, or 1 to 4096 items, see below", kOfChat<read_input>}, "required", "the conversation", "api/responses/input_items_test.cc"},
    {"instructions", kResponses, Shaped{"string", "a text", kOwn<read_instructions>}, "none", "the system message, before `input`", "api/responses/responses_request_test.cc"},
    {"max_output_tokens", kResponses, Integer{1, kInt32, put_max_output_tokens}, "the model's `max_new_tokens`, or the room left in the context", "maximum length of the answer in tokens, reasoning and calls included", "api/responses/responses_request_test.cc"},
    {"tools", kResponses, Shaped{"[FlatTool]", "up to 128 functions, see below", kOwn<read_tools>}, "none", "functions that the model may call", "api/responses/responses_request_test.cc"},
    {"tool_choice", kResponses, Shaped{"string|object", "`none`, `auto`, `required`, or a function", kOwn<read_tool_choice>}, "`auto` with tools", "allow, forbid or force calls, or name the function to call", "api/responses/responses_request_test.cc"},
    {"parallel_tool_calls", kResponses, Shaped{"boolean", "true or false", kOfChat<chat::read_parallel_tool_calls>}, "true", "false: at most one call is returned", "api/responses/responses_formatter_test.cc"},
    {"text", kResponses, Shaped{"TextOptions", "`format`: `{\"type\": \"text\"}`, `json_object`, or `json_schema` with a schema; `verbosity`: of no effect", kOwn<read_text>}, "text", "form of the answer", "api/responses/responses_request_test.cc"},
    {"reasoning", kResponses, Shaped{"ReasoningOptions", "`effort`: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`; `summary`: `auto`, `concise`, `detailed`", kOwn<read_reasoning>}, "the template's", "as `reasoning_effort` of a chat; no summary is made: the reasoning itself is returned", "api/responses/responses_request_test.cc"},
    {"chat_template_kwargs", kResponses, Shaped{"object", "names and values", kOfChat<chat::read_template_kwargs>}, "none", "variables of the chat template, such as `enable_thinking`", "api/responses/responses_request_test.cc"},
    {"truncation", kResponses, Shaped{"string", "`auto`, `disabled`", kOwn<read_truncation>}, "disabled", "auto: a prompt that is too long is cut to its last tokens", "api/responses/responses_formatter_test.cc"},
    {"include", kResponses, Shaped{"[string]", "`message.output_text.logprobs`, and OpenAI's other names", kOwn<read_include>}, "none", "return the log probability of each token of a message's text; other names are of no effect", "wire/test_responses.py"},
    {"metadata", kResponses, Shaped{"{string}", "up to 16 texts of 512 bytes, by names of 64 bytes", kOwn<read_metadata>}, "none", "returned in the response", "api/responses/responses_request_test.cc"},
    {"user", kResponses, Shaped{"string", "up to 256 bytes", kOwn<read_name<&ResponsesRequest::user>>}, "none", "returned in the response", "api/responses/responses_request_test.cc"},
    {"safety_identifier", kResponses, Shaped{"string", "up to 256 bytes", kOwn<read_name<&ResponsesRequest::safety_identifier>>}, "none", "returned in the response", "api/responses/responses_request_test.cc"},
    {"prompt_cache_key", kResponses, Shaped{"string", "up to 256 bytes", kOwn<read_name<&ResponsesRequest::prompt_cache_key>>}, "none", "returned in the response; prefixes are found by their tokens, and `cache_salt` separates them", "api/responses/responses_request_test.cc"},
    {"prompt_cache_retention", kResponses, Hint{"string"}, "none", "of no effect: prefixes stay cached until their blocks are needed", "api/responses/responses_request_test.cc"},
    {"store", kResponses, Hint{"boolean", is_false}, "false", "of no effect: nothing is stored, and the response has `store`: false", "api/responses/responses_request_test.cc"},
    {"service_tier", kResponses, Hint{"string", is_usual_tier}, "auto", "of no effect: there is one tier", "api/responses/responses_request_test.cc"},
    {"background", kResponses, Neutral{"boolean", "false", is_false}, "false", "not supported", "api/responses/responses_request_test.cc"},
    {"top_logprobs", kResponses, Integer{0, 0, put_top_logprobs, &RequestLimits::max_logprobs}, "0", "if `include` asks for log probabilities: return this many likeliest tokens at each position, too", "wire/test_responses.py"},
    {"previous_response_id", kResponses, Neutral{"string", "null", is_never}, "none", "nothing is stored: send the conversation", "api/responses/responses_request_test.cc"},
    {"conversation", kResponses, Neutral{"object", "null", is_never}, "none", "nothing is stored: send the conversation", "api/responses/responses_request_test.cc"},
    {"prompt", kResponses, Neutral{"object", "null", is_never}, "none", "nothing is stored: send `instructions`", "api/responses/responses_request_test.cc"},
    {"max_tool_calls", kResponses, Hint{"integer"}, "none", "of no effect: it limits tools that the server runs, and this server runs none", "api/responses/responses_request_test.cc"},
    {"context_management", kResponses, Hint{"[object]|object", is_empty}, "none", "of no effect: `truncation` cuts prompts that are too long", "api/responses/responses_request_test.cc"},
    {"moderation", kResponses, Hint{"object"}, "none", "of no effect: nothing is moderated", "api/responses/responses_request_test.cc"},
};
// clang-format on

// Inserts `instructions` as a system message in front of the conversation.
void put_instructions(ResponsesRequest& request, const Services& services) {
  if (!request.instructions) return;
  chat::MessageDraft message("system", chat::template_of(services));
  message.set("content", *request.instructions);
  request.messages.insert(request.messages.begin(), message.take());
}

}  // namespace

ResponsesRequest::ResponsesRequest() {
  prompt_field = "input";
  max_tokens_field = "max_output_tokens";
}

Result<ResponsesRequest> parse_responses_request(const std::string& body, const Services& services) {
  ResponsesRequest request;
  const Result<Given> given = read_body(body, kResponses, kFields, services, request);
  if (!given) return given.error();
  if (request.messages.empty()) return invalid("input", "input is missing");
  put_instructions(request, services);
  if (request.returns_logprobs) request.logprobs = request.top_logprobs.value_or(0);
  if (Result<Done> settled = chat::settle_tools(request, services); !settled) return settled.error();
  if (Result<Done> settled = settle(request, 1, services, *given); !settled) return settled.error();
  return request;
}

std::span<const Field> responses_fields() { return kFields; }

}  // namespace quire::api::responses
