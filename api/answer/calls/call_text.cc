#include "api/answer/calls/call_text.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "api/answer/calls/callable_tool.h"
#include "core/grammar/free_text.h"
#include "core/grammar/json_schema.h"

namespace quire::api::chat {
namespace {

using grammar::Expr;
using grammar::kUnbounded;
using grammar::Rules;

constexpr std::string_view kRecipientMark = ">>>";  // of Functionary
constexpr std::uint32_t kIdLength = 10;             // of CallSyntax::has_id, as Solar Open's template asks
constexpr std::string_view kFinal = "<|channel|>final<|message|>";

Expr in_order(Rules& rules, std::initializer_list<Expr> parts) { return rules.sequence({parts.begin(), parts.size()}); }

// The text of a call around its arguments.
struct Around {
  std::string before;  // the name
  std::string behind_name;
  std::string behind;
};

Around around(const CallSyntax& syntax) {
  const auto text = [](std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    return all;
  };
  switch (syntax.style) {
    case CallStyle::kObject:
      return {text({"{\"", syntax.name_key, "\": \""}), text({"\", \"", syntax.arguments_key, "\": "}), "}"};
    case CallStyle::kNameKey:
      return {"{\"", "\": ", "}"};
    case CallStyle::kJson:
    case CallStyle::kTagged:
    case CallStyle::kLiterals:
      return {std::string(syntax.open), text({syntax.name_end, syntax.fence}),
              text({syntax.fence_close, syntax.close})};
    case CallStyle::kOwn:
      break;
  }
  if (syntax.format == CallFormat::kFunctionary) return {"", "\n", ""};
  return {"<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", ""};
}

// The text around a section, and between the calls in it.
struct Section {
  std::string begin;
  std::string between;
  std::string end;
};

Section section_of(const CallSyntax& syntax) {
  if (syntax.format == CallFormat::kFunctionary) return {"", std::string(kRecipientMark), ""};
  Section section{std::string(syntax.is_bare ? "" : syntax.begin), std::string(syntax.between),
                  std::string(syntax.is_bare ? "" : syntax.end)};
  if (syntax.style == CallStyle::kObject && syntax.format != CallFormat::kMistral) section.begin += syntax.fence;
  if (!syntax.is_list) return section;
  section.begin += "[";
  section.end = "]" + section.end;
  return section;
}

Expr any_id(Rules& rules) {
  grammar::ByteSet characters;
  for (int c = 'a'; c <= 'z'; ++c) characters.set(static_cast<std::size_t>(c));
  for (int c = '0'; c <= '9'; ++c) characters.set(static_cast<std::size_t>(c));
  return rules.repeat(rules.byte_set(characters), kIdLength, kIdLength);
}

// ---- texts of given calls

std::string id_of_call(std::size_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kIdLength - std::min<std::size_t>(digits.size(), kIdLength), '0') + digits;
}

std::string text_of_value(const CallSyntax& syntax, const json::Value& value) {
  const bool is_text = value.is_string();
  if (syntax.style == CallStyle::kTagged) return is_text ? value.get_string() : json::serialize(value);
  if (!syntax.parameter.quote.empty() && is_text) {
    return std::string(syntax.parameter.quote) + value.get_string() + std::string(syntax.parameter.quote);
  }
  const bool is_python = syntax.parameter.quote.empty();
  if (is_python && value.is_bool()) return value.get_bool() ? "True" : "False";
  return is_python && value.is_null() ? "None" : json::serialize(value);
}

std::string text_of_arguments(const CallSyntax& syntax, const std::string& arguments) {
  if (syntax.style != CallStyle::kTagged && syntax.style != CallStyle::kLiterals) return arguments;
  constexpr std::size_t kMaxDepth = 64;
  const Result<json::Value> parsed = json::parse(arguments, kMaxDepth);
  if (!parsed || !parsed->is_object()) return "";
  const ParameterSyntax& parameter = syntax.parameter;
  std::string text;
  for (const json::Member& one : parsed->get_object()) {
    if (!text.empty()) text += parameter.between;
    text += parameter.key_begin;
    text += one.name;
    text += parameter.key_end;
    text += one.value.is_string() ? parameter.string_begin : parameter.other_begin;
    text += text_of_value(syntax, one.value);
    text += parameter.end;
  }
  return text;
}

}  // namespace

// ---- the grammar

Result<Expr> CallText::arguments(Rules& rules, const json::Value& schema, grammar::WriteBudget& budget) const {
  const CallSyntax& syntax = syntax_of(format);
  const ParameterSyntax& parameter = syntax.parameter;
  Result<grammar::RuleId> written = Error{};
  if (syntax.style == CallStyle::kTagged || syntax.style == CallStyle::kLiterals) {
    const bool is_tagged = syntax.style == CallStyle::kTagged;
    const std::string key_end(parameter.key_end);
    const std::string before_string = key_end + std::string(parameter.string_begin) + std::string(parameter.quote);
    const std::string before_other = key_end + std::string(parameter.other_begin);
    const std::string behind_string = std::string(parameter.quote) + std::string(parameter.end);
    const grammar::MemberSpelling spelling{parameter.key_begin,
                                           before_string,
                                           before_other,
                                           behind_string,
                                           parameter.end,
                                           parameter.between,
                                           is_tagged ? trimmed(parameter.end) : parameter.quote,
                                           is_tagged ? trimmed(parameter.key_begin) : ""};
    const CallableTool tool = callable_tool("", json::serialize(schema));
    const auto is_text = [&](std::string_view name) { return tool.types_of(name) == kTextType; };
    written = grammar::spelled_object(rules, schema, spelling, is_text, budget);
  } else {
    written = grammar::json_schema(rules, schema, budget);
  }
  if (!written) return written.error();
  return rules.use(*written);
}

Expr CallText::one_call(Rules& rules, std::span<const Tool> tools) const {
  const CallSyntax& syntax = syntax_of(format);
  const Around text = around(syntax);
  std::vector<Expr> ways;
  for (const Tool& tool : tools) {
    std::vector<Expr> parts = {rules.bytes(text.before)};
    if (syntax.has_id) parts.insert(parts.end(), {any_id(rules), rules.bytes(syntax.name_mark)});
    parts.push_back(rules.bytes(tool.name));
    if (syntax.is_numbered) {
      grammar::ByteSet digits;
      for (const char c : std::string_view("0123456789")) digits.set(static_cast<unsigned char>(c));
      parts.insert(parts.end(), {rules.bytes(":"), rules.repeat(rules.byte_set(digits), 1, 3)});
    }
    parts.insert(parts.end(), {rules.bytes(text.behind_name), tool.arguments, rules.bytes(text.behind)});
    ways.push_back(rules.sequence(parts));
  }
  const grammar::RuleId call = rules.declare("call");
  rules.define(call, rules.choice(ways));
  return rules.use(call);
}

Expr CallText::calls(Rules& rules, std::span<const Tool> tools) const {
  const CallSyntax& syntax = syntax_of(format);
  const Section section = section_of(syntax);
  const std::uint32_t limit = format == CallFormat::kHarmony ? 1 : most;
  const std::uint32_t more = limit == kUnbounded ? kUnbounded : limit - 1;
  const Expr call = one_call(rules, tools);
  const Expr between = rules.bytes(section.between);
  Expr begin = rules.bytes(section.begin);
  if (format == CallFormat::kMistral) {  // older templates have a blank there
    const Expr blank = rules.repeat(rules.bytes(" "), 0, 1);
    begin = in_order(rules, {rules.bytes(syntax.begin), blank, rules.bytes("[")});
  }
  const Expr end = rules.bytes(section.end);
  if (syntax.one_each) {
    const Expr one = in_order(rules, {begin, call, end});
    return in_order(rules, {one, rules.repeat(in_order(rules, {between, one}), 0, more)});
  }
  return in_order(rules, {begin, call, rules.repeat(in_order(rules, {between, call}), 0, more), end});
}

// Text with calls in the formats that have a grammar of their own.
Expr CallText::own_text(Rules& rules, std::span<const Tool> tools) const {
  if (format == CallFormat::kHarmony) {
    const Expr text = grammar::text_without(rules, syntax_of(format).marks);  // any of them would end the message
    const Expr ways[] = {in_order(rules, {rules.bytes(kFinal), text}), calls(rules, tools)};
    return rules.choice(ways);
  }
  const Expr text = in_order(rules, {rules.bytes("all\n"), grammar::text_without(rules, {&kRecipientMark, 1})});
  const Expr more = in_order(rules, {rules.bytes(kRecipientMark), calls(rules, tools)});
  const Expr ways[] = {in_order(rules, {text, rules.repeat(more, 0, 1)}), calls(rules, tools)};
  return rules.choice(ways);
}

Expr CallText::text_with_calls(Rules& rules, std::span<const Tool> tools) const {
  const CallSyntax& syntax = syntax_of(format);
  if (syntax.style == CallStyle::kOwn) return own_text(rules, tools);
  const Expr some = calls(rules, tools);
  std::vector<std::string_view> marks;
  for (const std::string_view mark : {trimmed(syntax.begin), syntax.other_begins[0], syntax.other_begins[1]}) {
    if (!mark.empty()) marks.push_back(mark);
  }
  if (syntax.is_bare) {
    const auto begins = [&](Rules& own) {
      if (syntax.style != CallStyle::kJson) return own.bytes(syntax.is_list ? "[" : "{");
      grammar::ByteSet name;  // a word on a line of its own, then an object
      for (int byte = 0; byte < 128; ++byte)
        name.set(static_cast<std::size_t>(byte), is_name_char(static_cast<char>(byte)));
      const Expr word = own.repeat(own.byte_set(name), 1, kUnbounded);
      grammar::ByteSet blank;
      for (const char c : std::string_view(" \t\n\r")) blank.set(static_cast<unsigned char>(c));
      const Expr gap = own.repeat(own.byte_set(blank), 0, kUnbounded);
      return in_order(own, {word, own.bytes(syntax.name_end), gap, own.bytes("{")});
    };
    const Expr ways[] = {some, grammar::text_without(rules, marks, begins)};
    return rules.choice(ways);
  }
  const Expr text = grammar::text_without(rules, marks);
  if (ends_answer) return in_order(rules, {text, rules.repeat(some, 0, 1)});
  const Expr with_calls = in_order(rules, {text, some});
  return in_order(rules, {rules.repeat(with_calls, 0, most), text});
}

std::string text_of_calls(CallFormat format, std::span<const ToolCall> calls) {
  const CallSyntax& syntax = syntax_of(format);
  const Around text = around(syntax);
  const Section section = section_of(syntax);
  std::string all = syntax.one_each ? "" : section.begin;
  std::size_t number = 0;
  for (const ToolCall& call : calls) {
    if (number > 0) all += section.between;
    if (syntax.one_each) all += section.begin;
    all += text.before;
    if (syntax.has_id) all += id_of_call(number) + std::string(syntax.name_mark);
    all += call.name;
    if (syntax.is_numbered) all += ":" + std::to_string(number);
    all += text.behind_name + text_of_arguments(syntax, call.arguments) + text.behind;
    if (syntax.one_each) all += section.end;
    ++number;
  }
  return all + (syntax.one_each ? "" : section.end);
}

}  // namespace quire::api::chat
