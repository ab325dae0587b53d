#include "api/chat/turn.h"

#include "tests/api/chat/answer_rig.h"

namespace quire::api::chat::test {
namespace {

class Turns : public ChatBodies {
 protected:
  Allowance patient_;
  static std::string with_tool(const std::string& members = "") {
    return with(R"("tools":[{"type":"function","function":{"name":"now"}}])" + (members.empty() ? "" : "," + members));
  }
};

TEST_F(Turns, BeginWithThePromptAndKeepNothingElseOfTheConversation) {
  ChatRequest request = good(with_tool());
  Turn turn(services_);
  const auto prompts = turn.begin(request, patient_);
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(prompts->front(), services_.tokenizer->encode("<user>hi\n<assistant>", false));
  EXPECT_TRUE(request.messages.empty());
  EXPECT_TRUE(request.tools.empty());
}

TEST_F(Turns, SayTheSameInPartsAndInItems) {
  ChatRequest request = good(with_tool());
  Turn turn(services_);
  ASSERT_TRUE(turn.begin(request, patient_));
  for (const std::string& text : said_texts()) {
    const AnswerParts parts = turn.parts_of(text);
    std::string reasoning, content;
    std::size_t num_calls = 0;
    for (const AnswerItem& item : turn.items_of(text)) {
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

TEST_F(Turns, NameTheFieldThatTheConversationWasGivenIn) {
  ChatRequest request = good(with(""));
  request.prompt_field = "input";
  services_.chat = nullptr;
  Turn turn(services_);
  EXPECT_EQ(turn.begin(request, patient_).error().param, "input");
}

}  // namespace
}  // namespace quire::api::chat::test
