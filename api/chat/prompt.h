// A conversation as the text that the model continues: the template rendered, and cut where a message goes on.
// Thread  any; pure functions.
// Fails   kInvalidArgument: this model has no template, the template refuses the conversation or passes a limit of rendering,
//         or the message that should go on is not in what it made of it.
// Source  transformers' apply_chat_template, whose text this is, byte for byte.
#pragma once

#include <ctime>
#include <string>

#include "api/chat/chat_model.h"
#include "api/chat/chat_request.h"
#include "core/base/allowance.h"
#include "core/base/result.h"

namespace quire::api::chat {

struct ChatPrompt {
  std::string text;
  bool in_reasoning = false;  // it ends inside the marks of reasoning: the answer begins there
};

// `now` is what a template's strftime_now prints. `model` may be null: no chat.
Result<ChatPrompt> render_prompt(const ChatModel* model, const ChatRequest& request, const std::tm& now,
                                 Allowance& allowance);

// Names that chat_template_kwargs must not have: what the request says elsewhere, and what a template's functions are called.
bool is_own_variable(const ChatModel& model, std::string_view name);

}  // namespace quire::api::chat
