// Tool calls as text, in the format that the model's template teaches: as a grammar, which the model is held to, and as
// the text of given calls. call_parser.h reads both.
// Shape   calls are spelled as in the published templates, with white space only where these have it.
// Thread  one at a time, as the Rules.
// Source  the rows of call_format.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/answer/calls/call_format.h"
#include "api/answer/parts/answer_parts.h"
#include "core/base/json.h"
#include "core/base/result.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/rules/write_budget.h"

namespace quire::api::chat {

struct CallText {
  CallFormat format = CallFormat::kHermes;   // not kNone
  std::uint32_t most = grammar::kUnbounded;  // most calls in one answer; >= 1
  bool ends_answer = false;                  // no text follows calls

  struct Tool {
    std::string name;  // letters, digits, _ - .
    grammar::Expr arguments = 0;
  };
  // The arguments of a tool with this schema, of type object. Fails as json_schema().
  Result<grammar::Expr> arguments(grammar::Rules& rules, const json::Value& schema, grammar::WriteBudget& budget) const;
  // One call or more of `tools`, and nothing else. `tools` is not empty.
  grammar::Expr calls(grammar::Rules& rules, std::span<const Tool> tools) const;
  // Any text with any number of calls; a call that has begun must be completed. Where calls have no mark before them,
  // either calls or text.
  grammar::Expr text_with_calls(grammar::Rules& rules, std::span<const Tool> tools) const;

 private:
  grammar::Expr one_call(grammar::Rules& rules, std::span<const Tool> tools) const;
  grammar::Expr own_text(grammar::Rules& rules, std::span<const Tool> tools) const;
};

// The calls as the model would write them. Arguments are the text of a JSON object.
std::string text_of_calls(CallFormat format, std::span<const ToolCall> calls);

}  // namespace quire::api::chat
