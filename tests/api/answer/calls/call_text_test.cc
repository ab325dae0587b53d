#include "api/answer/calls/call_text.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "api/answer/answer_parser.h"
#include "core/grammar/json_schema.h"
#include "tests/core/grammar/matching.h"
#include "tests/support/patient.h"

namespace quire::api::chat::call_text_test {
namespace {

using grammar::Matcher;
using grammar::Rules;

constexpr const char* kGet = R"({"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]},
    "days": {"type": "integer", "minimum": 1, "maximum": 9}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}}, "required": ["city"]})";
const std::vector<CallableTool> kTools = {callable_tool("get", kGet), callable_tool("get_all"), callable_tool("now")};

struct Emitted {
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
};

Emitted read(CallFormat form, const std::string& text) {
  AnswerFormat how;
  how.calls = form;
  how.tools = kTools;
  AnswerParser parser(how);
  Deltas deltas;
  parser.push(text, deltas);
  parser.finish(deltas);
  AnswerParts parts;
  parts.take(deltas);
  Emitted reported;
  reported.content = parts.content;
  for (const auto& call : parts.calls) reported.calls.emplace_back(call.name, call.arguments);
  return reported;
}

// get takes a city and more, the others anything.
std::shared_ptr<const grammar::Grammar> compile(const CallText& form, bool among_text) {
  Rules rules;
  grammar::WriteBudget budget;
  const grammar::RuleId root = rules.declare("root");
  const auto arguments = [&](const char* schema) {
    const Result<grammar::Expr> written = form.arguments(rules, *quire::json::parse(schema, 16), budget);
    EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
    return *written;
  };
  const grammar::Expr city = arguments(kGet);
  const grammar::Expr any = arguments(R"({"type": "object"})");
  const std::vector<CallText::Tool> tools = {{"get", city}, {"get_all", any}, {"now", any}};
  rules.define(root, among_text ? form.text_with_calls(rules, tools) : form.calls(rules, tools));
  auto compiled = grammar::Grammar::compile(rules, grammar::testing::byte_vocabulary(), quire::testing::kPatient);
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().message);
  return *compiled;
}

// A text of the grammar: bytes drawn from what may come next, those that lead somewhere short more often.
std::string random_text(const std::shared_ptr<const grammar::Grammar>& grammar, std::mt19937& random) {
  Matcher matcher(grammar);
  std::string text;
  std::vector<std::uint32_t> mask(grammar->vocabulary().mask_words());
  while (!matcher.only_ends() && (!matcher.complete() || random() % 3 != 0) && text.size() < 800) {
    matcher.allowed(mask);
    std::vector<int> all, closing;
    for (int b = 0; b < 256; ++b) {
      if ((mask[static_cast<std::size_t>(b / 32)] >> (b % 32) & 1) == 0) continue;
      all.push_back(b);
      if (b == '"' || b == '}' || b == ']' || b == '<' || b == '[') closing.push_back(b);
    }
    const std::vector<int>& from = !closing.empty() && random() % 2 == 0 ? closing : all;
    const int next = from[random() % from.size()];
    EXPECT_TRUE(matcher.accept(next));
    text += static_cast<char>(next);
  }
  return matcher.complete() ? text : "";
}

constexpr std::uint32_t kAny = grammar::kUnbounded;

std::vector<CallText> forms() {
  std::vector<CallText> all;
  for (const CallSyntax& one : call_syntaxes()) {
    if (one.format == CallFormat::kNone) continue;
    all.push_back({one.format, kAny, one.format == CallFormat::kGeneric});
    all.push_back({one.format, 1, one.format == CallFormat::kGeneric});
  }
  all.push_back({CallFormat::kDeepSeekV31, 2, true});  // a model whose template shows no tools
  return all;
}

void expect_good_calls(const CallText& form, const Emitted& reported, const std::string& text) {
  EXPECT_LE(reported.calls.size(), form.most) << text;
  for (const auto& [name, arguments] : reported.calls) {
    boost::system::error_code error;
    const boost::json::value parsed = boost::json::parse(arguments, error);
    ASSERT_TRUE(!error && parsed.is_object()) << text << "\n" << arguments;
    if (name != "get") continue;
    const boost::json::object& given = parsed.get_object();
    EXPECT_TRUE(given.at("city") == "Rome" || given.at("city") == "Oslo") << text;
    const boost::json::value* days = given.if_contains("days");
    const boost::json::value* note = given.if_contains("note");
    const boost::json::value* list = given.if_contains("list");
    EXPECT_TRUE(days == nullptr || (days->is_int64() && days->as_int64() < 10)) << text;
    EXPECT_TRUE(note == nullptr || note->is_string() || note->is_null()) << arguments;
    EXPECT_TRUE(list == nullptr || list->is_array()) << arguments;
  }
}

TEST(CallText, IsReadAsCallsAndNothingElse) {
  std::mt19937 random(1);
  for (const CallText& form : forms()) {
    SCOPED_TRACE(syntax_of(form.format).parser);
    const auto grammar = compile(form, false);
    std::size_t most = 0;
    for (int i = 0; i < 30; ++i) {
      const std::string text = random_text(grammar, random);
      if (text.empty()) continue;
      const Emitted reported = read(form.format, text);
      EXPECT_EQ(reported.content, "") << text;
      EXPECT_GE(reported.calls.size(), 1u) << text;
      expect_good_calls(form, reported, text);
      most = std::max(most, reported.calls.size());
    }
    EXPECT_EQ(most > 1, form.most > 1 && form.format != CallFormat::kHarmony);
  }
}

TEST(CallText, AmongTextIsReadWithGoodArgumentsWhereverItBegins) {
  std::mt19937 random(2);
  for (const CallText& form : forms()) {
    SCOPED_TRACE(syntax_of(form.format).parser);
    const auto grammar = compile(form, true);
    for (int i = 0; i < 60; ++i) {
      const std::string text = random_text(grammar, random);
      expect_good_calls(form, read(form.format, text), text);
    }
  }
}

struct Example {
  CallText form;
  const char* calls;
};

const Example kWritten[] = {
    {{CallFormat::kHermes},
     "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {{CallFormat::kLlamaJson}, "{\"name\": \"get\", \"parameters\": {\"city\": \"Rome\"}}"},
    {{CallFormat::kMistral},
     "[TOOL_CALLS] [{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {{CallFormat::kMistralArgs}, "[TOOL_CALLS]get[ARGS]{\"city\": \"Oslo\"}[TOOL_CALLS]now[ARGS]{}"},
    {{CallFormat::kPythonic}, "[get(city=\"Oslo\", days=3), now()]"},
    {{CallFormat::kGlm45},
     "<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>\n<tool_call>now\n</"
     "tool_call>"},
    {{CallFormat::kQwen3Coder},
     "<tool_call>\n<function=get>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
     "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"},
    {{CallFormat::kGemma4},
     "<|tool_call>call:get{city:<|\"|>Rome<|\"|>,days:3}<tool_call|><|tool_call>call:now{}<tool_call|>"},
    {{CallFormat::kKimiK2},
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{\"city\": \"Rome\"}"
     "<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>"},
    {{CallFormat::kSolarOpen},
     "<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get<|tool_call:args|>{\"city\": \"Rome\"}"
     "<|tool_call:end|><|tool_call:begin|>zzzzz00000<|tool_call:name|>now<|tool_call:args|>{}<|tool_call:end|>"},
    {{CallFormat::kHyV3},
     "<tool_calls:opensource>\n<tool_call:opensource>get<tool_sep:opensource>\n<arg_key:opensource>city"
     "</arg_key:opensource>\n<arg_value:opensource>Rome</arg_value:opensource>\n</tool_call:opensource>\n"
     "<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>"},
    {{CallFormat::kHyV3Preview},
     "<tool_calls>\n<tool_call>get<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days"
     "</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n</tool_calls>"},
    {{CallFormat::kHunyuan},
     "<tool_calls><tool_call>get\n```json\n{\"city\": \"Rome\"}\n```</tool_call>\n<tool_call>now\n```json\n{}\n```"
     "</tool_call></tool_calls>"},
    {{CallFormat::kDeepSeekV4},
     "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Rome"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
     "string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
     "</｜DSML｜tool_calls>"},
};

TEST(CallText, IsWhatTemplatesTeach) {
  for (const Example& one : kWritten) {
    EXPECT_TRUE(grammar::testing::matches(compile(one.form, false), one.calls)) << one.calls;
    EXPECT_TRUE(grammar::testing::matches(compile(one.form, true), one.calls)) << one.calls;
    EXPECT_FALSE(grammar::testing::matches(compile(one.form, false), std::string("So: ") + one.calls)) << one.calls;
  }
}

TEST(CallText, LeavesTextWithoutCallsAlone) {
  for (const CallText& form : forms()) {
    if (syntax_of(form.format).style == CallStyle::kOwn) continue;  // their text has marks, too
    const auto grammar = compile(form, true);
    for (const char* text : {"", "Hello!", "a < b, <tool>, [TOOL], 3 > 2", "say {\"name\": 1} please"}) {
      EXPECT_TRUE(grammar::testing::matches(grammar, text)) << text;
    }
  }
}

TEST(CallText, HoldsACallOfAnotherToolBack) {
  for (const Example& one : kWritten) {
    std::string text = one.calls;
    text.replace(text.find("get"), 3, "put");
    EXPECT_FALSE(grammar::testing::matches(compile(one.form, true), text)) << text;
  }
}

}  // namespace
}  // namespace quire::api::chat::call_text_test
