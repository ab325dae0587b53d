#include "api/answer/call_text.h"

#include <initializer_list>
#include <string_view>

#include "core/grammar/free_text.h"

namespace quire::api::chat {
namespace {

using grammar::Expr;
using grammar::kUnbounded;
using grammar::Rules;

// The text before a call's name, between its name and its arguments, and behind the arguments.
struct Around {
  std::string_view before;
  std::string_view between;
  std::string_view behind;
};

Around around(const CallText& text) {
  switch (text.form) {
    case CallFormat::kHermes:
    case CallFormat::kGeneric:
      return {"<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>"};
    case CallFormat::kLlamaJson:
      return {"{\"name\": \"", "\", \"parameters\": ", "}"};
    case CallFormat::kMistral:
      if (text.marks_arguments) return {"[TOOL_CALLS]", "[ARGS]", ""};
      return {"{\"name\": \"", "\", \"arguments\": ", "}"};
    case CallFormat::kNone:
      break;
  }
  return {};
}

std::string_view between_calls(const CallText& text) {
  switch (text.form) {
    case CallFormat::kHermes:
    case CallFormat::kGeneric:
      return "\n";
    case CallFormat::kLlamaJson:
      return "; ";
    case CallFormat::kMistral:
      return text.marks_arguments ? "" : ", ";
    case CallFormat::kNone:
      break;
  }
  return "";
}

Expr in_order(Rules& rules, std::initializer_list<Expr> parts) { return rules.sequence({parts.begin(), parts.size()}); }

}  // namespace

Expr CallText::calls(Rules& rules, std::span<const Tool> tools) const {
  const Around marks = around(*this);
  std::vector<Expr> ways;
  for (const Tool& tool : tools) {
    const Expr begin = rules.bytes(std::string(marks.before) + tool.name + std::string(marks.between));
    ways.push_back(in_order(rules, {begin, tool.arguments, rules.bytes(marks.behind)}));
  }
  const grammar::RuleId call = rules.declare("call");
  rules.define(call, rules.choice(ways));
  const Expr one = rules.use(call);
  const Expr more = in_order(rules, {rules.bytes(between_calls(*this)), one});
  const Expr all = in_order(rules, {one, rules.repeat(more, 0, most == kUnbounded ? kUnbounded : most - 1)});
  if (form != CallFormat::kMistral || marks_arguments) return all;
  const Expr begin =
      in_order(rules, {rules.bytes("[TOOL_CALLS]"), rules.repeat(rules.bytes(" "), 0, 1), rules.bytes("[")});
  return in_order(rules, {begin, all, rules.bytes("]")});
}

Expr CallText::text_with_calls(Rules& rules, std::span<const Tool> tools) const {
  const Expr some = calls(rules, tools);
  const std::string_view mark = marks_of(form).front();
  if (form == CallFormat::kLlamaJson) {
    const Expr ways[] = {some, grammar::text_without(rules, {&mark, 1}, "{")};
    return rules.choice(ways);
  }
  const Expr text = grammar::text_without(rules, {&mark, 1});
  if (form == CallFormat::kGeneric) return in_order(rules, {text, rules.repeat(some, 0, 1)});
  const Expr with_calls = in_order(rules, {text, some});
  return in_order(rules, {rules.repeat(with_calls, 0, most), text});
}

}  // namespace quire::api::chat
