// Every format of call_format.h: what is written in it is read back, whole and in pieces, and what is no call is left.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/answer/calls/call_text.h"
#include "tests/api/answer/answer_reading.h"

namespace quire::api::chat::call_formats_test {
namespace {

constexpr const char* kSchema = R"({"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "now": {"type": "boolean"},
    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "list": {"type": "array"}, "more": {"type": "object"},
    "code": {"type": "string"}}})";
const std::vector<CallableTool> kTools = {callable_tool("get_weather", kSchema), callable_tool("now")};

using test::parts_of;
using test::shown;

AnswerFormat format_of(CallFormat calls, ReasoningFormat reasoning = ReasoningFormat::kNone) {
  return test::format_of(kTools, calls, reasoning);
}
std::string said(CallFormat format, const std::string& text) { return shown(parts_of(format_of(format), {text})); }

std::vector<CallFormat> formats() {
  std::vector<CallFormat> all;
  for (const CallSyntax& one : call_syntaxes()) {
    if (one.format != CallFormat::kNone) all.push_back(one.format);
  }
  return all;
}

class EveryFormat : public ::testing::TestWithParam<CallFormat> {
 protected:
  CallFormat format() const { return GetParam(); }
  bool takes_one_call() const { return format() == CallFormat::kHarmony; }
  std::string written(std::vector<ToolCall> calls) const {
    if (takes_one_call()) calls.resize(1);
    return text_of_calls(format(), calls);
  }
};

const std::vector<ToolCall> kCalls = {
    {"get_weather",
     R"({"city": "Z\u00fcrich \"x\" 'y' <b> & {z}, [1]: \\ end", "days": 3, "now": true, "note": null, )"
     R"("list": [1, "a", {"b": [null, false]}], "more": {"k": "v", "n": -1.5e3}, "code": "if a < b:\n\tgo()\n"})"},
    {"now", "{}"},
    {"get_weather", R"({"city": "5", "note": "true", "code": "\n\n"})"}};

TEST_P(EveryFormat, ReadsBackTheCallsThatItWrites) {
  for (const std::vector<ToolCall>& calls : {kCalls, {kCalls[1]}, {kCalls[2]}, {kCalls[1], kCalls[1]}}) {
    const std::string text = written(calls);
    const AnswerParts read = parts_of(format_of(format()), {text});
    EXPECT_EQ(read.content, "") << text;
    ASSERT_EQ(read.calls.size(), takes_one_call() ? 1 : calls.size()) << text;
    for (std::size_t i = 0; i < read.calls.size(); ++i) {
      EXPECT_EQ(read.calls[i].name, calls[i].name);
      boost::json::value expected = boost::json::parse(calls[i].arguments);
      // A parameter that may be a string or null reads the word "true" as a string, whatever the format.
      EXPECT_EQ(boost::json::parse(read.calls[i].arguments), expected) << text << "\n" << read.calls[i].arguments;
    }
  }
}

TEST_P(EveryFormat, ReadsPiecesOfAnySizeLikeTheWhole) {
  const bool is_bare =
      syntax_of(format()).is_bare || format() == CallFormat::kHarmony || format() == CallFormat::kFunctionary;
  for (const std::string before : {"", "Let me see.\n\n"}) {
    if (is_bare && !before.empty()) continue;
    for (const std::string behind : {"", "\nDone."}) {
      const std::string text = before + written(kCalls) + behind;
      const std::string whole = said(format(), text);
      for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        ASSERT_EQ(shown(parts_of(format_of(format()), {text.substr(0, cut), text.substr(cut)})), whole) << cut;
      }
      std::vector<std::string> bytes;
      for (const char c : text) bytes.emplace_back(1, c);
      EXPECT_EQ(shown(parts_of(format_of(format()), bytes)), whole);
      const std::string content = std::string(before.empty() ? "" : "Let me see.") + (behind.empty() ? "" : "Done.");
      const bool ends = format() == CallFormat::kHarmony;  // nothing ends its last message
      EXPECT_TRUE(ends || whole.starts_with("[]" + content + "|get_weather{")) << whole;
    }
  }
}

TEST_P(EveryFormat, ShowsNoMarkOfAForcedCallWhereverItIsCut) {
  AnswerFormat form = format_of(format());
  form.only_calls = true;
  const std::string text = written(kCalls);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const AnswerParts parts = parts_of(form, {text.substr(0, cut)});
    ASSERT_EQ(parts.content + parts.reasoning, "") << text.substr(0, cut);
  }
}

TEST_P(EveryFormat, LeavesACallOfAnotherToolAlone) {
  std::string text = written({{"now", R"({"a": 1})"}});
  text.replace(text.find("now"), 3, "put");
  const AnswerParts parts = parts_of(format_of(format()), {text});
  EXPECT_TRUE(parts.calls.empty()) << text;
  EXPECT_NE(parts.content.find("put"), std::string::npos) << text;
}

TEST_P(EveryFormat, LeavesPlainTextAlone) {
  for (const std::string text :
       {"", "Hello!\n", "a < b, 3 > 2 [x](y) {z} now", "<b>bold</b> and `code`\n```json\n[1]\n```", "now is the time",
        "function calls", "1. one\n2. two"}) {
    EXPECT_EQ(said(format(), text), "[]" + text);
  }
}

TEST_P(EveryFormat, IsReadInLinearTime) {  // marks that begin calls, again and again
  const CallSyntax& syntax = syntax_of(format());
  const std::string unit =
      std::string(trimmed(syntax.begin)) + std::string(syntax.open) + "now" + std::string(syntax.name_end);
  for (const std::string& part : {unit, std::string(trimmed(syntax.begin)) + "[",
                                  std::string(trimmed(syntax.begin)) + "{\"arguments\": {\"", unit + "{"}) {
    if (part.empty()) continue;
    std::string text;
    while (text.size() < 100'000) text += part;
    const auto start = std::chrono::steady_clock::now();
    parts_of(format_of(format()), {text});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(CallFormats, EveryFormat, ::testing::ValuesIn(formats()),
                         [](const auto& test) { return std::string(syntax_of(test.param).parser); });

// ---- what models say

struct Recorded {
  CallFormat format;
  const char* text;
  const char* expected;
};

// Spelled as the models' templates have them, or their makers' documentation.
const Recorded kRecorded[] = {
    {CallFormat::kPythonic, "[get_weather(city='Oslo', days=2), now()]",
     R"([]|get_weather{"city": "Oslo", "days": 2}|now{})"},
    {CallFormat::kPythonic, "<|python_start|>[now()]<|python_end|>", "[]|now{}"},
    {CallFormat::kPythonic, "[now()] and [1, 2]", "[]and [1, 2]|now{}"},
    {CallFormat::kPythonic, "[1, 2, 3] is a list", "[][1, 2, 3] is a list"},
    {CallFormat::kPythonic, "[get_weather(\"Oslo\")]", "[][get_weather(\"Oslo\")]"},
    {CallFormat::kPythonic, "[get_weather(city=\"O\\'s\\n\\u00e9\\x41\\q\", now=True, list=(1, None, {'a': 'b'}))]",
     R"([]|get_weather{"city": "O's\né)"
     "A\\\\q"
     R"(", "now": true, "list": [1, null, {"a": "b"}]})"},
    {CallFormat::kGranite, "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", "[]|now{}"},
    {CallFormat::kGranite, "<|tool_call|> [{\"arguments\": {\"city\": \"x\"}, \"name\": \"get_weather\"}]\n",
     R"([]|get_weather{"city": "x"})"},
    {CallFormat::kPhi4Mini, "<|tool_call|>{\"name\": \"now\", \"arguments\": {}}<|/tool_call|>", "[]|now{}"},
    {CallFormat::kFunctools, "functools[{\"name\": \"now\", \"arguments\": {}}]", "[]|now{}"},
    {CallFormat::kToolCalls,
     "<tool_calls>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
     "\"x\"}}\n</tool_calls>",
     R"([]|now{}|get_weather{"city": "x"})"},
    {CallFormat::kInternLm,
     "I will look. <|action_start|><|plugin|>\n{\"name\": \"now\", \"parameters\": {}}<|action_end|>\n",
     "[]I will look.|now{}"},
    {CallFormat::kCommand,
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": "
     "\"x\"}},\n"
     "    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", \"parameters\": {}}\n]<|END_ACTION|>",
     R"([]|get_weather{"city": "x"}|now{})"},
    {CallFormat::kCommandR,
     "Action: ```json\n[\n    {\n        \"tool_name\": \"now\",\n        \"parameters\": {}\n    }\n]```", "[]|now{}"},
    {CallFormat::kCommandR, "Action: none is needed", "[]Action: none is needed"},
    {CallFormat::kApertus, "<|tools_prefix|>[{\"get_weather\": {\"city\": \"x\"}}, {\"now\": {}}]<|tools_suffix|>",
     R"([]|get_weather{"city": "x"}|now{})"},
    {CallFormat::kDeepSeekV3,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": "
     "\"x\"}\n```<｜tool▁call▁end｜>\n"
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     R"([]|get_weather{"city": "x"}|now{})"},
    {CallFormat::kDeepSeekV31,
     "Sure.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_"
     "weather<｜tool▁sep｜>"
     "{\"city\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     R"([]Sure.|now{}|get_weather{"city": "x"})"},
    {CallFormat::kDeepSeekV4,
     "Hm.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">5</｜DSML｜parameter>\n"
     "<｜DSML｜parameter name=\"days\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
     "name=\"now\">\n"
     "<｜DSML｜parameter name=\"x\" string=\"true\">true</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
     R"([]Hm.|get_weather{"city": "5", "days": 5}|now{"x": "true"})"},
    {CallFormat::kKimiK2,
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\": "
     "\"x\"}<|tool_call_end|>"
     "<|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
     R"([]|get_weather{"city": "x"}|now{})"},
    {CallFormat::kFunctionTag, "So: <function=get_weather>{\"city\": \"x\"}</function><function=now>{}</function>",
     R"([]So:|get_weather{"city": "x"}|now{})"},
    {CallFormat::kFunctionary, "all\nLet me see.>>>get_weather\n{\"city\": \"x\"}\n>>>now\n{}",
     R"([]Let me see.|get_weather{"city": "x"}|now{})"},
    {CallFormat::kFunctionary, "all\na >> b >>>nobody\nx", "[]a >> b >>>nobody\nx"},
    {CallFormat::kGlm4, "get_weather\n{\"city\": \"x\"}", R"([]|get_weather{"city": "x"})"},
    {CallFormat::kGlm45,
     "Hm.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo\n</arg_value>\n<arg_key>days</"
     "arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
     R"([]Hm.|get_weather{"city": "Oslo\n", "days": 2}|now{})"},
    {CallFormat::kGlm47,
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call><tool_call>now</tool_call>",
     R"([]|get_weather{"city": "Oslo"}|now{})"},
    {CallFormat::kQwen3Coder,
     "I "
     "look.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</"
     "parameter>\n"
     "<parameter=now>\nTrue\n</parameter>\n<parameter=list>\n['a', "
     "None]\n</parameter>\n<parameter=code>\na\n\nb\n</parameter>\n"
     "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
     R"([]I look.|get_weather{"city": "Oslo", "days": 2, "now": true, "list": ["a", null], "code": "a\n\nb"}|now{})"},
    {CallFormat::kQwen3Coder,
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</tool_call> so",
     R"([]so|get_weather{"city": "Oslo"})"},
    {CallFormat::kSeedOss,
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>2</parameter>\n</"
     "function>\n</seed:tool_call>",
     R"([]|get_weather{"city": "Oslo", "days": 2})"},
    {CallFormat::kMiniMaxM2,
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Oslo</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
     R"([]|get_weather{"city": "Oslo"}|now{})"},
    {CallFormat::kMiroThinker,
     "Hm.\n<use_mcp_tool>\n<server_name>generic-extras</server_name>\n<tool_name>get_weather</"
     "tool_name>\n<arguments>\n{\"city\": \"x\"}\n</arguments>\n"
     "<server_name>tool-python</server_name>\n<tool_name>now</tool_name>\n<arguments>\n{}\n</arguments>\n</"
     "use_mcp_tool>",
     R"([]Hm.|get_weather{"city": "x"}|now{})"},
    {CallFormat::kLfm2, "<|tool_call_start|>[get_weather(city=\"Oslo\"), now()]<|tool_call_end|>Done.",
     R"([]Done.|get_weather{"city": "Oslo"}|now{})"},
    {CallFormat::kOlmo3, "<function_calls>\nget_weather(city='Oslo', note=null)\nnow()\n</function_calls>",
     R"([]|get_weather{"city": "Oslo", "note": null}|now{})"},
    {CallFormat::kFunctionGemma,
     "<start_function_call>call:get_weather{city:<escape>Oslo, Norway<escape>,days:2}<end_function_call>",
     R"([]|get_weather{"city": "Oslo, Norway", "days": 2})"},
    {CallFormat::kGemma4,
     "<|tool_call>call:get_weather{city:<|\"|>O\"s\\lo<|\"|>,list:[<|\"|>a<|\"|>,1],more:{k:true}}<tool_call|><|tool_"
     "call>call:now{}<tool_call|>",
     R"([]|get_weather{"city": "O\"s\\lo", "list": ["a", 1], "more": {"k": true}}|now{})"},
    {CallFormat::kHarmony,
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
     "<|constrain|>json<|message|>{\"city\": \"x\"}<|call|>",
     R"([Hm.]|get_weather{"city": "x"})"},
    {CallFormat::kHarmony, " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", "[]|now{}"},
    {CallFormat::kHarmony,
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I "
     "look.<|end|><|start|>assistant<|channel|>final<|message|>It < rains.<|return|>",
     "[a]I look.\n\nIt < rains."},
    {CallFormat::kHarmony, "No channels here < at all", "[]No channels here < at all"},
    {CallFormat::kHarmony, "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
     "[]<|channel|>analysis to=python code<|message|>print(1)"},
    {CallFormat::kHermes,
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
     "[]|now{}|now{}"},
    {CallFormat::kMistralArgs, "[TOOL_CALLS]now[CALL_ID]abc[ARGS]{}", "[]|now{}"},
};

// Ways in which models leave the published form, and texts that are no calls.
const Recorded kBent[] = {
    {CallFormat::kQwen3Coder,
     "I look.\n\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
     R"([]I look.|get_weather{"city": "Oslo"})"},
    {CallFormat::kQwen3Coder, "<function=nobody>\n<parameter=city>", "[]<function=nobody>\n<parameter=city>"},
    {CallFormat::kQwen3Coder,
     "<tool_call>\n<function=get_weather>\n<parameter=list>\n[\"a</parameter>b\"]\n</parameter>\n</function>\n</"
     "tool_call>",
     R"([]|get_weather{"list": ["a</parameter>b"]})"},
    {CallFormat::kQwen3Coder,
     "<tool_call>\n<function=get_weather>\n<parameter=list>\n['a', \"b\n</parameter>\n</function>\n</tool_call>",
     R"([]|get_weather{"list": "['a', \"b"})"},
    {CallFormat::kQwen3Coder,
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n<parameter=days>\n2\n<parameter=note>\n</"
     "parameter>\n"
     "</function>\n</tool_call>",
     R"([]|get_weather{"city": "Oslo", "days": 2, "note": ""})"},
    {CallFormat::kQwen3Coder,
     "<tool_call>\n<function=get_weather>\n<parameter=city>\na\n</parameter>\n<parameter=code>\n<parameter=city>\n"
     "<parameter=x>\n</function>\n</tool_call>\n<parameter=code>\n</parameter>\n</function>\n</tool_call>",
     "[]|get_weather{\"city\": \"a\", \"code\": \"<parameter=city>\\n<parameter=x>\\n</function>\\n</tool_call>\\n"
     "<parameter=code>\"}"},
    {CallFormat::kQwen3Coder, "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</function>\n</tool_call>",
     R"([]|get_weather{"city": "Oslo"})"},
    {CallFormat::kQwen3Coder, "<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</function>\n",
     R"([]|get_weather{"days": 2})"},
    {CallFormat::kSeedOss,
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo<parameter=days>2</function>\n</seed:tool_call>",
     R"([]|get_weather{"city": "Oslo", "days": 2})"},
    {CallFormat::kMiniMaxM2,
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo\n<parameter name=\"days\">2"
     "</parameter>\n</invoke>\n</minimax:tool_call>",
     R"([]|get_weather{"city": "Oslo\n", "days": 2})"},
    {CallFormat::kDeepSeekV32,
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">Oslo<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>",
     R"([]|get_weather{"city": "Oslo", "days": 2})"},
    {CallFormat::kGlm45,
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo<arg_key>days</arg_key>\n<arg_value>2"
     "</tool_call>",
     R"([]|get_weather{"city": "Oslo", "days": 2})"},
    {CallFormat::kGlm45, "<tool_call>now\n", "[]|now{}"},
    {CallFormat::kGlm45, "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n",
     R"([]|get_weather{"city": "Oslo"})"},
    {CallFormat::kGlm45, "<tool_call>now I write a long answer", "[]<tool_call>now I write a long answer"},
    {CallFormat::kGlm4, "now \n{\"a\": 1}", "[]now \n{\"a\": 1}"},
    {CallFormat::kGlm4, "functions.now\n{}", "[]functions.now\n{}"},
    {CallFormat::kGranite, "<tool_call>[{\"name\": \"now\", \"arguments\": {}}]", "[]|now{}"},
    {CallFormat::kHermes, "<tool_call>[{\"name\": \"now\", \"arguments\": {}}]", "[]|now{}"},
    {CallFormat::kKimiK2,
     "<|tool_call_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_call_section_end|>ok",
     "[]ok|now{}"},
    {CallFormat::kKimiK2, "Hm. <|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
     "[]Hm.|now{}"},
    {CallFormat::kMistralArgs, "[TOOL_CALLS]now[ARGS]{\"a\": x}[TOOL_CALLS]now[ARGS]{}", "[]|now{\"a\": x}|now{}"},
    {CallFormat::kDeepSeekV31,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{\"a\"<｜tool▁calls▁end｜>so", "[]so|now{\"a\""},
    {CallFormat::kLfm2, "<|tool_call_start|>[get_weather(city=\"a\", x=foo(1))]<|tool_call_end|>so",
     R"([]so|get_weather{"city": "a", "x": foo(1))])"},
    {CallFormat::kLfm2,
     "<|tool_call_start|>[get_weather(code=\"\"\"a\n\"b\" \"\"\", city='', note=\"\")]<|tool_call_end|>",
     R"([]|get_weather{"code": "a\n\"b\" ", "city": "", "note": ""})"},
    {CallFormat::kLfm2,
     "<|tool_call_start|>[get_weather(city=\"Os\"  'l' \"\" 'o', code=r\"\\d\" '\\n')]<|tool_call_end|>",
     R"([]|get_weather{"city": "Oslo", "code": "\\d\n"})"},
    {CallFormat::kLfm2, "<|tool_call_start|>[get_weather(city='' \"\"\"a'b\"\"\" 'c''d', note='')]<|tool_call_end|>",
     R"([]|get_weather{"city": "a'bcd", "note": ""})"},
    {CallFormat::kLfm2,
     "<|tool_call_start|>[get_weather(more={'a\\ud83d\\ude00b': u'\\ud83d\\ude00'})]<|tool_call_end|>",
     R"([]|get_weather{"more": {"a😀b": "\ud83d\ude00"}})"},
    {CallFormat::kLfm2,
     "<|tool_call_start|>[get_weather(more={'\\ude00\\ud83d': 1, '\\ud83dx\\ude00': 2})]<|tool_call_end|>",
     R"([]|get_weather{"more": {"��": 1, "�x�": 2}})"},
    {CallFormat::kFunctionary, "all\nx>>>>get_weather\n{}", "[]x>|get_weather{}"},
    {CallFormat::kFunctionary, "all\nUse >>> here>>>now\n{}", "[]Use >>> here|now{}"},
    {CallFormat::kFunctionary, "now\n \"a b\"", "[]|now\"a b\""},
    {CallFormat::kHarmony, "<", "[]<"},
    {CallFormat::kHarmony, " to=functions.now<|channel|>comm", "[]"},
};

TEST(RecordedCalls, ThatAreBentAreReadAsFarAsTheyAreCalls) {
  for (const Recorded& one : kBent) {
    EXPECT_EQ(said(one.format, one.text), one.expected) << one.text;
    std::vector<std::string> bytes;
    for (const char* c = one.text; *c != '\0'; ++c) bytes.emplace_back(1, *c);
    EXPECT_EQ(shown(parts_of(format_of(one.format), bytes)), one.expected) << one.text;
  }
}

TEST(RecordedCalls, OfHarmonyEndWhereAHeaderIsTooLong) {
  for (const char* mark : {"<|channel|>", "<|start|>", " <|start|>"}) {
    const std::string text = mark + std::string(600, 'a') + "<|channel|>final<|message|>b";
    const AnswerParts parts = parts_of(format_of(CallFormat::kHarmony), {text});
    EXPECT_TRUE(parts.content.starts_with(mark + std::string(500, 'a'))) << parts.content;
    EXPECT_TRUE(parts.content.ends_with("b")) << parts.content;
  }
}

TEST(RecordedCalls, OfKimiEndReasoningThatWasNotEnded) {
  AnswerFormat form = format_of(CallFormat::kKimiK2, ReasoningFormat::kThinkTags);
  form.in_reasoning = true;
  const std::string call =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
      "<|tool_calls_section_end|>";
  EXPECT_EQ(shown(parts_of(form, {"Hm. " + call})), "[Hm.]|now{}");
  EXPECT_EQ(shown(parts_of(form, {"Hm.</think>Yes. " + call})), "[Hm.]Yes.|now{}");
}

TEST(RecordedCalls, TellAToolInTheNamespaceFromOneOfItsName) {
  const std::vector<CallableTool> tools = {callable_tool("x"), callable_tool("functions.x")};
  AnswerFormat form;
  form.tools = tools;
  form.calls = CallFormat::kKimiK2;
  for (const std::string name : {"x", "functions.x"}) {
    const ToolCall call{name, "{}"};
    EXPECT_EQ(shown(parts_of(form, {text_of_calls(form.calls, {&call, 1})})), "[]|" + name + "{}");
  }
}

TEST(RecordedCalls, AreRead) {
  for (const Recorded& one : kRecorded) EXPECT_EQ(said(one.format, one.text), one.expected) << one.text;
}

TEST(RecordedCalls, OfParametersTakeTheTypeThatTheSchemaSays) {
  const auto read = [](const std::string& parameters, const std::string& value) {
    const std::vector<CallableTool> tools = {callable_tool("f", R"({"properties": {"x": )" + parameters + "}}")};
    AnswerFormat form;
    form.calls = CallFormat::kGlm45;
    form.tools = tools;
    return parts_of(form, {"<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>" + value + "</arg_value>\n</tool_call>"})
        .calls.at(0)
        .arguments;
  };
  EXPECT_EQ(read(R"({"type": "string"})", "12"), R"({"x": "12"})");
  EXPECT_EQ(read(R"({"type": "integer"})", " 12 "), R"({"x": 12})");
  EXPECT_EQ(read(R"({"type": "integer"})", "twelve"), R"({"x": "twelve"})");
  EXPECT_EQ(read(R"({"type": ["string", "null"]})", "null"), R"({"x": null})");
  EXPECT_EQ(read(R"({"type": ["string", "null"]})", "12"), R"({"x": "12"})");
  EXPECT_EQ(read(R"({"enum": ["1", "2"]})", "1"), R"({"x": "1"})");
  EXPECT_EQ(read(R"({"enum": [1, 2]})", "1"), R"({"x": 1})");
  EXPECT_EQ(read(R"({"const": true})", "True"), R"({"x": true})");
  EXPECT_EQ(read(R"({"anyOf": [{"type": "object"}, {"type": "array"}]})", "{'a': (1,)}"), R"({"x": {"a": [1]}})");
  EXPECT_EQ(read(R"({"allOf": [{"type": ["string", "number"]}, {"type": "string"}]})", "1"), R"({"x": "1"})");
  EXPECT_EQ(read("{}", "1"), R"({"x": 1})");
  EXPECT_EQ(read("{}", "\"a\""), R"({"x": "\"a\""})");
  EXPECT_EQ(read(R"({"type": "array"})", "[1, 2"), R"({"x": "[1, 2"})");
}

TEST(CallableTool, FollowsReferencesAsFarAsItMay) {
  const CallableTool tool = callable_tool("f", R"({"$defs": {"S": {"type": "string"}, "L": {"$ref": "#/$defs/L"},
      "M": {"anyOf": [{"$ref": "#/$defs/M"}, {"$ref": "#/$defs/M"}, {"$ref": "#/$defs/M"}, {"$ref": "#/$defs/M"}]}},
      "properties": {"s": {"$ref": "#/$defs/S"}, "l": {"$ref": "#/$defs/L"}, "m": {"$ref": "#/$defs/M"},
                     "n": {"$ref": "#/nowhere"}}})");
  EXPECT_EQ(tool.types_of("s"), kTextType);
  for (const char* name : {"l", "m", "n", "unknown"}) EXPECT_EQ(tool.types_of(name), kAnyType) << name;
  EXPECT_EQ(callable_tool("f", "[]").types_of("x"), kAnyType);
  const CallableTool root = callable_tool("f", R"({"$ref": "#/$defs/R", "$defs": {"R": {"properties": {"s": {"type":
      "string"}}, "allOf": [{"properties": {"n": {"type": "number"}}}], "additionalProperties": {"type": "string"}}}})");
  EXPECT_EQ(root.types_of("s"), kTextType);
  EXPECT_EQ(root.types_of("n"), kNumberType);
  EXPECT_EQ(root.types_of("other"), kTextType);
  std::string many = R"({"$defs": {"E": {"enum": [0)";
  for (int i = 1; i < 20'000; ++i) many += "," + std::to_string(i);
  many += R"(]}}, "properties": {)";
  for (int i = 0; i < 5000; ++i) many += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + R"(": {"$ref": "#/$defs/E"})";
  EXPECT_EQ(callable_tool("f", many + "}}").types_of("p4999"), kAnyType) << "there is a limit";
}

}  // namespace
}  // namespace quire::api::chat::call_formats_test
