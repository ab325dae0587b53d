// Answers of the mixtures of experts: the forms that each family's template shows, and what is read from an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/api/answer/answer_reading.h"

namespace quire::api::chat::mixture_answers_test {
namespace {

const std::vector<CallableTool> kTools = {
    callable_tool("get_weather", R"({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})"),
    callable_tool("now")};

struct Family {
  const char* name;
  const char* shows;  // the marks in the template's text
  CallFormat calls;
  ReasoningFormat reasoning;
  const char* answer;
  const char* read;  // as test::shown() has it
  bool in_reasoning = false;
};

constexpr auto kThink = ReasoningFormat::kThinkTags;
constexpr auto kNone = ReasoningFormat::kNone;

const Family kFamilies[] = {
    {"Mixtral 8x7B", " [INST]  [/INST]", CallFormat::kGeneric, kNone,
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "[]|now{}"},
    {"Mixtral 8x22B", "[AVAILABLE_TOOLS][/AVAILABLE_TOOLS][INST][/INST][TOOL_CALLS][TOOL_RESULTS]",
     CallFormat::kMistral, kNone, "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]",
     R"([]|get_weather{"city": "Oslo"})"},
    {"Qwen3-30B-A3B", "<tool_call>\\n{\"name\": <function-name></tool_call><think></think>", CallFormat::kHermes,
     kThink, "<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
     "[Hm.]|now{}"},
    {"Qwen3-30B-A3B-Instruct-2507", "<tool_call>\\n{\"name\": <function-name></tool_call>", CallFormat::kHermes, kNone,
     "It rains.", "[]It rains."},
    {"Qwen3-Coder-30B-A3B", "<tool_call>\\n<function=example><parameter=city></parameter></function></tool_call>",
     CallFormat::kQwen3Coder, kNone,
     "<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
     R"([]|get_weather{"days": 2})"},
    {"gpt-oss", "<|start|>assistant<|channel|>analysis<|message|> to=functions.<|constrain|>", CallFormat::kHarmony,
     ReasoningFormat::kHarmony,
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.now "
     "<|constrain|>json<|message|>{}<|call|>",
     "[Hm.]|now{}"},
    {"OLMoE", "<|system|>\\n<|user|>\\n<|assistant|>\\n<|endoftext|>", CallFormat::kGeneric, kNone, "It rains.",
     "[]It rains."},
    {"Granite 3.1 MoE", "respond with <|tool_call|> followed by a JSON list", CallFormat::kGranite, kNone,
     "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]",
     R"([]|get_weather{"city": "Oslo"})"},
    {"Phi-3.5-MoE", "<|system|>\\n<|user|>\\n<|assistant|>\\n<|end|>\\n", CallFormat::kGeneric, kNone,
     "It <|end|> rains.", "[]It <|end|> rains."},
    {"ERNIE 4.5", "User: Assistant: <|end_of_sentence|>", CallFormat::kGeneric, kNone, "It rains.", "[]It rains."},
    {"ERNIE 4.5 Thinking", "<tool_call></tool_call><think></think><response></response><tool_output></tool_output>",
     CallFormat::kHermes, kThink,
     "Hm.\n</think>\n\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n", "[Hm.]|now{}", true},
    {"ERNIE 4.5 Thinking", "<tool_call></tool_call><think></think><response></response>", CallFormat::kHermes, kThink,
     "Hm.\n</think>\n\n<response>\nIt rains.\n</response>\n", "[Hm.]It rains.\n", true},
    {"GLM-4.5, 4.6", "<tool_call>{function-name}\n<arg_key></arg_key>\n<arg_value></arg_value>\n</tool_call></think>",
     CallFormat::kGlm45, kThink,
     "\n<think>Hm.</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
     R"([Hm.]|get_weather{"city": "Oslo"})"},
    {"GLM-4.7", "<tool_call>{function-name}<arg_key></arg_key><arg_value></arg_value></tool_call></think>",
     CallFormat::kGlm47, kThink,
     "Hm.</think><tool_call>get_weather<arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
     R"([Hm.]|get_weather{"days": 2})", true},
    {"dots.llm1", "<|system|><|endofsystem|><|userprompt|><|endofuserprompt|><|response|><|endofresponse|>",
     CallFormat::kGeneric, kNone, "It rains.", "[]It rains."},
    {"Solar Open", "<|begin|>assistant<|think|><|begin|>user<|content|><|end|><|tool_call:begin|><|tool_call:name|>",
     CallFormat::kSolarOpen, ReasoningFormat::kSolarOpen,
     "<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather"
     "<|tool_call:args|>{\"city\": \"Oslo\"}<|tool_call:end|><|tool_call:begin|>0123456789<|tool_call:name|>now"
     "<|tool_call:args|>{}<|tool_call:end|>",
     R"([Hm.]|get_weather{"city": "Oslo"}|now{})"},
    {"Solar Open", "<|begin|>assistant<|think|><|begin|>user<|content|><|end|><|tool_call:begin|><|tool_call:name|>",
     CallFormat::kSolarOpen, ReasoningFormat::kSolarOpen,
     "<|content|>I look.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>now"
     "<|tool_call:args|>{}<|tool_call:end|>",
     "[]I look.|now{}"},
    {"Solar Open", "<|begin|>assistant<|think|><|begin|>user<|content|><|end|><|tool_call:begin|><|tool_call:name|>",
     CallFormat::kSolarOpen, ReasoningFormat::kSolarOpen,
     "<|think|>Hm.<|end|><|begin|>assistant<|content|>It < <|begin|> rains.", "[Hm.]It < <|begin|> rains."},
    {"K-EXAONE", "<|tool_declare|><tool_call>{\"name\": </tool_call><think></think>", CallFormat::kHermes, kThink,
     "Hm.\n</think>\n\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>\n"
     "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
     R"([Hm.]|get_weather{"city": "Oslo"}|now{})", true},
    {"Hunyuan-A13B", "<tool_calls>[{\"name\": \"func_name1\"]</tool_calls><|extra_0|><think></think>",
     CallFormat::kToolCalls, kThink,
     "<think>\nHm.\n</think>\n<answer>\nI look.\n<tool_calls>[{\"name\": \"now\", \"arguments\": {}}]</tool_calls>\n"
     "</answer>",
     "[Hm.]I look.|now{}"},
    {"Hunyuan 7B", "<tool_calls><tool_call>\\n```json\\n```</tool_call></tool_calls><answer></answer><think></think>",
     CallFormat::kHunyuan, kThink,
     "<think>\nHm.\n</think>\n<answer>\n<tool_calls><tool_call>get_weather\n```json\n{\"city\": \"Oslo\"}\n```"
     "</tool_call>\n<tool_call>now\n```json\n{}\n```</tool_call></tool_calls>\n</answer>",
     R"([Hm.]|get_weather{"city": "Oslo"}|now{})"},
    {"Hunyuan 3 preview", "<tool_calls></tool_calls><tool_call></tool_call><tool_sep><arg_key></arg_key></think>",
     CallFormat::kHyV3Preview, kThink,
     "Hm.</think>I look.<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo"
     "</arg_value>\n</tool_call>\n<tool_call>now<tool_sep></tool_call>\n</tool_calls>",
     R"([Hm.]I look.|get_weather{"city": "Oslo"}|now{})", true},
    {"Hunyuan 3", "':opensource' '<tool_calls{}>' '<tool_call{}>' '<tool_sep{}>' '<arg_key{}>' '</think{}>'",
     CallFormat::kHyV3, ReasoningFormat::kHyV3,
     "<think:opensource>Hm.</think:opensource><tool_calls:opensource>\n<tool_call:opensource>get_weather"
     "<tool_sep:opensource>\n<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2"
     "</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
     R"([Hm.]|get_weather{"days": 2})"},
    {"MiniMax-M2", "<minimax:tool_call></minimax:tool_call></think><response></response>", CallFormat::kMiniMaxM2,
     kThink,
     "Hm.\n</think>\n\n\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Oslo</parameter>\n"
     "</invoke>\n</minimax:tool_call>",
     R"([Hm.]|get_weather{"city": "Oslo"})", true},
};

AnswerFormat format_of(const Family& family) {
  AnswerFormat form = test::format_of(kTools, family.calls, family.reasoning);
  form.in_reasoning = family.in_reasoning;
  form.content_marks = content_marks_of(family.shows);
  return form;
}

TEST(MixtureAnswers, HaveTheFormsThatTheirTemplatesShow) {
  for (const Family& family : kFamilies) {
    EXPECT_EQ(call_format_of(family.shows), family.calls)
        << family.name << ": " << syntax_of(call_format_of(family.shows)).parser;
    EXPECT_EQ(reasoning_format_of(family.shows), family.reasoning)
        << family.name << ": " << syntax_of(reasoning_format_of(family.shows)).parser;
  }
}

TEST(MixtureAnswers, AreReadWholeAndInPieces) {
  for (const Family& family : kFamilies) {
    const std::string answer = family.answer;
    EXPECT_EQ(test::shown(test::parts_of(format_of(family), {answer})), family.read) << family.name;
    for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
      ASSERT_EQ(test::shown(test::parts_of(format_of(family), {answer.substr(0, cut), answer.substr(cut)})),
                family.read)
          << family.name << " cut at " << cut;
    }
  }
}

// A turn is text that begins what follows reasoning.
TEST(MixtureAnswers, OfSolarOpenThatAreCutShowNoPartOfATurn) {
  const Family& family =
      *std::ranges::find_if(kFamilies, [](const Family& one) { return one.calls == CallFormat::kSolarOpen; });
  const std::string reasoning = "<|think|>Hm.<|end|>", turn = "<|begin|>assistant";
  for (std::size_t cut = 0; cut <= turn.size(); ++cut) {
    const std::string cut_off = reasoning + turn.substr(0, cut);
    EXPECT_EQ(test::shown(test::parts_of(format_of(family), {cut_off})), "[Hm.]") << cut_off;
  }
  EXPECT_EQ(test::shown(test::parts_of(format_of(family), {reasoning + "<|begin|>user"})), "[Hm.]<|begin|>user");
}

}  // namespace
}  // namespace quire::api::chat::mixture_answers_test
