// A conversation as the text that the model continues: the rendered chat template, cut at the end of the last message
// if the request continues that message.
// Thread  any; pure functions.
// Fails   kInvalidArgument: this model has no template, the template refuses the conversation or exceeds a limit of
//         rendering, or the message to continue is missing in the rendered text. kTimeout: the allowance has ended.
// Source  transformers' apply_chat_template: the text is the same, byte for byte, unless the template refuses the
//         conversation or has no format of calls (plain_conversation.h).
#pragma once

#include <ctime>
#include <string>

#include "api/chat/chat_request.h"
#include "api/services/chat_model.h"
#include "core/base/allowance.h"
#include "core/base/result.h"

namespace quire::api::chat {

struct ChatPrompt {
  std::string text;
  bool in_reasoning = false;  // the text ends inside reasoning, so that the answer begins there
};

// `now` is the time that a template's strftime_now prints. Fails if `model` is null: the served model does not chat.
Result<ChatPrompt> render_prompt(const ChatModel* model, const ChatRequest& request, const std::tm& now,
                                 Allowance& allowance);

// True for names that chat_template_kwargs must not set: variables that other fields set, special tokens, and the
// functions of templates.
bool is_own_variable(const ChatModel& model, std::string_view name);

}  // namespace quire::api::chat
