#include "app/model/chat_templates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/answer/calls/call_format.h"
#include "api/answer/reasoning_format.h"
#include "core/base/start_error.h"
#include "tests/support/temporary_folder.h"

namespace quire::app::chat_templates_test {
namespace {

using api::chat::CallFormat;
using api::chat::ReasoningFormat;

// Reads the chat model of a directory with these files.
class ChatTemplates : public ::testing::Test {
 protected:
  ChatTemplates() { config_.tool_call_parser = config_.reasoning_parser = "auto"; }

  std::string write(const std::string& name, const std::string& text) {
    folder_.write(name, text);
    return folder_.path_of(name);
  }
  std::shared_ptr<const api::chat::ChatModel> load() {
    return load_chat_model(config_, *model::ModelFiles::directory(folder_.path()));
  }
  std::string told() { return tokenizer_info(config_, *model::ModelFiles::directory(folder_.path())); }
  static std::string rendered(const std::optional<api::chat::ChatTemplate>& form) {
    return form ? form->jinja.render({}, std::tm{}).value() : "none";
  }
  std::string refusal() {
    try {
      load();
    } catch (const StartError& error) {
      return error.what();
    }
    return "";
  }

  Config config_;
  const quire::test::TemporaryFolder folder_;
};

TEST_F(ChatTemplates, AreNoneWhereTheModelHasNone) {
  EXPECT_FALSE(load()->plain);
  write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_FALSE(load()->plain);
}

TEST_F(ChatTemplates, AreTakenFromTheFirstPlaceThatHasOne) {
  write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(rendered(load()->plain), "config");
  write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(rendered(load()->plain), "json");
  write("chat_template.jinja", "jinja");
  EXPECT_EQ(rendered(load()->plain), "jinja");
  config_.chat_template = write("mine", "mine");
  EXPECT_EQ(rendered(load()->plain), "mine");
}

TEST_F(ChatTemplates, MayHaveNames) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "rag", "template": "{% if %}"}, {"name": "default", "template": "D"}]})");
  EXPECT_EQ(rendered(load()->plain), "D");
  EXPECT_EQ(rendered(load()->with_tools), "T");
}

TEST_F(ChatTemplates, MayStandInAFolder) {
  write("additional_chat_templates/rag.jinja", "{% if %}");
  write("additional_chat_templates/tool_use.jinja", "T");
  write("tokenizer_config.json", R"({"chat_template": "old"})");
  EXPECT_EQ(rendered(load()->plain), "none");
  EXPECT_EQ(rendered(load()->with_tools), "T");
  write("chat_template.jinja", "D");
  EXPECT_EQ(rendered(load()->plain), "D");
  EXPECT_EQ(rendered(load()->with_tools), "T");
}

TEST_F(ChatTemplates, KnowTheSpecialTokens) {
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null})");
  write("special_tokens_map.json", R"({"eos_token": "other", "unk_token": {"content": "<unk>"}})");
  EXPECT_EQ(json::serialize(load()->special_tokens), R"({"eos_token":"other","unk_token":"<unk>","bos_token":"<s>"})");
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "added_tokens_decoder": {}})");
  EXPECT_EQ(json::serialize(load()->special_tokens), R"({"bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>"})");
}

TEST_F(ChatTemplates, TeachForms) {
  write("chat_template.jinja", "<tool_call></think>");
  EXPECT_EQ(load()->calls, CallFormat::kHermes);
  EXPECT_EQ(load()->reasoning, ReasoningFormat::kThinkTags);
  config_.reasoning_parser = config_.tool_call_parser = "none";
  EXPECT_EQ(load()->calls, CallFormat::kNone);
  EXPECT_EQ(load()->reasoning, ReasoningFormat::kNone);
  for (const api::chat::CallSyntax& one : api::chat::call_syntaxes()) {
    config_.tool_call_parser = one.parser;
    EXPECT_EQ(load()->calls, one.format) << one.parser;
  }
  for (const api::chat::ReasoningSyntax& one : api::chat::reasoning_syntaxes()) {
    config_.reasoning_parser = one.parser;
    EXPECT_EQ(load()->reasoning, one.format) << one.parser;
  }
}

TEST_F(ChatTemplates, AreInTheTokenizerInfo) {
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "vocab_file": "/x", )"
        R"("tokenizer_class": "LlamaTokenizer", )"
        R"("added_tokens_decoder": {"0": {"content": "<unk>", "special": true}}, )"
        R"("extra": [{"content": "<a>"}, 7], "chat_template": "old"})");
  write("chat_template.jinja", "new");
  EXPECT_EQ(told(), R"({"bos_token":"<s>","eos_token":"</s>","tokenizer_class":"LlamaTokenizer",)"
                    R"("added_tokens_decoder":{"0":"<unk>"},"extra":["<a>",7],"chat_template":"new"})");
}

TEST_F(ChatTemplates, ThatCannotBeReadStopTheStart) {
  write("chat_template.jinja", "a\n{% if %}");
  EXPECT_NE(refusal().find("chat_template.jinja: chat template, line 2"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("--chat-template"), std::string::npos) << refusal();
  config_.chat_template = folder_.path_of("nowhere");
  EXPECT_NE(refusal().find("no such file"), std::string::npos) << refusal();
  config_.chat_template.clear();
  std::filesystem::remove(folder_.path_of("chat_template.jinja"));
  write("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_NE(refusal().find("chat_template must be"), std::string::npos) << refusal();
  write("tokenizer_config.json", "no json");
  EXPECT_NE(refusal().find("not a JSON object"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace quire::app::chat_templates_test
