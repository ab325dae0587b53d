#include "api/answer/answer_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "api/generation/visible_text.h"
#include "tests/api/answer/answer_reading.h"

namespace quire::api::chat::answer_parser_test {
namespace {

const std::vector<CallableTool> kTools = {callable_tool("get_weather"), callable_tool("now")};

using test::parts_of;
using test::shown;

AnswerFormat format_of(CallFormat calls, ReasoningFormat reasoning = ReasoningFormat::kNone) {
  return test::format_of(kTools, calls, reasoning);
}
std::string said(const AnswerFormat& form, const std::string& text) { return shown(parts_of(form, {text})); }

// ---- Hermes

TEST(HermesCalls, AreTakenOutOfTheText) {
  const AnswerFormat form = format_of(CallFormat::kHermes);
  EXPECT_EQ(said(form, "hello\n"), "[]hello\n");
  EXPECT_EQ(said(form, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"), "[]|now{}");
  EXPECT_EQ(said(form,
                 "Let me see.\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
                 "\"Z}\\\"\"}}\n</tool_call>\n"),
            "[]Let me see.|get_weather{\"city\": \"Z}\\\"\"}");
  EXPECT_EQ(
      said(form,
           "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n<tool_call>{\"arguments\":{\"a\":[1]},\"name\":"
           "\"get_weather\"}</tool_call> done"),
      "[]done|now{}|get_weather{\"a\":[1]}");
}

TEST(HermesCalls, TakeParametersTextsAndNothingForArguments) {
  const AnswerFormat form = format_of(CallFormat::kHermes);
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"parameters\":{\"a\":1}}</tool_call>"), "[]|now{\"a\":1}");
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>"), "[]|now{\"a\":1}");
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\"}</tool_call>"), "[]|now{}");
  EXPECT_EQ(said(form, "<tool_call>{\"id\":7,\"type\":\"function\",\"name\":\"now\",\"arguments\":null}</tool_call>"),
            "[]|now{}");
}

TEST(HermesCalls, ThatAreMalformedStayContent) {
  const AnswerFormat form = format_of(CallFormat::kHermes);
  for (const std::string text :
       {"<tool_call>now()</tool_call>", "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": 7}</tool_call>", "<tool_call>{\"arguments\": {}}</tool_call>", "<tool_call>{name: now}",
        "<tool_call>{\"name\": \"now\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"now\", \"arguments\": \"text\"}</tool_call>",
        "<tool_call>{\"name\": \"now\", \"why\": 1, \"arguments\": {}}", "<tool_call>", "<tool_ca",
        "a < b <tool_calls>", "<tool_call>{\"name\": \"now\", \"name\": \"now\"}", "<tool_call> \n {\"name\": \"no"}) {
    EXPECT_EQ(said(form, text), "[]" + text);
  }
  EXPECT_EQ(said(form, "<tool_call>oops<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"),
            "[]<tool_call>oops|now{}");
}

TEST(HermesCalls, AreCertainOnceTheirArgumentsBegin) {
  const AnswerFormat form = format_of(CallFormat::kHermes);
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\": \"cut"), "[]|now{\"a\": \"cut");
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"arguments\":{a: 1}}\n</tool_call> bye"), "[]bye|now{a: 1}}");
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":1}\n</tool_call>bye"), "[]bye|now{\"a\":1}");
  EXPECT_EQ(said(form, "<tool_call>{\"name\":\"now\",\"arguments\":{}}"), "[]|now{}");
}

// ---- Llama

TEST(LlamaCalls, AreTheWholeAnswerOrStandBehindTheTag) {
  const AnswerFormat form = format_of(CallFormat::kLlamaJson);
  EXPECT_EQ(said(form, "{\"name\": \"now\", \"parameters\": {}}"), "[]|now{}");
  EXPECT_EQ(said(form,
                 "\n{\"type\": \"function\", \"name\": \"now\", \"parameters\": {\"a\": 1}}; "
                 "{\"name\":\"get_weather\",\"parameters\":{}}"),
            "[]|now{\"a\": 1}|get_weather{}");
  EXPECT_EQ(said(form, "Sure. <|python_tag|>{\"name\":\"now\",\"parameters\":{}}"), "[]Sure.|now{}");
}

TEST(LlamaCalls, LeaveOtherTextAlone) {
  const AnswerFormat form = format_of(CallFormat::kLlamaJson);
  for (const std::string text : {"Hello {\"name\": \"now\", \"parameters\": {}}", "{\"name\": \"Ann\", \"age\": 3}",
                                 "{\"answer\": 42}", "  \n", "", "<|python_tag|>print(1)", "{", "<|python", "[1]"}) {
    EXPECT_EQ(said(form, text), "[]" + text);
  }
  EXPECT_EQ(said(form, "{\"name\":\"now\",\"parameters\":{}} and so on"), "[]and so on|now{}");
  EXPECT_EQ(said(form, "{\"name\":\"now\",\"parameters\":{x"), "[]|now{x");
}

// ---- Mistral

TEST(MistralCalls, AreAListOrNamesWithArguments) {
  const AnswerFormat form = format_of(CallFormat::kMistral);
  EXPECT_EQ(said(form,
                 "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"get_weather\", \"arguments\": "
                 "{\"a\": []}, \"id\": \"x\"}]"),
            "[]|now{}|get_weather{\"a\": []}");
  EXPECT_EQ(said(form, "Hm. [TOOL_CALLS]now[ARGS]{\"a\": 1}[TOOL_CALLS]get_weather[CALL_ID]abc[ARGS]{}"),
            "[]Hm.|now{\"a\": 1}|get_weather{}");
  EXPECT_EQ(said(form, "[TOOL_CALLS] now{\"a\": 1}"), "[]|now{\"a\": 1}");
  EXPECT_EQ(said(form, "[TOOL_CALLS]{\"name\": \"now\", \"arguments\": {}} so"), "[]so|now{}");
}

TEST(MistralCalls, ThatAreMalformedStayContent) {
  const AnswerFormat form = format_of(CallFormat::kMistral);
  for (const std::string text :
       {"[TOOL_CALLS][]", "[TOOL_CALLS]unknown[ARGS]{}", "[TOOL_CALLS]now[WHAT]{}", "[TOOL_CALLS][1]", "[TOOL_CALLS]",
        "[TOOL_CALLS][{\"name\": \"unknown\"}]", "[TOOL", "[1, 2]", "[TOOL_CALLS]now[ARGS]"}) {
    EXPECT_EQ(said(form, text), "[]" + text);
  }
  EXPECT_EQ(said(form, "[TOOL_CALLS]" + std::string(257, 'a') + "{}"), "[][TOOL_CALLS]" + std::string(257, 'a') + "{}");
  EXPECT_EQ(said(form, "[TOOL_CALLS]now[ARGS]{\"a\": x}"), "[]|now{\"a\": x}");
}

// ---- reasoning

TEST(Reasoning, IsTakenOutWhereTheAnswerBeginsWithIt) {
  const AnswerFormat form = format_of(CallFormat::kNone, ReasoningFormat::kThinkTags);
  EXPECT_EQ(said(form, "<think>\nhm, so\n</think>\n\nYes.\n"), "[hm, so]Yes.\n");
  EXPECT_EQ(said(form, "\n<think></think>Yes"), "[]Yes");
  EXPECT_EQ(said(form, "No <think>x</think>"), "[]No <think>x</think>");
  EXPECT_EQ(said(form, "<think>cut off "), "[cut off ]");
  EXPECT_EQ(said(form, " <thi"), "[] <thi");
  EXPECT_EQ(said(form, "<think>a </thinker> b</think>c"), "[a </thinker> b]c");
  EXPECT_EQ(said(format_of(CallFormat::kNone, ReasoningFormat::kMistral), "[THINK]hm[/THINK]Yes"), "[hm]Yes");
}

TEST(Reasoning, GoesOnWhereThePromptOpenedIt) {
  AnswerFormat form = format_of(CallFormat::kHermes, ReasoningFormat::kThinkTags);
  form.in_reasoning = true;
  EXPECT_EQ(said(form, "\nhm <tool_call>\n</think>\n\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"),
            "[hm <tool_call>]|now{}");
  EXPECT_EQ(said(form, "never ends"), "[never ends]");
}

TEST(Reasoning, IsNotReturnedWhereItIsNotWanted) {
  AnswerFormat form = format_of(CallFormat::kNone, ReasoningFormat::kThinkTags);
  form.include_reasoning = false;
  EXPECT_EQ(said(form, "<think>hm</think>Yes"), "[]Yes");
}

TEST(Calls, BeyondTheLimitAreNotReturned) {
  AnswerFormat form = format_of(CallFormat::kLlamaJson);
  form.max_calls = 1;
  EXPECT_EQ(said(form, "{\"name\":\"now\",\"parameters\":{}};{\"name\":\"get_weather\",\"parameters\":{\"a\":1}}"),
            "[]|now{}");
}

TEST(Calls, ThatAreNoneGiveBackTheWhiteSpaceBeforeTheirMark) {
  const std::pair<CallFormat, std::string> marks[] = {{CallFormat::kHermes, "<tool_call>"},
                                                      {CallFormat::kGeneric, "<tool_call>"},
                                                      {CallFormat::kLlamaJson, "<|python_tag|>"},
                                                      {CallFormat::kMistral, "[TOOL_CALLS]"},
                                                      {CallFormat::kMistralArgs, "[TOOL_CALLS]"},
                                                      {CallFormat::kDeepSeekV3, "<｜tool▁calls▁begin｜>"},
                                                      {CallFormat::kKimiK2, "<|tool_calls_section_begin|>"},
                                                      {CallFormat::kGlm45, "<tool_call>"},
                                                      {CallFormat::kQwen3Coder, "<tool_call>"},
                                                      {CallFormat::kGemma4, "<|tool_call>"},
                                                      {CallFormat::kLfm2, "<|tool_call_start|>"}};
  for (const auto& [form, mark] : marks) {
    for (const char* before : {"Use ", "Use\n", "Use \t\r\n\n", "\n", " ", "a  b ", ""}) {
      for (const char* behind : {"", " tags", "\n", " {\"name\": \"nobody\"}", "\n\n[1]", "{]"}) {
        const std::string text = before + mark + behind;
        EXPECT_EQ(said(format_of(form), text), "[]" + text);
        EXPECT_EQ(said(format_of(form), text + "\n " + text), "[]" + text + "\n " + text);
      }
    }
    const std::string long_space = "x" + std::string(200, '\n') + mark + " so";
    EXPECT_EQ(said(format_of(form), long_space), "[]" + long_space);
  }
}

TEST(Calls, ThatAreForcedLeaveNoMarksWhereverTheAnswerIsCut) {
  const std::pair<CallFormat, std::string> answers[] = {
      {CallFormat::kHermes,
       "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", "
       "\"arguments\": {\"a\": 1}}\n</tool_call>"},
      {CallFormat::kGeneric, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"},
      {CallFormat::kLlamaJson,
       "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"now\", \"parameters\": {\"a\": 1}}"},
      {CallFormat::kMistral,
       "[TOOL_CALLS] [{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"now\", \"arguments\": {}}]"},
      {CallFormat::kMistral, "[TOOL_CALLS]now[ARGS]{\"a\": 1}[TOOL_CALLS]now[ARGS]{}"}};
  for (const auto& [calls, text] : answers) {
    AnswerFormat form = format_of(calls, ReasoningFormat::kThinkTags);
    form.only_calls = true;
    for (const std::string thought : {"", "<think>so</think>\n"}) {
      for (std::size_t cut = 0; cut <= thought.size() + text.size(); ++cut) {
        const std::string so_far = (thought + text).substr(0, cut);
        const AnswerParts whole = parts_of(form, {so_far});
        EXPECT_EQ(whole.content, "") << so_far;
        std::vector<std::string> bytes;
        for (const char c : so_far) bytes.emplace_back(1, c);
        EXPECT_EQ(shown(parts_of(form, bytes)), shown(whole)) << so_far;
      }
      EXPECT_GE(parts_of(form, {thought + text}).calls.size(), 1u);
    }
  }
}

TEST(Calls, AreTextWhereTheFormIsNone) {
  EXPECT_EQ(said(format_of(CallFormat::kNone), "<tool_call>{}</tool_call>[TOOL_CALLS]"),
            "[]<tool_call>{}</tool_call>[TOOL_CALLS]");
}

TEST(MarkerScanner, StreamsEndlessWhiteSpace) {
  AnswerParser parser(format_of(CallFormat::kHermes));
  Deltas deltas;
  parser.push("a" + std::string(65, '\n'), deltas);
  ASSERT_EQ(deltas.all().size(), 1u);
  EXPECT_EQ(deltas.all()[0].text, "a\n");  // 64 are held back
}

TEST(Reasoning, IsWhatStopStringsPassOverAndTheRestIsContent) {  // two readers of the same marks
  const char* const pieces[] = {"<think>", "</think>", "<thi", "</thi", " ", "\n", "a", "<", ">"};
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    AnswerFormat form = format_of(CallFormat::kNone, ReasoningFormat::kThinkTags);
    form.in_reasoning = random() % 2 == 0;
    std::string text;
    for (std::uint32_t n = random() % 8; n > 0; --n) text += pieces[random() % std::size(pieces)];
    VisibleText visible(HiddenText{"<think>", "</think>", form.in_reasoning});
    std::string seen = visible.push(text).visible;
    seen += visible.finish();
    EXPECT_EQ(parts_of(form, {text}).content, seen) << form.in_reasoning << " " << text;
  }
}

// ---- what a stream says adds up

const char* const kAnswers[] = {
    "plain text, nothing else\n",
    "<think>\nlet me see\n</think>\n\nYes.",
    "<think>first</think>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Z\xC3\xBCrich "
    "\\\"x\\\" </tool_call>\"}}\n</tool_call>\n"
    "<tool_call>\n{\"arguments\": {\"a\": [1, {\"b\": null}]}, \"name\": \"now\"}\n</tool_call> and more",
    "x <tool_call>{\"name\": \"nobody\"} y <tool_call>{\"name\":\"now\",\"arguments\":{bad}}</tool_call> z",
    "a < b <tool <tool_call <tool_call>\n\n<think>",
    "{\"name\": \"now\", \"parameters\": {\"a\": \"}\"}} ; {\"name\": \"get_weather\", \"parameters\": {}} done",
    "{\"name\": \"Ann\"} <|python_tag|> {\"type\": \"function\", \"name\": \"now\", \"parameters\": \"{\\\"q\\\": "
    "1}\"}",
    "<|python_tag|>import os <|python_tag|>{\"name\":\"now\",\"parameters\":{\"a\":tru",
    "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {\"a\": 1}}, {\"name\": \"get_weather\", \"arguments\": {}}] tail",
    "[THINK]hm[/THINK]ok [TOOL_CALLS]now[ARGS]{\"a\": {}}[TOOL_CALLS]get_weather[CALL_ID]x[ARGS]{\"b\": 2} "
    "[TOOL_CALLS]zzz{}",
    "[TOOL_CALLS] [ {\"name\":\"now\"} , 7 ]",
    "  \n\n <think> \n a \n\n b \n </think> \n\n c \n ",
};

class AnySplit : public ::testing::TestWithParam<std::tuple<CallFormat, ReasoningFormat, bool>> {
 protected:
  AnswerFormat form() const {
    AnswerFormat form = format_of(std::get<0>(GetParam()), std::get<1>(GetParam()));
    form.in_reasoning = std::get<2>(GetParam());
    return form;
  }
};

TEST_P(AnySplit, OfTheTextIntoTwoAddsUpToTheWholeAnswer) {
  for (const std::string text : kAnswers) {
    const std::string whole = said(form(), text);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(shown(parts_of(form(), {text.substr(0, cut), text.substr(cut)})), whole) << text << " cut at " << cut;
    }
  }
}

TEST_P(AnySplit, OfRandomTextsIntoManyAddsUpToTheWholeAnswer) {
  constexpr const char* kBits[] = {"<tool_call>",
                                   "</tool_call>",
                                   "<think>",
                                   "</think>",
                                   "[TOOL_CALLS]",
                                   "[ARGS]",
                                   "<|python_tag|>",
                                   "{\"name\": \"now\"",
                                   ", \"arguments\": {",
                                   "}",
                                   "{",
                                   "\"a\": \"b\"",
                                   ";",
                                   ",",
                                   " ",
                                   "\n",
                                   "x",
                                   "[",
                                   "]",
                                   "\"",
                                   "\\",
                                   "now",
                                   "<",
                                   "[THINK]",
                                   "[/THINK]"};
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (auto n = random() % 16; n > 0; --n) text += kBits[random() % std::size(kBits)];
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, 1 + random() % 5));
      at += pieces.back().size();
    }
    ASSERT_EQ(shown(parts_of(form(), pieces)), said(form(), text)) << "seed " << seed << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, AnySplit,
                         ::testing::Combine(::testing::Values(CallFormat::kNone, CallFormat::kHermes,
                                                              CallFormat::kLlamaJson, CallFormat::kMistral,
                                                              CallFormat::kMistralArgs),
                                            ::testing::Values(ReasoningFormat::kNone, ReasoningFormat::kThinkTags,
                                                              ReasoningFormat::kMistral),
                                            ::testing::Bool()));

}  // namespace
}  // namespace quire::api::chat::answer_parser_test
