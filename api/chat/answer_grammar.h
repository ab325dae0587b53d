// The grammar of a chat answer: free reasoning, if the model reasons, then the part that the request constrains: forced
// calls, calls whose arguments must match their schema, content in a given format.
// Shape   none if nothing is constrained, or if the grammar of the content alone suffices: the Generation makes that
//         one from request.grammar_text.
// Owner   the GrammarOrder borrows `request` and `model`, which outlive it.
// Thread  any (a worker); a pure function of its arguments.
// Fails   kInvalidArgument: a grammar is needed in a beam search. The order's write(): kInvalidArgument naming the
//         field: response_format and the like, or tools[2].function.parameters.
// Source  OpenAI's API reference: arguments of forced and of strict calls always match their schema; vLLM and llama.cpp
//         constrain every forced call, as we do. Reasoning stays free, because a model that must not reason answers
//         worse.
#pragma once

#include <optional>

#include "api/chat/chat_request.h"
#include "api/fields/generation_request.h"
#include "api/services/chat_model.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<std::optional<GrammarOrder>> answer_grammar(const ChatRequest& request, bool in_reasoning,
                                                   const ChatModel& model);

}  // namespace quire::api::chat
