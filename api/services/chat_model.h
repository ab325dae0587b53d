// The chat templates of the served model, and the formats of calls and reasoning that they teach.
// Owner   made by app at start and shared by Services; immutable.
// Thread  any.
// Fails   read_template(): kInvalidArgument naming line and construct.
// Source  the form in which a template expects a call's arguments, objects or text, is found by rendering a call, as
//         llama.cpp's minja does; what a template shows is found by rendering it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/answer/calls/call_parser.h"
#include "core/base/json.h"
#include "core/base/result.h"
#include "core/chat/template.h"

namespace quire::api::chat {

struct ChatTemplate {
  quire::chat::Template jinja;
  bool object_arguments = true;  // a call's arguments are passed as objects; false: as JSON text
  bool knows_developer = false;  // it has the role "developer"; false: such messages are passed as "system"
  bool shows_system = false;     // it renders a system message at the beginning; false: it refuses or drops it
  bool shows_tools = false;      // it renders the descriptions of tools
  bool shows_calls = false;      // it renders the calls of assistant messages
  bool shows_results = false;    // it renders the content of tool messages
};

Result<ChatTemplate> read_template(std::string_view source, const json::Object& special_tokens);

struct ChatModel {
  std::optional<ChatTemplate> plain;       // none: the model has no chat template
  std::optional<ChatTemplate> with_tools;  // for requests with tools; none: `plain` is used for them, too
  json::Object special_tokens;             // variables of a template: bos_token and the like
  CallFormat calls = CallFormat::kNone;
  bool describes_tools = false;  // the server describes tools and the format of calls in the prompt
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  std::optional<Marks> content_marks{};  // around answers
};

// The marks in this model's answers that a tokenizer may have as special tokens.
std::vector<std::string_view> marks_of(const ChatModel& model);

}  // namespace quire::api::chat
