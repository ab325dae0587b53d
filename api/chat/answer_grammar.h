// The grammar of an answer in a chat: reasoning, if this model reasons, and then what the request asks for: calls that it forces,
// calls whose arguments hold to their schema, content of a form.
// Shape   null where the answer may be anything, and where the content's own grammar says it all (Generation finds that one).
// Thread  any (a worker); a pure function of its arguments, but for the grammars that Services keep.
// Fails   kInvalidArgument naming the field: response_format and the like, or tools[2].function.parameters.
// Source  OpenAI's API reference: a forced call and a strict one always have arguments of the schema; vLLM and llama.cpp hold
//         every forced call to it, as we do. Behind reasoning, because a model that must not think answers worse.
#pragma once

#include <memory>

#include "api/chat/chat_request.h"
#include "api/services.h"
#include "core/base/result.h"
#include "core/grammar/grammar.h"

namespace quire::api::chat {

Result<std::shared_ptr<const grammar::Grammar>> answer_grammar(const ChatRequest& request, bool in_reasoning,
                                                               const Services& services);

}  // namespace quire::api::chat
