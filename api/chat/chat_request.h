// The range-checked body of POST /v1/chat/completions. Plain data.
// Shape   messages and tools have the form that chat templates read: text parts joined, arguments of calls as objects,
//         or as JSON text if the served template wants that.
// Owner   the request's ChatFormatter.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("messages[2].content[0].type"); kNotFound if the model is not
//         served.
// Source  OpenAI's API reference for chat completions; vLLM's ChatCompletionRequest.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/fields/field.h"
#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

struct ToolFunction {
  std::string name;
  std::string parameters;        // JSON Schema as text; empty: none, arguments may be any object
  std::string parameters_field;  // path of the field that has the schema, for errors
  bool strict = false;
};

struct ToolChoice {
  enum class Kind : std::uint8_t { kNone, kAuto, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;  // kNamed
  // Names of the tools that may be called, among those in the prompt; none: all.
  std::optional<std::vector<std::string>> allowed{};
};

struct ChatRequest : GenerationRequest {
  ChatRequest();

  json::Array messages;
  json::Array tools;                    // for the template, without `strict`; emptied once the prompt is made
  std::vector<ToolFunction> functions;  // functions that may be called; kept as long as the request
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;

  bool add_generation_prompt = true;
  bool continue_final_message = false;
  json::Object template_kwargs;
  std::optional<json::Array> documents;
  std::string reasoning_effort;  // empty: not given
  bool include_reasoning = true;

  bool returns_logprobs = false;
  std::optional<std::uint32_t> top_logprobs;

  bool offers_tools() const { return !functions.empty() && tool_choice.kind != ToolChoice::Kind::kNone; }
  bool has_strict_tool() const {
    return std::any_of(functions.begin(), functions.end(), [](const ToolFunction& one) { return one.strict; });
  }
  bool forces_call() const {
    return tool_choice.kind == ToolChoice::Kind::kRequired || tool_choice.kind == ToolChoice::Kind::kNamed;
  }
};

// Readers of fields that several endpoints with a conversation have.
Result<Done> read_template_kwargs(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_reasoning_effort(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_parallel_tool_calls(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);

Result<ChatRequest> parse_chat_request(const std::string& body, const Services& services);

// Fields of /v1/chat/completions beyond shared_fields().
std::span<const Field> chat_fields();

}  // namespace quire::api::chat
