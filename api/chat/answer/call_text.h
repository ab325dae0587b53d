// Calls of tools as a model writes them, for a grammar: what call_parser.h reads, in the form that its template
// teaches.
// Shape   one call or more, spelled as the published templates spell them; white space only where these have it.
// Thread  any one at a time, as their Rules.
// Source  the templates of Hermes 2 Pro, Qwen 2.5 and 3, Llama 3.1 to 3.3, Mistral 7B v0.3 and Mistral Small 3.2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/chat/answer/call_parser.h"
#include "core/grammar/rules.h"

namespace quire::api::chat {

struct CallText {
  CallForm form = CallForm::kHermes;         // not kNone
  bool marks_arguments = false;              // Mistral: name[ARGS]{...}
  std::uint32_t most = grammar::kUnbounded;  // calls in one answer; at least 1

  struct Tool {
    std::string name;  // letters, digits, _ - .
    grammar::Expr arguments = 0;
  };
  // One call or more of `tools`, at least one, and nothing else.
  grammar::Expr calls(grammar::Rules& rules, std::span<const Tool> tools) const;
  // Any text; a call that is begun must be completed. kGeneric: text, then calls, then the end of the answer.
  grammar::Expr text_with_calls(grammar::Rules& rules, std::span<const Tool> tools) const;
};

}  // namespace quire::api::chat
