// Published templates: the formats that each teaches, and the calls that it renders, read back by the parser.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/answer/answer_parser.h"
#include "app/model/chat_templates.h"
#include "tests/support/temporary_folder.h"

namespace quire::app::published_templates_test {
namespace {

using api::chat::CallFormat;
using api::chat::ReasoningFormat;

struct Taught {
  CallFormat calls = CallFormat::kGeneric;
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  bool shows_tools = true;
  bool shows_calls = true;
};

// Templates that jinja2 refuses where there are tools (MiroThinker, llama-cpp-deepseek-r1) or calls (Kimi-K2-Instruct)
// show none of them.
const std::map<std::string, Taught> kTaught = {
    {"ByteDance-Seed-OSS", {CallFormat::kSeedOss, ReasoningFormat::kSeedOss}},
    {"CohereForAI-c4ai-command-r-plus-tool_use", {CallFormat::kCommandR}},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {CallFormat::kCommand, ReasoningFormat::kCommand}},
    {"GLM-4.6", {CallFormat::kGlm45, ReasoningFormat::kThinkTags}},
    {"GLM-4.7-Flash", {CallFormat::kGlm47, ReasoningFormat::kThinkTags}},
    {"HuggingFaceTB-SmolLM3-3B", {CallFormat::kGeneric, ReasoningFormat::kThinkTags, false, false}},
    {"Kimi-K2-Instruct", {CallFormat::kKimiK2, ReasoningFormat::kNone, true, false}},
    {"LFM2-8B-A1B", {CallFormat::kLfm2, ReasoningFormat::kNone, true, false}},
    {"MiroThinker", {CallFormat::kMiroThinker, ReasoningFormat::kThinkTags, false, false}},
    {"Mistral-Small-3.2-24B-Instruct-2506", {CallFormat::kMistralArgs}},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {CallFormat::kHermes}},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {CallFormat::kHermes}},
    {"Qwen-QwQ-32B", {CallFormat::kHermes, ReasoningFormat::kThinkTags}},
    {"Qwen-Qwen2.5-7B-Instruct", {CallFormat::kHermes}},
    {"Qwen-Qwen3-0.6B", {CallFormat::kHermes, ReasoningFormat::kThinkTags}},
    {"Qwen3.5-4B", {CallFormat::kQwen3Coder, ReasoningFormat::kThinkTags}},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {CallFormat::kDeepSeekV3, ReasoningFormat::kThinkTags, false}},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", {CallFormat::kDeepSeekV3, ReasoningFormat::kThinkTags, false}},
    {"deepseek-ai-DeepSeek-V3.1", {CallFormat::kDeepSeekV31, ReasoningFormat::kThinkTags, false}},
    {"deepseek-ai-DeepSeek-V4", {CallFormat::kDeepSeekV4, ReasoningFormat::kThinkTags}},
    {"google-gemma-2-2b-it", {CallFormat::kGeneric, ReasoningFormat::kNone, false, false}},
    {"google-gemma-4-31B-it", {CallFormat::kGemma4, ReasoningFormat::kGemma4}},
    {"google-gemma-4-31B-it-interleaved", {CallFormat::kGemma4, ReasoningFormat::kGemma4}},
    {"ibm-granite-granite-3.3-2B-Instruct", {CallFormat::kGranite, ReasoningFormat::kThinkTags, true, false}},
    {"llama-cpp-deepseek-r1", {CallFormat::kDeepSeekV3, ReasoningFormat::kThinkTags, false}},
    {"meetkai-functionary-medium-v3.1", {CallFormat::kFunctionTag}},
    {"meetkai-functionary-medium-v3.2", {CallFormat::kFunctionary}},
    {"meta-llama-Llama-3.1-8B-Instruct", {CallFormat::kLlamaJson}},
    {"meta-llama-Llama-3.2-3B-Instruct", {CallFormat::kLlamaJson}},
    {"meta-llama-Llama-3.3-70B-Instruct", {CallFormat::kLlamaJson}},
    {"microsoft-Phi-3.5-mini-instruct", {CallFormat::kGeneric, ReasoningFormat::kNone, false, false}},
    {"mistralai-Ministral-3-14B-Reasoning-2512", {CallFormat::kMistralArgs, ReasoningFormat::kMistral}},
    {"mistralai-Mistral-Nemo-Instruct-2407", {CallFormat::kMistral}},
    {"moonshotai-Kimi-K2", {CallFormat::kKimiK2}},
    {"openai-gpt-oss-120b", {CallFormat::kHarmony, ReasoningFormat::kHarmony}},
    {"stepfun-ai-Step-3.5-Flash", {CallFormat::kQwen3Coder, ReasoningFormat::kThinkTags}},
};

// Templates of mixtures of experts that may be absent.
const std::map<std::string, Taught> kMixtures = {
    {"GLM-4.5", {CallFormat::kGlm45, ReasoningFormat::kThinkTags}},
    {"MiniMax-M2", {CallFormat::kMiniMaxM2, ReasoningFormat::kThinkTags}},
    {"Qwen3-Coder", {CallFormat::kQwen3Coder}},
    {"ibm-granite-granite-3.1-1b-a400m-instruct", {CallFormat::kGranite, ReasoningFormat::kNone, true, false}},
    {"mistralai-Mixtral-8x22B-Instruct-v0.1", {CallFormat::kMistral, ReasoningFormat::kNone, true, false}},
    {"mistralai-Mixtral-8x7B-Instruct-v0.1", {CallFormat::kGeneric, ReasoningFormat::kNone, false, false}},
    {"tencent-Hunyuan-7B-Instruct", {CallFormat::kHunyuan, ReasoningFormat::kThinkTags}},
    {"vllm-tool_chat_template_hunyuan_a13b", {CallFormat::kToolCalls, ReasoningFormat::kThinkTags}},
    {"tencent-Hy3", {CallFormat::kHyV3, ReasoningFormat::kHyV3}},
    {"tencent-Hy3-preview", {CallFormat::kHyV3Preview, ReasoningFormat::kThinkTags}},
    {"upstage-Solar-Open-100B", {CallFormat::kSolarOpen, ReasoningFormat::kSolarOpen}},
};

std::filesystem::path templates() {
  const char* shared = std::getenv("QUIRE_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "/nowhere") / "data" / "templates";
}

const char* const kParameters = R"({"type": "object", "properties": {
    "city": {"type": "string", "description": "a city"}, "days": {"type": "integer", "description": "how many"},
    "list": {"type": "array", "items": {"type": "integer"}, "description": "numbers"},
    "now": {"type": "boolean", "description": "or later"}}})";
const std::vector<std::string> kArguments = {
    R"({"city": "Z\u00fcrich <b> 'x'", "days": 3, "list": [1, 2], "now": true})", R"({"city": "5"})"};
constexpr const char* kQuestion = "What is the weather?";

// The text that the template makes of a question, and, with `calls`, of an answer that is calls alone.
std::string rendered(const api::chat::ChatModel& model, std::size_t num_calls) {
  const api::chat::ChatTemplate& form = model.with_tools ? *model.with_tools : *model.plain;
  json::Object variables = model.special_tokens;
  json::Array messages = {json::Object{{"role", "user"}, {"content", kQuestion}}};
  json::Array calls;
  for (std::size_t i = 0; i < num_calls; ++i) {
    json::Value arguments = kArguments[i];
    if (form.object_arguments) arguments = *json::parse(kArguments[i], 8);
    calls.push_back(json::Object{{"id", "abcdefgh" + std::to_string(i)},
                                 {"type", "function"},
                                 {"function", json::Object{{"name", "get_weather"}, {"arguments", arguments}}}});
  }
  if (num_calls > 0) {
    messages.push_back(json::Object{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}});
    messages.push_back(json::Object{{"role", "tool"}, {"content", "rain"}, {"tool_call_id", "abcdefgh0"}});
  }
  variables["messages"] = std::move(messages);
  variables["tools"] = nullptr;
  if (form.shows_tools) {
    json::Object function = {{"name", "get_weather"}, {"description", "a description"}};
    function["parameters"] = *json::parse(kParameters, 8);
    variables["tools"] = json::Array{json::Object{{"type", "function"}, {"function", std::move(function)}}};
  }
  variables["add_generation_prompt"] = num_calls == 0;
  const Result<std::string> text = form.jinja.render(variables, std::tm{});
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
  return text.ok() ? *text : "";
}

class PublishedTemplates : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(templates())) {
      GTEST_SKIP() << "published templates are not here: QUIRE_SHARED names their folder";
    }
  }
  static std::shared_ptr<const api::chat::ChatModel> load(const std::string& name) {
    const quire::test::TemporaryFolder folder;
    folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
    Config config;
    config.tool_call_parser = config.reasoning_parser = "auto";
    config.chat_template = (templates() / (name + ".jinja")).string();
    return load_chat_model(config, *model::ModelFiles::directory(folder.path()));
  }
};

void expect_taught(const api::chat::ChatModel& model, const Taught& taught) {
  const api::chat::ChatTemplate& form = *model.plain;
  EXPECT_EQ(model.calls, taught.calls) << syntax_of(model.calls).parser;
  EXPECT_EQ(model.reasoning, taught.reasoning) << syntax_of(model.reasoning).parser;
  EXPECT_EQ(form.shows_tools, taught.shows_tools);
  EXPECT_EQ(form.shows_calls, taught.shows_calls);
}

// The calls in what the template makes of a conversation are read from it, with their arguments.
void expect_calls_read_back(const api::chat::ChatModel& model) {
  const bool shows_one = model.calls == CallFormat::kHarmony || model.calls == CallFormat::kLlamaJson;
  const std::size_t num_calls = shows_one ? 1 : 2;
  const std::string text = rendered(model, num_calls);
  // An answer begins where the prompt ends, or, in formats with marks of their own, at the first of them.
  const std::string prompt = rendered(model, 0);
  std::size_t begin = 0;
  while (begin < std::min(prompt.size(), text.size()) && prompt[begin] == text[begin]) ++begin;
  const api::chat::CallSyntax& syntax = syntax_of(model.calls);
  if (!syntax.begin.empty() && !syntax.is_bare)
    begin = text.find(api::chat::trimmed(syntax.begin), text.find(kQuestion));
  ASSERT_LE(begin, text.size()) << text;
  const std::vector<api::chat::CallableTool> tools = {api::chat::callable_tool("get_weather", kParameters)};
  api::chat::AnswerFormat answer;
  answer.calls = model.calls;
  answer.tools = tools;
  api::chat::AnswerParser parser(answer);
  api::chat::Deltas deltas;
  api::chat::AnswerParts parts;
  parser.push(text.substr(begin), deltas);
  parser.finish(deltas);
  parts.take(deltas);
  ASSERT_EQ(parts.calls.size(), num_calls) << text;
  for (std::size_t i = 0; i < num_calls; ++i) {
    EXPECT_EQ(parts.calls[i].name, "get_weather");
    EXPECT_EQ(boost::json::parse(parts.calls[i].arguments), boost::json::parse(kArguments[i])) << text;
  }
}

TEST_F(PublishedTemplates, TeachTheFormatsOfTheirModels) {
  std::size_t num_seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(templates())) {
    const std::string name = file.path().stem();
    if (file.path().extension() != ".jinja" || kMixtures.contains(name)) continue;
    ASSERT_TRUE(kTaught.contains(name)) << name << ": say here what it teaches";
    SCOPED_TRACE(name);
    expect_taught(*load(name), kTaught.at(name));
    ++num_seen;
  }
  EXPECT_EQ(num_seen, kTaught.size());
}

TEST_F(PublishedTemplates, RenderCallsThatAreReadBack) {
  for (const auto& [name, taught] : kTaught) {
    SCOPED_TRACE(name);
    if (taught.shows_calls) expect_calls_read_back(*load(name));
  }
}

class TemplatesOfMixtures : public PublishedTemplates, public ::testing::WithParamInterface<std::string> {};

TEST_P(TemplatesOfMixtures, TeachTheirFormatsAndRenderCallsThatAreReadBack) {
  if (!std::filesystem::exists(templates() / (GetParam() + ".jinja"))) {
    GTEST_SKIP() << "data/templates has no " << GetParam() << ".jinja";
  }
  const Taught& taught = kMixtures.at(GetParam());
  const auto model = load(GetParam());
  expect_taught(*model, taught);
  if (taught.shows_calls) expect_calls_read_back(*model);
}

std::vector<std::string> names_of_mixtures() {
  std::vector<std::string> names;
  for (const auto& [name, taught] : kMixtures) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(PublishedTemplates, TemplatesOfMixtures, ::testing::ValuesIn(names_of_mixtures()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace quire::app::published_templates_test
