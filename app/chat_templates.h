// The served model's chat templates, found beside its weights or where --chat-template says, and what else chat needs.
// Shape   --chat-template FILE, or chat_template.jinja and additional_chat_templates/tool_use.jinja, or
//         chat_template.json, or `chat_template` of tokenizer_config.json: a template, or a list of named ones of which
//         `default` and `tool_use` are read. The first of these that is there counts alone. No template: chat is
//         answered 400 saying so.
// Owner   the caller.
// Thread  one, while starting.
// Fails   StartError: a file that cannot be read, a template that cannot be parsed (with its line).
// Source  transformers' order of places.
#pragma once

#include <memory>
#include <string>

#include "api/chat/chat_model.h"
#include "app/config.h"
#include "core/model/model_files.h"

namespace quire::app {

std::shared_ptr<const api::chat::ChatModel> load_chat_model(const Config& config, const model::ModelFiles& files);

// The JSON body of GET /tokenizer_info: tokenizer_config.json without file names, tokens as their text, the chat
// template in use and the tokenizer's class.
std::string tokenizer_info(const Config& config, const model::ModelFiles& files);

}  // namespace quire::app
