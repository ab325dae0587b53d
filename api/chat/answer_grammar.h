// The grammar of an answer in a chat: reasoning, if this model reasons, and then what the request asks for: calls that it forces,
// calls whose arguments hold to their schema, content of a form.
// Shape   none where the answer may be anything, and where the content's own grammar says it all (Generation finds that one).
// Owner   the order borrows `request`, which outlives it.
// Thread  any (a worker); a pure function of its arguments.
// Fails   the order's write(): kInvalidArgument naming the field: response_format and the like, or tools[2].function.parameters.
// Source  OpenAI's API reference: a forced call and a strict one always have arguments of the schema; vLLM and llama.cpp hold
//         every forced call to it, as we do. Behind reasoning, because a model that must not think answers worse.
#pragma once

#include <optional>

#include "api/chat/chat_model.h"
#include "api/chat/chat_request.h"
#include "api/openai/generation/request.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<std::optional<openai::GrammarOrder>> answer_grammar(const ChatRequest& request, bool in_reasoning,
                                                           const ChatModel& model);

}  // namespace quire::api::chat
