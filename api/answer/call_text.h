// Grammar of tool calls: the text that call_parser.h reads, in the format that the model's template teaches.
// Shape   calls are spelled as in the published templates, with white space only where these have it.
// Thread  one at a time, as the Rules.
// Source  the templates of Hermes 2 Pro, Qwen 2.5 and 3, Llama 3.1 to 3.3, Mistral 7B v0.3 and Mistral Small 3.2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/answer/call_parser.h"
#include "core/grammar/rules/rules.h"

namespace quire::api::chat {

struct CallText {
  CallFormat form = CallFormat::kHermes;     // not kNone
  bool marks_arguments = false;              // Mistral: name[ARGS]{...}
  std::uint32_t most = grammar::kUnbounded;  // most calls in one answer; >= 1

  struct Tool {
    std::string name;  // letters, digits, _ - .
    grammar::Expr arguments = 0;
  };
  // One call or more of `tools`, and nothing else. `tools` is not empty.
  grammar::Expr calls(grammar::Rules& rules, std::span<const Tool> tools) const;
  // Any text with any number of calls; a call that has begun must be completed. kLlamaJson: either calls or text.
  // kGeneric: text, then calls, then the end of the answer.
  grammar::Expr text_with_calls(grammar::Rules& rules, std::span<const Tool> tools) const;
};

}  // namespace quire::api::chat
