#include "api/answer/calls/call_format.h"

#include <algorithm>
#include <array>

#include "api/answer/parts/marker_scanner.h"
#include "core/base/check.h"

namespace quire::api::chat {
namespace {

using Format = CallFormat;
using Style = CallStyle;
using Text = std::string_view;

constexpr Text kToolCall[] = {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
constexpr Text kPythonTag[] = {"<|python_tag|>", "<|python_start|>", "<|python_end|>"};
constexpr Text kMistral[] = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"};
constexpr Text kPipeToolCall[] = {"<|tool_call|>", "<|/tool_call|>"};
constexpr Text kToolCalls[] = {"<tool_calls>", "</tool_calls>"};
constexpr Text kHunyuan[] = {"<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>"};
constexpr Text kToolCallInCapitals[] = {"<TOOLCALL>", "</TOOLCALL>"};
constexpr Text kAction[] = {"<|action_start|>", "<|plugin|>", "<|action_end|>"};
constexpr Text kCommand[] = {"<|START_ACTION|>", "<|END_ACTION|>"};
constexpr Text kApertus[] = {"<|tools_prefix|>", "<|tools_suffix|>"};
constexpr Text kDeepSeek[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
                              "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"};
constexpr Text kDsml[] = {"｜DSML｜"};
constexpr Text kKimi[] = {"<|tool_call_section_begin|>",
                          "<|tool_call_section_end|>",
                          "<|tool_calls_section_begin|>",
                          "<|tool_calls_section_end|>",
                          "<|tool_call_begin|>",
                          "<|tool_call_argument_begin|>",
                          "<|tool_call_end|>"};
constexpr Text kSolar[] = {"<|tool_calls|>",     "<|tool_call:begin|>", "<|tool_call:name|>",
                           "<|tool_call:args|>", "<|tool_call:end|>",   "<|begin|>"};
constexpr Text kHyPreview[] = {"<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>", "<tool_sep>",
                               "<arg_key>",    "</arg_key>",    "<arg_value>", "</arg_value>"};
constexpr Text kHy[] = {"<tool_calls:opensource>", "</tool_calls:opensource>", "<tool_call:opensource>",
                        "</tool_call:opensource>", "<tool_sep:opensource>",    "<arg_key:opensource>",
                        "</arg_key:opensource>",   "<arg_value:opensource>",   "</arg_value:opensource>"};
constexpr Text kSeed[] = {"<seed:tool_call>", "</seed:tool_call>"};
constexpr Text kMiniMax[] = {"<minimax:tool_call>", "</minimax:tool_call>"};
constexpr Text kLfm[] = {"<|tool_call_start|>", "<|tool_call_end|>"};
constexpr Text kOlmo[] = {"<function_calls>", "</function_calls>"};
constexpr Text kFunctionGemma[] = {"<start_function_call>", "<end_function_call>", "<escape>"};
constexpr Text kGemma[] = {"<|tool_call>", "<tool_call|>", "<|\"|>"};
constexpr Text kHarmony[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                             "<|end|>",   "<|call|>",    "<|return|>"};

constexpr ParameterSyntax kParameterLines = {.key_begin = "<parameter=", .key_end = ">\n", .end = "\n</parameter>\n"};
constexpr ParameterSyntax kArgPairs = {.key_begin = "<arg_key>",
                                       .key_end = "</arg_key>\n",
                                       .string_begin = "<arg_value>",
                                       .other_begin = "<arg_value>",
                                       .end = "</arg_value>\n"};
constexpr ParameterSyntax kArgPairsOnALine = {.key_begin = "<arg_key>",
                                              .key_end = "</arg_key>",
                                              .string_begin = "<arg_value>",
                                              .other_begin = "<arg_value>",
                                              .end = "</arg_value>"};
constexpr ParameterSyntax kHyArgPairs = {.key_begin = "<arg_key:opensource>",
                                         .key_end = "</arg_key:opensource>\n",
                                         .string_begin = "<arg_value:opensource>",
                                         .other_begin = "<arg_value:opensource>",
                                         .end = "</arg_value:opensource>\n"};
constexpr ParameterSyntax kDsmlParameter = {.key_begin = "<｜DSML｜parameter name=\"",
                                            .key_end = "\"",
                                            .string_begin = " string=\"true\">",
                                            .other_begin = " string=\"false\">",
                                            .end = "</｜DSML｜parameter>\n"};
constexpr ParameterSyntax kKeywords = {.key_end = "=", .between = ", "};

// clang-format off
constexpr CallSyntax kSyntaxes[] = {
    {.format = Format::kNone, .parser = "none", .style = Style::kOwn},
    {.format = Format::kGeneric, .parser = "generic", .begin = "<tool_call>\n", .between = "\n", .end = "\n</tool_call>",
     .one_each = true, .marks = kToolCall},
    {.format = Format::kHermes, .parser = "hermes", .begin = "<tool_call>\n", .between = "\n", .end = "\n</tool_call>",
     .one_each = true, .marks = kToolCall},
    {.format = Format::kLlamaJson, .parser = "llama3_json", .begin = "<|python_tag|>", .between = "; ", .is_bare = true,
     .arguments_key = "parameters", .marks = kPythonTag},
    {.format = Format::kPythonic, .parser = "pythonic", .style = Style::kLiterals, .begin = "<|python_start|>",
     .between = ", ", .end = "<|python_end|>", .is_list = true, .is_bare = true, .name_end = "(", .close = ")",
     .parameter = kKeywords, .marks = kPythonTag},
    {.format = Format::kMistral, .parser = "mistral", .begin = "[TOOL_CALLS]", .between = ", ", .is_list = true,
     .reads_names = true, .fence = "[ARGS]", .marks = kMistral},
    {.format = Format::kMistralArgs, .parser = "mistral_args", .style = Style::kJson, .begin = "[TOOL_CALLS]",
     .one_each = true, .fence = "[ARGS]", .marks = kMistral},
    {.format = Format::kGranite, .parser = "granite", .begin = "<|tool_call|>",
     .other_begins = {"<tool_call>"}, .between = ", ", .is_list = true,
     .marks = kPipeToolCall},
    {.format = Format::kPhi4Mini, .parser = "phi4_mini", .begin = "<|tool_call|>", .between = ", ",
     .end = "<|/tool_call|>", .is_list = true, .marks = kPipeToolCall},
    {.format = Format::kFunctools, .parser = "phi4_mini_json", .begin = "functools", .between = ", ", .is_list = true},
    {.format = Format::kToolCalls, .parser = "hunyuan_a13b", .begin = "<tool_calls>", .between = ", ",
     .end = "</tool_calls>", .is_list = true, .marks = kToolCalls},
    {.format = Format::kHunyuan, .parser = "hunyuan", .style = Style::kJson, .begin = "<tool_calls>", .between = "\n",
     .end = "</tool_calls>", .open = "<tool_call>", .fence = "\n```json\n", .fence_close = "\n```",
     .close = "</tool_call>", .marks = kHunyuan},
    {.format = Format::kNemotron, .parser = "nemotron_json", .begin = "<TOOLCALL>", .between = ", ",
     .end = "</TOOLCALL>", .is_list = true, .marks = kToolCallInCapitals},
    {.format = Format::kInternLm, .parser = "internlm", .begin = "<|action_start|>", .end = "<|action_end|>",
     .one_each = true, .arguments_key = "parameters", .fence = "<|plugin|>\n", .marks = kAction},
    {.format = Format::kCommand, .parser = "cohere_command", .begin = "<|START_ACTION|>", .between = ", ",
     .end = "<|END_ACTION|>", .is_list = true, .name_key = "tool_name", .arguments_key = "parameters",
     .marks = kCommand},
    {.format = Format::kCommandR, .parser = "command_r", .begin = "Action:", .between = ", ", .end = "```",
     .is_list = true, .name_key = "tool_name", .arguments_key = "parameters", .fence = "\n```json\n"},
    {.format = Format::kApertus, .parser = "apertus", .style = Style::kNameKey, .begin = "<|tools_prefix|>",
     .between = ", ", .end = "<|tools_suffix|>", .is_list = true, .marks = kApertus},
    {.format = Format::kDeepSeekV3, .parser = "deepseek_v3", .style = Style::kJson, .begin = "<｜tool▁calls▁begin｜>",
     .between = "\n", .end = "<｜tool▁calls▁end｜>", .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .name_mark = "<｜tool▁sep｜>", .fence = "\n```json\n", .fence_close = "\n```",
     .close = "<｜tool▁call▁end｜>", .marks = kDeepSeek},
    {.format = Format::kDeepSeekV31, .parser = "deepseek_v31", .style = Style::kJson, .begin = "<｜tool▁calls▁begin｜>",
     .end = "<｜tool▁calls▁end｜>", .open = "<｜tool▁call▁begin｜>", .name_end = "<｜tool▁sep｜>",
     .close = "<｜tool▁call▁end｜>", .marks = kDeepSeek},
    {.format = Format::kDeepSeekV32, .parser = "deepseek_v32", .style = Style::kTagged,
     .begin = "<｜DSML｜function_calls>\n", .between = "\n", .end = "\n</｜DSML｜function_calls>",
     .open = "<｜DSML｜invoke name=\"", .name_end = "\">\n", .close = "</｜DSML｜invoke>", .parameter = kDsmlParameter,
     .marks = kDsml},
    {.format = Format::kDeepSeekV4, .parser = "deepseek_v4", .style = Style::kTagged, .begin = "<｜DSML｜tool_calls>\n",
     .between = "\n", .end = "\n</｜DSML｜tool_calls>", .open = "<｜DSML｜invoke name=\"", .name_end = "\">\n",
     .close = "</｜DSML｜invoke>", .parameter = kDsmlParameter, .marks = kDsml},
    {.format = Format::kKimiK2, .parser = "kimi_k2", .style = Style::kJson, .begin = "<|tool_calls_section_begin|>",
     .other_begins = {"<|tool_call_section_begin|>", "<|tool_call_begin|>"},
     .end = "<|tool_calls_section_end|>", .other_end = "<|tool_call_section_end|>", .is_numbered = true,
     .ends_reasoning = true, .open = "<|tool_call_begin|>functions.",
     .name_mark = "<|tool_call_begin|>", .name_end = "<|tool_call_argument_begin|>", .close = "<|tool_call_end|>",
     .marks = kKimi},
    {.format = Format::kSolarOpen, .parser = "solar_open", .style = Style::kJson, .begin = "<|tool_calls|>",
     .other_begins = {"<|begin|>assistant<|tool_calls|>", "<|tool_call:begin|>"}, .has_id = true,
     .open = "<|tool_call:begin|>", .name_mark = "<|tool_call:name|>", .name_end = "<|tool_call:args|>",
     .close = "<|tool_call:end|>", .marks = kSolar},
    {.format = Format::kFunctionTag, .parser = "function_tag", .style = Style::kJson, .begin = "<function=",
     .one_each = true, .name_end = ">", .close = "</function>"},
    {.format = Format::kFunctionary, .parser = "functionary_v3", .style = Style::kOwn},
    {.format = Format::kGlm4, .parser = "glm4", .style = Style::kJson, .between = "\n", .is_bare = true, .one_each = true,
     .name_end = "\n"},
    {.format = Format::kGlm45, .parser = "glm45", .style = Style::kTagged, .begin = "<tool_call>", .between = "\n",
     .end = "</tool_call>", .one_each = true, .name_end = "\n", .parameter = kArgPairs, .marks = kToolCall},
    {.format = Format::kGlm47, .parser = "glm47", .style = Style::kTagged, .begin = "<tool_call>",
     .end = "</tool_call>", .one_each = true, .parameter = kArgPairsOnALine, .marks = kToolCall},
    {.format = Format::kHyV3Preview, .parser = "hy_v3_preview", .style = Style::kTagged, .begin = "<tool_calls>\n",
     .between = "\n", .end = "\n</tool_calls>", .open = "<tool_call>", .name_end = "<tool_sep>\n",
     .close = "</tool_call>", .parameter = kArgPairs, .marks = kHyPreview},
    {.format = Format::kHyV3, .parser = "hy_v3", .style = Style::kTagged, .begin = "<tool_calls:opensource>\n",
     .between = "\n", .end = "\n</tool_calls:opensource>", .open = "<tool_call:opensource>",
     .name_end = "<tool_sep:opensource>\n", .close = "</tool_call:opensource>", .parameter = kHyArgPairs, .marks = kHy},
    {.format = Format::kQwen3Coder, .parser = "qwen3_coder", .style = Style::kTagged, .begin = "<tool_call>\n",
     .other_begins = {"<function="},
     .between = "\n", .end = "\n</tool_call>", .one_each = true, .open = "<function=", .name_end = ">\n",
     .close = "</function>", .parameter = kParameterLines, .marks = kToolCall},
    {.format = Format::kSeedOss, .parser = "seed_oss", .style = Style::kTagged, .begin = "<seed:tool_call>\n",
     .between = "\n", .end = "\n</seed:tool_call>", .one_each = true, .open = "<function=", .name_end = ">\n",
     .close = "</function>",
     .parameter = {.key_begin = "<parameter=", .key_end = ">", .end = "</parameter>\n"}, .marks = kSeed},
    {.format = Format::kMiniMaxM2, .parser = "minimax_m2", .style = Style::kTagged, .begin = "<minimax:tool_call>\n",
     .between = "\n", .end = "\n</minimax:tool_call>", .open = "<invoke name=\"", .name_end = "\">\n",
     .close = "</invoke>",
     .parameter = {.key_begin = "<parameter name=\"", .key_end = "\">", .end = "</parameter>\n"}, .marks = kMiniMax},
    {.format = Format::kMiroThinker, .parser = "mirothinker", .style = Style::kJson, .begin = "<use_mcp_tool>\n",
     .between = "\n", .end = "\n</use_mcp_tool>", .open = "<server_name>tools</server_name>\n<tool_name>",
     .name_mark = "<tool_name>", .name_end = "</tool_name>\n", .fence = "<arguments>\n",
     .close = "\n</arguments>"},
    {.format = Format::kLfm2, .parser = "lfm2", .style = Style::kLiterals, .begin = "<|tool_call_start|>",
     .between = ", ", .end = "<|tool_call_end|>", .is_list = true, .name_end = "(", .close = ")",
     .parameter = kKeywords, .marks = kLfm},
    {.format = Format::kOlmo3, .parser = "olmo3", .style = Style::kLiterals, .begin = "<function_calls>\n",
     .between = "\n", .end = "\n</function_calls>", .name_end = "(", .close = ")", .parameter = kKeywords,
     .marks = kOlmo},
    {.format = Format::kFunctionGemma, .parser = "functiongemma", .style = Style::kLiterals,
     .begin = "<start_function_call>", .end = "<end_function_call>", .one_each = true, .open = "call:",
     .name_end = "{", .close = "}", .parameter = {.key_end = ":", .between = ",", .quote = "<escape>"},
     .marks = kFunctionGemma},
    {.format = Format::kGemma4, .parser = "gemma4", .style = Style::kLiterals, .begin = "<|tool_call>",
     .end = "<tool_call|>", .one_each = true, .open = "call:", .name_end = "{", .close = "}",
     .parameter = {.key_end = ":", .between = ",", .quote = "<|\"|>"}, .marks = kGemma},
    {.format = Format::kHarmony, .parser = "openai", .style = Style::kOwn, .marks = kHarmony},
};
// clang-format on

// The parts of a template's text that show a format: it holds all of `holds`. The first row that fits counts.
struct Sign {
  Format format;
  std::array<Text, 2> holds;
};
constexpr Sign kSigns[] = {
    {Format::kHarmony, {"<|channel|>", "to=functions"}},
    {Format::kHarmony, {"<|channel|>", "functions."}},
    {Format::kMiroThinker, {"<use_mcp_tool>"}},
    {Format::kSeedOss, {"<seed:tool_call>"}},
    {Format::kMiniMaxM2, {"<minimax:tool_call>"}},
    {Format::kDeepSeekV4, {"DSML", "tool_calls>"}},
    {Format::kDeepSeekV32, {"DSML"}},
    {Format::kDeepSeekV3, {"<｜tool▁sep｜>", "```json"}},
    {Format::kDeepSeekV31, {"<｜tool▁sep｜>"}},
    {Format::kKimiK2, {"<|tool_call_argument_begin|>"}},
    {Format::kSolarOpen, {"<|tool_call:begin|>"}},
    {Format::kCommand, {"<|START_ACTION|>"}},
    {Format::kCommandR, {"Action:", "\"tool_name\""}},
    {Format::kGemma4, {"<|tool_call>call:"}},
    {Format::kFunctionGemma, {"<start_function_call>"}},
    {Format::kLfm2, {"<|tool_call_start|>"}},
    {Format::kLfm2, {"<|tool_list_start|>"}},
    {Format::kOlmo3, {"<function_calls>"}},
    {Format::kQwen3Coder, {"<tool_call>", "<function="}},
    {Format::kHyV3, {"<tool_sep", ":opensource"}},
    {Format::kHyV3Preview, {"<tool_calls>", "<tool_sep>"}},
    {Format::kGlm45, {"<arg_key>", "</arg_key>\n"}},
    {Format::kGlm47, {"<arg_key>"}},
    {Format::kFunctionTag, {"<function="}},
    {Format::kFunctionary, {">>>all"}},
    {Format::kApertus, {"<|tools_prefix|>"}},
    {Format::kPhi4Mini, {"<|tool_call|>", "<|/tool_call|>"}},
    {Format::kGranite, {"<|tool_call|>"}},
    {Format::kFunctools, {"functools"}},
    {Format::kHunyuan, {"<tool_calls><tool_call>", "```json"}},
    {Format::kToolCalls, {"<tool_calls>"}},
    {Format::kNemotron, {"<TOOLCALL>"}},
    {Format::kInternLm, {"<|action_start|>", "<|plugin|>"}},
    {Format::kMistralArgs, {"[TOOL_CALLS]", "[ARGS]"}},
    {Format::kMistral, {"[TOOL_CALLS]"}},
    {Format::kHermes, {"<tool_call>"}},
    {Format::kLlamaJson, {"{\"name\": function name, \"parameters\": dictionary"}},
    {Format::kPythonic, {"[func_name1(param"}},
    {Format::kPythonic, {"<|python_start|>"}},
    {Format::kGlm4, {"<|observation|>"}},
};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < std::size(kSyntaxes); ++i) {
    if (kSyntaxes[i].format != static_cast<Format>(i)) return false;
  }
  return std::size(kSyntaxes) == static_cast<std::size_t>(Format::kHarmony) + 1;
}
static_assert(rows_are_in_order());

}  // namespace

std::span<const CallSyntax> call_syntaxes() { return kSyntaxes; }

const CallSyntax& syntax_of(CallFormat format) { return kSyntaxes[static_cast<std::size_t>(format)]; }

CallFormat call_format_of(std::string_view source) {
  const auto shown = [&](const Sign& sign) {
    return std::ranges::all_of(sign.holds, [&](Text part) { return source.find(part) != source.npos; });
  };
  const Sign* found = std::ranges::find_if(kSigns, shown);
  return found == std::end(kSigns) ? CallFormat::kGeneric : found->format;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace quire::api::chat
