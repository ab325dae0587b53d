#include "api/answer/call_text.h"

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

const std::vector<std::string> kTools = {"get", "get_all", "now"};

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

// get takes a city, the others anything.
std::shared_ptr<const grammar::Grammar> compile(const CallText& form, bool among_text) {
  Rules rules;
  const grammar::RuleId root = rules.declare("root");
  const auto schema =
      quire::json::parse(R"({"type":"object","properties":{"city":{"enum":["Rome","Oslo"]}},"required":["city"]})", 8);
  const grammar::Expr city = rules.use(*grammar::json_schema(rules, *schema));
  const grammar::Expr any = rules.use(grammar::json_object(rules));
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
  while (!matcher.only_ends() && (!matcher.complete() || random() % 3 != 0) && text.size() < 2000) {
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
const CallText kForms[] = {{CallFormat::kHermes, false, kAny},    {CallFormat::kHermes, false, 1},
                           {CallFormat::kLlamaJson, false, kAny}, {CallFormat::kLlamaJson, false, 1},
                           {CallFormat::kMistral, false, kAny},   {CallFormat::kMistral, false, 1},
                           {CallFormat::kMistral, true, kAny},    {CallFormat::kMistral, true, 1},
                           {CallFormat::kGeneric, false, kAny},   {CallFormat::kGeneric, false, 2}};

void expect_good_calls(const CallText& form, const Emitted& reported, const std::string& text) {
  EXPECT_LE(reported.calls.size(), form.most) << text;
  for (const auto& [name, arguments] : reported.calls) {
    const boost::json::value parsed = boost::json::parse(arguments);
    EXPECT_TRUE(parsed.is_object()) << text;
    if (name == "get") {
      EXPECT_TRUE(parsed.at("city") == "Rome" || parsed.at("city") == "Oslo") << text;
    }
  }
}

TEST(CallText, IsReadAsCallsAndNothingElse) {
  std::mt19937 random(1);
  for (const CallText& form : kForms) {
    const auto grammar = compile(form, false);
    std::size_t most = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string text = random_text(grammar, random);
      if (text.empty()) continue;
      const Emitted reported = read(form.form, text);
      EXPECT_EQ(reported.content, "") << text;
      EXPECT_GE(reported.calls.size(), 1u) << text;
      expect_good_calls(form, reported, text);
      most = std::max(most, reported.calls.size());
    }
    EXPECT_EQ(most > 1, form.most > 1);
  }
}

TEST(CallText, AmongTextIsReadWithGoodArgumentsWhereverItBegins) {
  std::mt19937 random(2);
  for (const CallText& form : kForms) {
    const auto grammar = compile(form, true);
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(grammar, random);
      expect_good_calls(form, read(form.form, text), text);
    }
  }
}

struct Example {
  CallText form;
  const char* calls;
};

const Example kWritten[] = {
    {kForms[0],
     "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {kForms[2], "{\"name\": \"get\", \"parameters\": {\"city\": \"Rome\"}}"},
    {kForms[4],
     "[TOOL_CALLS] [{\"name\": \"get\", \"arguments\": {\"city\": \"Rome\"}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {kForms[6], "[TOOL_CALLS]get[ARGS]{\"city\": \"Oslo\"}[TOOL_CALLS]now[ARGS]{}"},
};

TEST(CallText, IsWhatTemplatesTeach) {
  for (const Example& one : kWritten) {
    EXPECT_TRUE(grammar::testing::matches(compile(one.form, false), one.calls)) << one.calls;
    EXPECT_TRUE(grammar::testing::matches(compile(one.form, true), one.calls)) << one.calls;
    EXPECT_FALSE(grammar::testing::matches(compile(one.form, false), std::string("So: ") + one.calls)) << one.calls;
  }
}

TEST(CallText, LeavesTextWithoutCallsAlone) {
  for (const CallText& form : kForms) {
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
