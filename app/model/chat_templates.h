// The chat templates of the served model, and the other data that chat needs: special tokens, tool-call and reasoning
// formats.
// Shape   the first of these sources that exists is used alone: --chat-template FILE; chat_template.jinja, with
//         additional_chat_templates/tool_use.jinja; chat_template.json; `chat_template` of tokenizer_config.json. The
//         JSON sources have one template, or a list of named ones, of which `default` and `tool_use` are read. Without
//         a template, chat requests get status 400.
// Owner   the caller.
// Thread  one, while starting.
// Fails   StartError: a file that cannot be read, a template that cannot be parsed (with its line).
// Source  the order in which Hugging Face transformers looks for templates.
#pragma once

#include <memory>
#include <string>

#include "api/services/chat_model.h"
#include "app/config/config.h"
#include "core/model/source/model_files.h"

namespace quire::app {

std::shared_ptr<const api::chat::ChatModel> load_chat_model(const Config& config, const model::ModelFiles& files);

struct ChatSummary {
  bool has_template = false;
  bool has_tool_template = false;  // one for requests with tools
  std::string tool_calls;          // value of --tool-call-parser; empty: calls are not read
  std::string reasoning;           // value of --reasoning-parser; empty: likewise
};
ChatSummary summary_of(const api::chat::ChatModel& chat);

// "chat: one template, tool calls as hermes, reasoning as think", for the operator.
std::string chat_line(const api::chat::ChatModel& chat);

// JSON body of GET /tokenizer_info: tokenizer_config.json without file names, with tokens as their text, the chat
// template in use and the tokenizer's class.
std::string tokenizer_info(const Config& config, const model::ModelFiles& files);

}  // namespace quire::app
