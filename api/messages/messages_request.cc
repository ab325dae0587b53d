#include "api/messages/messages_request.h"

#include <limits>
#include <string_view>
#include <utility>

#include "api/chat/message_parts.h"
#include "api/chat/tools.h"
#include "api/fields/grammar_fields.h"
#include "api/fields/list_fields.h"
#include "api/fields/neutral.h"
#include "api/fields/read_body.h"
#include "api/fields/settle.h"
#include "api/json/json_values.h"
#include "api/messages/conversation.h"

namespace quire::api::messages {
namespace {

using chat::ChatRequest;
using chat::ToolChoice;
using simdjson::dom::element;

constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
constexpr unsigned kBoth = kMessages | kCountTokens;

bool says(element value, std::string_view word) {
  return value.is_string() && value.get_string().value_unsafe() == word;
}

// ---- tools

Result<bool> read_tool(const std::string& path, json::Object& tool, ChatRequest& request) {
  const json::Value* type = tool.if_contains("type");
  const bool has_type = type != nullptr && !type->is_null();
  if (has_type && !type->is_string()) return invalid(path + ".type", path + ".type must be a string");
  if (has_type && !type->is_text("custom")) return false;
  if (tool.if_contains("input_schema") == nullptr) {
    return invalid(path + ".input_schema", path + ".input_schema is missing");
  }
  if (Result<Done> added = chat::add_function(path, tool, "input_schema", request); !added) return added.error();
  tool = chat::nested_function(tool, "input_schema");
  return true;
}

Result<Done> read_tools(const std::string& path, element value, const Services& services, ChatRequest& request) {
  return chat::read_tool_list(path, value, services, request, read_tool);
}

Result<Done> read_tool_choice(const std::string& path, element value, const Services&, ChatRequest& request) {
  if (Result<Done> object = chat::need_object(path, value); !object) return object.error();
  const Result<std::string> type = chat::text_member(path, value, "type");
  if (!type) return type.error();
  if (*type == "auto") {
    request.tool_choice.kind = ToolChoice::Kind::kAuto;
  } else if (*type == "any") {
    request.tool_choice.kind = ToolChoice::Kind::kRequired;
  } else if (*type == "none") {
    request.tool_choice.kind = ToolChoice::Kind::kNone;
  } else if (*type == "tool") {
    Result<std::string> name = chat::text_member(path, value, "name");
    if (!name) return name.error();
    request.tool_choice = {ToolChoice::Kind::kNamed, std::move(*name)};
  } else {
    return invalid(path + ".type", path + ".type must be auto, any, tool or none");
  }
  element one_at_most;
  if (!chat::is_given(value, "disable_parallel_tool_use", one_at_most)) return Done{};
  const Result<bool> flag = boolean_of(path + ".disable_parallel_tool_use", one_at_most);
  if (!flag) return flag.error();
  request.parallel_tool_calls = !*flag;
  return Done{};
}

// ---- objects with members of their own

// Sets the template variables that switch thinking on or off. `budget_tokens` is checked, but not enforced.
Result<Done> read_thinking(const std::string& path, element value, const Services&, ChatRequest& request) {
  if (Result<Done> object = chat::need_object(path, value); !object) return object.error();
  const Result<std::string> type = chat::text_member(path, value, "type");
  if (!type) return type.error();
  if (*type != "enabled" && *type != "disabled" && *type != "adaptive") {
    return invalid(path + ".type", path + ".type must be enabled, disabled or adaptive");
  }
  if (*type != "adaptive") {
    for (const char* name : {"enable_thinking", "thinking"}) {
      if (!request.template_kwargs.contains(name)) request.template_kwargs[name] = *type == "enabled";
    }
  }
  element budget;
  const std::string in = path + ".budget_tokens";
  if (*type == "enabled" && chat::is_given(value, "budget_tokens", budget)) {
    const Result<std::int64_t> tokens = integer_of(in, budget, 1, kInt32);
    if (!tokens) return tokens.error();
  }
  element display;
  if (!chat::is_given(value, "display", display)) return Done{};
  if (!says(display, "summarized") && !says(display, "omitted")) {
    return invalid(path + ".display", path + ".display must be summarized or omitted");
  }
  request.include_reasoning = says(display, "summarized");
  return Done{};
}

Result<Done> read_output_config(const std::string& path, element value, const Services& services,
                                ChatRequest& request) {
  if (Result<Done> object = chat::need_object(path, value); !object) return object.error();
  for (const auto field : object_of(value)) {
    const std::string inner = path + "." + echoed(field.key);
    if (field.value.is_null()) continue;
    Result<Done> read = Done{};
    if (field.key == "effort" && says(field.value, "max")) {
      request.reasoning_effort = "max";
    } else if (field.key == "effort") {
      read = chat::read_reasoning_effort(inner, field.value, services, request);
    } else if (field.key == "format") {
      read = read_flat_format(inner, field.value, services, request);
    } else {
      pass_over(request, inner);
    }
    if (!read) return read.error();
  }
  return Done{};
}

bool is_any(element) { return true; }

template <Result<Done> (*kRead)(const std::string&, element, const Services&, MessagesRequest&)>
constexpr auto kOwn = read_own<MessagesRequest, kRead>;
template <Result<Done> (*kRead)(const std::string&, element, const Services&, ChatRequest&)>
constexpr auto kOfChat = read_own<ChatRequest, kRead>;

// clang-format off
constexpr Field kFields[] = {
    {"messages", kBoth, Shaped{"[MessageParam]", "1 to 4096 messages, see below", kOwn<read_messages>}, "required", "the conversation", "api/messages/conversation_test.cc"},
    {"system", kBoth, Shaped{"string|[string|SystemBlock]", "a text, or up to 1024 text blocks", kOwn<read_system>}, "none", "the system message, before `messages`", "api/messages/conversation_test.cc"},
    {"stop_sequences", kMessages, Shaped{"[string]", "up to 16 texts, 512 bytes in total", read_stop}, "none", "the answer ends before the first of these", "api/messages/messages_request_test.cc"},
    {"tools", kBoth, Shaped{"[ToolParam]", "up to 128 functions, see below", kOfChat<read_tools>}, "none", "functions that the model may call", "api/messages/messages_request_test.cc"},
    {"tool_choice", kBoth, Shaped{"ToolChoiceParam", "`type`: `auto`, `any`, `tool` with a `name`, `none`; `disable_parallel_tool_use`", kOfChat<read_tool_choice>}, "`auto` with tools", "allow, forbid or force calls, or name the tool; limit them to one", "api/messages/messages_request_test.cc"},
    {"thinking", kBoth, Shaped{"ThinkingParam", "`type`: `enabled`, `disabled`, `adaptive`; `budget_tokens`; `display`: `summarized`, `omitted`", kOfChat<read_thinking>}, "the template's", "sets `enable_thinking` and `thinking` for the template; the budget is not enforced; omitted: thinking is left out of the answer", "api/messages/messages_request_test.cc"},
    {"output_config", kBoth, Shaped{"object", "`effort`: a `reasoning_effort` of a chat, or `max`; `format`: `json_schema` with a schema", kOfChat<read_output_config>}, "none", "reasoning effort and form of the answer", "api/messages/messages_request_test.cc"},
    {"output_format", kBoth, Shaped{"TextFormat", "`json_schema` with a schema", read_flat_format}, "none", "the earlier name of `output_config.format`", "api/messages/messages_request_test.cc"},
    {"chat_template_kwargs", kBoth, Shaped{"object", "names and values", kOfChat<chat::read_template_kwargs>}, "none", "variables of the chat template", "api/messages/messages_request_test.cc"},
    {"metadata", kBoth, Hint{"object", is_empty}, "none", "of no effect", "api/messages/messages_request_test.cc"},
    {"cache_control", kBoth, Hint{"object", is_any}, "none", "of no effect: every prefix may be cached", "api/messages/messages_request_test.cc"},
    {"service_tier", kMessages, Hint{"string", is_usual_tier}, "auto", "of no effect: there is one tier", "api/messages/messages_request_test.cc"},
    {"container", kMessages, Hint{"string|object"}, "none", "of no effect: this server runs no tools", "api/messages/messages_request_test.cc"},
    {"mcp_servers", kBoth, Hint{"[object]", is_empty}, "none", "of no effect: this server runs no tools", "api/messages/messages_request_test.cc"},
    {"context_management", kBoth, Hint{"object", is_empty}, "none", "of no effect: the whole conversation is read", "api/messages/messages_request_test.cc"},
};
// clang-format on

// Reads the body of either path.
Result<Given> read(const std::string& body, Endpoint endpoint, const Services& services, MessagesRequest& request) {
  Result<Given> given = read_body(body, endpoint, kFields, services, request);
  if (!given) return given.error();
  if (request.messages.empty()) return invalid("messages", "messages is missing");
  if (!request.system.empty()) {
    chat::MessageDraft message("system", chat::template_of(services));
    message.set("content", request.system);
    request.messages.insert(request.messages.begin(), message.take());
  }
  request.continue_final_message = request.ends_with_assistant;
  request.add_generation_prompt = !request.ends_with_assistant;
  if (Result<Done> settled = chat::settle_tools(request, services); !settled) return settled.error();
  return given;
}

}  // namespace

Result<MessagesRequest> parse_messages_request(const std::string& body, const Services& services) {
  MessagesRequest request;
  const Result<Given> given = read(body, kMessages, services, request);
  if (!given) return given.error();
  if (!request.max_tokens) return invalid("max_tokens", "max_tokens is missing");
  if (Result<Done> settled = settle(request, 1, services, *given); !settled) return settled.error();
  return request;
}

Result<MessagesRequest> parse_count_request(const std::string& body, const Services& services) {
  MessagesRequest request;
  const Result<Given> given = read(body, kCountTokens, services, request);
  if (!given) return given.error();
  return request;
}

std::span<const Field> messages_fields() { return kFields; }

}  // namespace quire::api::messages
