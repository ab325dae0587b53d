#include "api/chat/answer_grammar.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/answer/calls/call_text.h"
#include "api/answer/reasoning_format.h"
#include "core/base/check.h"
#include "core/grammar/free_text.h"
#include "core/grammar/json_schema.h"

namespace quire::api::chat {
namespace {

using grammar::Expr;
using grammar::Rules;
using Kind = ToolChoice::Kind;

// Sets the type of an arguments' schema to "object". A schema whose type allows no object is refused.
Result<Done> settle_type(json::Object& schema, const std::string& field) {
  json::Value& type = schema["type"];
  const auto is_object = [](const json::Value& one) { return one.is_text("object"); };
  const bool among = type.is_array() && std::ranges::any_of(type.get_array(), is_object);
  if (!type.is_null() && !is_object(type) && !among) {
    return invalid(field, field + ".type must be \"object\", because arguments are an object");
  }
  type = "object";
  return Done{};
}

bool must_call(const ChatRequest& request) { return request.offers_tools() && request.forces_call(); }

class Writer {
 public:
  Writer(Rules& rules, grammar::WriteBudget& budget, const ChatRequest& request, const ChatModel& model,
         bool in_reasoning)
      : rules_(rules), budget_(budget), request_(request), model_(model), in_reasoning_(in_reasoning) {}

  Result<Done> write() {
    const grammar::RuleId answer = rules_.declare("answer");
    const Result<Expr> said = content_and_calls();
    if (!said) return said.error();
    rules_.define(answer, behind_reasoning(*said));
    return Done{};
  }

 private:
  Result<Expr> content_and_calls() {
    std::optional<Expr> content;
    if (request_.grammar_text && !must_call(request_)) {
      const Result<grammar::RuleId> written = write_grammar(rules_, *request_.grammar_text, budget_);
      if (!written) return written.error();
      const Expr parts[] = {rules_.bytes(syntax_of(model_.reasoning).content_begin), rules_.use(*written)};
      content = rules_.sequence(parts);
    }
    if (!request_.offers_tools()) {
      CHECK(content.has_value());
      return *content;
    }
    const Result<std::vector<CallText::Tool>> tools = called();
    if (!tools) return tools.error();
    const CallText text = call_text();
    if (request_.forces_call()) return text.calls(rules_, *tools);
    if (!content) return text.text_with_calls(rules_, *tools);
    const Expr ways[] = {*content, text.calls(rules_, *tools)};
    return rules_.choice(ways);
  }

  // A model that can write nothing but calls would repeat them until its context is full: forced calls have a limit.
  std::uint32_t most_calls() const {
    if (!request_.parallel_tool_calls || request_.tool_choice.kind == Kind::kNamed) return 1;
    return request_.forces_call() || model_.describes_tools ? kMaxForcedCalls : grammar::kUnbounded;
  }

  CallText call_text() const { return {model_.calls, most_calls(), model_.describes_tools}; }

  Result<std::vector<CallText::Tool>> called() {
    std::vector<CallText::Tool> tools;
    for (const ToolFunction& function : request_.functions) {
      if (request_.tool_choice.kind == Kind::kNamed && function.name != request_.tool_choice.name) continue;
      Result<Expr> arguments = arguments_of(function);
      if (!arguments) return arguments.error();
      tools.push_back({function.name, *arguments});
    }
    return tools;
  }

  Result<Expr> arguments_of(const ToolFunction& function) {
    const std::string& field = function.parameters_field;
    const auto refuse = [&](const Error& error) { return fault_of(field, error); };
    if (function.parameters.empty() || !(function.strict || request_.forces_call())) {
      if (any_arguments_) return *any_arguments_;
      const Result<Expr> any = call_text().arguments(rules_, json::Object{{"type", "object"}}, budget_);
      if (!any) return refuse(any.error());
      any_arguments_ = *any;
      return *any;
    }
    Result<json::Value> schema = grammar::parse_schema(function.parameters);
    if (!schema) return refuse(schema.error());
    if (Result<Done> typed = settle_type(schema->get_object(), field); !typed) return typed.error();
    Result<Expr> written = call_text().arguments(rules_, *schema, budget_);
    if (!written) return refuse(written.error());
    return written;
  }

  // `said` after reasoning: text up to the end mark, then the line breaks that models write there. Without
  // in_reasoning_ the reasoning is optional, and begins with its mark.
  Expr behind_reasoning(Expr said) {
    const std::optional<Marks> marks = marks_of(model_.reasoning);
    if (!marks) return said;
    const Expr blank = rules_.repeat(rules_.bytes("\n"), 0, kMaxBlank);
    const ReasoningSyntax& syntax = syntax_of(model_.reasoning);
    const bool has_channels = !syntax.turn.empty();  // any mark of a channel would end the reasoning
    const Expr text =
        has_channels ? grammar::text_without(rules_, syntax.special) : grammar::text_without(rules_, {&marks->end, 1});
    const Expr rest[] = {text, rules_.bytes(marks->end), rules_.bytes(syntax.turn), blank};
    if (in_reasoning_) {
      const Expr parts[] = {rules_.sequence(rest), said};
      return rules_.sequence(parts);
    }
    const Expr all[] = {rules_.bytes(marks->begin), rules_.sequence(rest)};
    const Expr parts[] = {rules_.repeat(rules_.sequence(all), 0, 1), said};
    return rules_.sequence(parts);
  }

  static constexpr std::uint32_t kMaxBlank = 4;
  static constexpr std::uint32_t kMaxForcedCalls = 16;  // in one answer; docs/api.md

  Rules& rules_;
  grammar::WriteBudget& budget_;
  const ChatRequest& request_;
  const ChatModel& model_;
  bool in_reasoning_;
  std::optional<Expr> any_arguments_;
};

// A name made of everything that the grammar depends on: equal names mean equal grammars.
std::string name_of(const ChatRequest& request, const ChatModel& model, bool in_reasoning) {
  std::string name = "chat";
  const auto add = [&name](std::string_view part) {
    name += ' ' + std::to_string(part.size()) + ' ' + std::string(part);
  };
  const auto add_number = [&add](auto number) { add(std::to_string(static_cast<int>(number))); };
  add_number(model.reasoning);
  add_number(in_reasoning);
  if (request.grammar_text) {
    add_number(request.grammar_text->kind);
    add(request.grammar_text->text);
  }
  if (!request.offers_tools()) return name;
  add_number(model.calls);
  add_number(model.describes_tools);
  add_number(request.parallel_tool_calls);
  add_number(request.tool_choice.kind);
  add(request.tool_choice.name);
  for (const ToolFunction& function : request.functions) {
    add(function.name);
    add(function.parameters);
    add_number(function.strict);
  }
  return name;
}

}  // namespace

Result<std::optional<GrammarOrder>> answer_grammar(const ChatRequest& request, bool in_reasoning,
                                                   const ChatModel& model) {
  // Calls that only the prompt describes are always constrained: the model's template does not know tools. A beam
  // search has no grammar.
  const bool untaught = model.describes_tools && !request.use_beam_search;
  const bool holds_calls =
      must_call(request) ||
      (request.offers_tools() && (request.has_strict_tool() || request.tool_choice.allowed || untaught));
  const bool holds_content = request.grammar_text.has_value();
  const bool more_than_content = request.offers_tools() || model.reasoning != ReasoningFormat::kNone;
  if (!holds_calls && !(holds_content && more_than_content)) return {std::nullopt};
  const std::string field = holds_content ? request.grammar_text->field : request.grammar_field;
  if (request.use_beam_search)
    return invalid(field, field + " cannot be combined with use_beam_search: leave one of them out");
  const auto write = [&request, &model, in_reasoning](Rules& rules, grammar::WriteBudget& budget) {
    return Writer(rules, budget, request, model, in_reasoning).write();
  };
  return {GrammarOrder{.name = name_of(request, model, in_reasoning), .field = field, .write = write, .marked = true}};
}

}  // namespace quire::api::chat
