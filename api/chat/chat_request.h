// The body of POST /v1/chat/completions, read and range-checked. Plain data.
// Shape   messages and tools are as templates get them: text parts joined, arguments of calls as objects.
// Owner   the request's ChatForm.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("messages[2].content[0].type"); kNotFound when the model is not served.
// Source  OpenAI's API reference for chat completions; vLLM's ChatCompletionRequest.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/openai/fields/field.h"
#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

struct ToolFunction {
  std::string name;
  std::string parameters;        // a JSON Schema as text; empty: none, any object will do
  std::string parameters_field;  // that it was given in, for errors
  bool strict = false;
};

struct ToolChoice {
  enum class Kind : std::uint8_t { kNone, kAuto, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;                                   // kNamed
  std::optional<std::vector<std::string>> allowed{};  // of the tools in the prompt, those that may be called; none: all
};

struct ChatRequest : openai::GenerationRequest {
  ChatRequest();

  json::Array messages;
  json::Array tools;                    // for the template: as given, but for `strict`; gone once the prompt is made
  std::vector<ToolFunction> functions;  // those that may be called, and there as long as the request
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;

  bool add_generation_prompt = true;
  bool continue_final_message = false;
  json::Object template_kwargs;
  std::optional<json::Array> documents;
  std::string reasoning_effort;  // empty: not said
  bool include_reasoning = true;

  bool tells_logprobs = false;
  std::optional<std::uint32_t> top_logprobs;

  bool offers_tools() const { return !functions.empty() && tool_choice.kind != ToolChoice::Kind::kNone; }
  bool has_strict_tool() const {
    return std::any_of(functions.begin(), functions.end(), [](const ToolFunction& one) { return one.strict; });
  }
  bool forces_call() const {
    return tool_choice.kind == ToolChoice::Kind::kRequired || tool_choice.kind == ToolChoice::Kind::kNamed;
  }
};

// Fields of every endpoint with a conversation.
Result<Done> read_template_kwargs(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_reasoning_effort(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_parallel_tool_calls(const std::string&, simdjson::dom::element, const Services&, ChatRequest&);

Result<ChatRequest> parse_chat_request(const std::string& body, const Services& services);

// The fields that only chat has.
std::span<const openai::Field> chat_fields();

}  // namespace quire::api::chat
