#include "api/chat/assistant_message.h"

#include "tests/api/chat/answer_rig.h"

namespace quire::api::chat::test {
namespace {

class AssistantMessages : public ChatBodies {
 protected:
  Allowance patient_;
  static std::string with_tool(const std::string& members = "") {
    return with(R"("tools":[{"type":"function","function":{"name":"now"}}])" + (members.empty() ? "" : "," + members));
  }
};

TEST_F(AssistantMessages, BeginWithThePromptAndKeepNothingElseOfTheConversation) {
  ChatRequest request = good(with_tool());
  AssistantMessage assistant(services_);
  const auto prompts = assistant.begin(request, patient_);
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(prompts->front(), services_.tokenizer->encode("<user>hi\n<assistant>", false));
  EXPECT_TRUE(request.messages.empty());
  EXPECT_TRUE(request.tools.empty());
}

TEST_F(AssistantMessages, SayTheSameInPartsAndInItems) {
  ChatRequest request = good(with_tool());
  AssistantMessage assistant(services_);
  ASSERT_TRUE(assistant.begin(request, patient_));
  for (const std::string& text : said_texts()) {
    const AnswerParts parts = assistant.parts_of(text);
    std::string reasoning, content;
    std::size_t num_calls = 0;
    for (const AnswerItem& item : assistant.items_of(text)) {
      if (item.kind == AnswerItem::Kind::kReasoning) reasoning += item.text;
      if (item.kind == AnswerItem::Kind::kContent) content += item.text;
      if (item.kind != AnswerItem::Kind::kCall) continue;
      ASSERT_LT(num_calls, parts.calls.size());
      EXPECT_EQ(item.call, num_calls);
      EXPECT_EQ(item.name, parts.calls[num_calls].name);
      EXPECT_EQ(item.text, parts.calls[num_calls++].arguments);
    }
    EXPECT_EQ(reasoning, parts.reasoning);
    EXPECT_EQ(content, parts.content);
    EXPECT_EQ(num_calls, parts.calls.size());
  }
}

TEST_F(AssistantMessages, NameTheFieldThatTheConversationWasGivenIn) {
  ChatRequest request = good(with(""));
  request.prompt_field = "input";
  services_.chat = nullptr;
  AssistantMessage assistant(services_);
  EXPECT_EQ(assistant.begin(request, patient_).error().param, "input");
}

}  // namespace
}  // namespace quire::api::chat::test
