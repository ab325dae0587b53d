// What chat needs to know of the served model: its templates, and the forms that they taught it to answer in.
// Owner   app makes one at start; Services share it. Never changes.
// Thread  any.
// Fails   read_template(): kInvalidArgument naming line and construct.
// Source  how a template expects a call's arguments, as objects or as text, is found out by rendering a call, as
//         llama.cpp's minja does; the forms are known by the marks in the template's text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/chat/answer/answer_parser.h"
#include "api/chat/answer/call_parser.h"
#include "core/base/json.h"
#include "core/base/result.h"
#include "core/chat/template.h"

namespace quire::api::chat {

struct ChatTemplate {
  quire::chat::Template jinja;
  bool object_arguments = true;  // of a call; false: as JSON text
  bool knows_developer = false;  // the role; else its messages are the system's
  bool shows_system = false;     // a first system message; false: the template refuses or drops it
};

Result<ChatTemplate> read_template(std::string_view source, const json::Object& special_tokens);

struct ChatModel {
  std::optional<ChatTemplate> plain;       // none: this model does not chat
  std::optional<ChatTemplate> with_tools;  // where tools are given; none: `plain` has them, too
  json::Object special_tokens;             // bos_token and the like: variables of a template
  CallForm calls = CallForm::kNone;
  bool marks_arguments = false;  // Mistral: name[ARGS]{...}
  ReasoningForm reasoning = ReasoningForm::kNone;
};

// What stands around calls and reasoning in this model's answers. A tokenizer may have these as special tokens.
std::vector<std::string_view> marks_of(const ChatModel& model);

// Found by the marks in a template's text; kGeneric if it shows no form that call_parser.h knows.
CallForm call_form_of(std::string_view source);
bool marks_arguments(std::string_view source);
ReasoningForm reasoning_form_of(std::string_view source);

}  // namespace quire::api::chat
