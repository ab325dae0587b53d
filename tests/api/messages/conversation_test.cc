#include "api/messages/conversation.h"

#include <boost/json/serialize.hpp>

#include "tests/api/chat/chat_world.h"

namespace quire::api::messages::test {
namespace {

using chat::test::list_of;

class Conversations : public chat::test::Bodies<MessagesRequest, parse_messages_request> {
 protected:
  static std::string of_messages(const std::string& messages, const std::string& more = "") {
    return R"({"max_tokens":5,"messages":)" + messages + (more.empty() ? "" : "," + more) + "}";
  }
  std::string shaped(const std::string& messages, const std::string& more = "") {
    return quire::json::serialize(good(of_messages(messages, more)).messages);
  }
  void wrong(const std::string& messages, const std::string& param) { expect_refused(of_messages(messages), param); }
};

constexpr const char* kHi = R"([{"role":"user","content":"hi"}])";

TEST_F(Conversations, KeepTextsAndJoinBlocksWithLineBreaks) {
  EXPECT_EQ(shaped(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
                   R"({"role":"assistant","content":"c"},{"role":"user","content":"d"}])"),
            R"([{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}])");
}

TEST_F(Conversations, PutTheSystemInFront) {
  const std::string expected = R"([{"role":"system","content":"be"},{"role":"user","content":"hi"}])";
  EXPECT_EQ(shaped(kHi, R"("system":"be")"), expected);
  EXPECT_EQ(shaped(kHi, R"("system":[{"type":"text","text":"be","cache_control":{"type":"ephemeral"}}])"), expected);
  EXPECT_EQ(shaped(kHi, R"("system":[])"), kHi);
  expect_refused(of_messages(kHi, R"("system":7)"), "system");
  expect_refused(of_messages(kHi, R"("system":[{"type":"image"}])"), "system[0].type");
}

TEST_F(Conversations, ReadThinkingCallsAndTheirResults) {
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},)"
                   R"({"type":"text","text":"I look"},{"type":"tool_use","id":"c1","name":"now","input":{"a":1}},)"
                   R"({"type":"redacted_thinking","data":"x"}]},)"
                   R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"12"},)"
                   R"({"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"x"}]},)"
                   R"({"type":"tool_result","tool_use_id":"c3"},{"type":"text","text":"so?"}]}])"),
            R"([{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"now",)"
            R"("arguments":{"a":1}}}],"content":"I look","reasoning_content":"hm","reasoning":"hm","thinking":"hm"},)"
            R"({"role":"tool","content":"12","tool_call_id":"c1"},{"role":"tool","content":"x","tool_call_id":"c2"},)"
            R"({"role":"tool","content":"","tool_call_id":"c3"},{"role":"user","content":"so?"}])");
}

TEST_F(Conversations, TakeAnEmptyAssistantMessageAndCallsThatWereCutShort) {
  const char* const nothing = R"([{"role":"assistant","content":""},{"role":"user","content":"u"}])";
  for (const char* content : {"null", "[]", "\"\""}) {
    EXPECT_EQ(
        shaped(R"([{"role":"assistant","content":)" + std::string(content) + R"(},{"role":"user","content":"u"}])"),
        nothing)
        << content;
  }
  for (const char* input : {"", R"(,"input":null)", R"(,"input":"{\"a\": ")", R"(,"input":{})"}) {
    EXPECT_EQ(
        shaped(R"([{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f")" + std::string(input) +
               "}]}]"),
        R"([{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}],)"
        R"("content":null}])")
        << input;
  }
}

TEST_F(Conversations, LeaveOutBlocksOfToolsThatAServerRan) {
  const MessagesRequest request = good(of_messages(
      R"([{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search",)"
      R"("input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"a"}]}])"));
  EXPECT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.left_out, (std::vector<std::string>{"messages[1].content[0]", "messages[1].content[1]"}));
}

TEST_F(Conversations, GoOnWithTheAssistantsLastWords) {
  const MessagesRequest request =
      good(of_messages(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])"));
  EXPECT_TRUE(request.continue_final_message);
  EXPECT_FALSE(request.add_generation_prompt);
  EXPECT_FALSE(good(of_messages(kHi)).continue_final_message);
  EXPECT_TRUE(good(of_messages(kHi)).add_generation_prompt);
  EXPECT_FALSE(good(of_messages(R"([{"role":"assistant","content":"b"},{"role":"user","content":"a"}])"))
                   .continue_final_message);
  EXPECT_FALSE(
      good(of_messages(R"([{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}])"))
          .continue_final_message);
}

TEST_F(Conversations, AreRefusedWithThePathOfWhatIsWrong) {
  expect_refused(R"({"max_tokens":5})", "messages");
  wrong("{}", "messages");
  wrong("[]", "messages");
  wrong("[7]", "messages[0]");
  wrong(R"([{"content":"x"}])", "messages[0].role");
  wrong(R"([{"role":"tool","content":"x"}])", "messages[0].role");
  wrong(R"([{"role":"user"}])", "messages[0].content");
  wrong(R"([{"role":"user","content":7}])", "messages[0].content");
  wrong(R"([{"role":"user","content":[]}])", "messages[0].content");
  const auto block = [&](const std::string& role, const std::string& members, const std::string& param) {
    wrong(R"([{"role":")" + role + R"(","content":[)" + members + "]}]", "messages[0].content[0]" + param);
  };
  block("user", "7", "");
  block("user", "{}", ".type");
  block("user", R"({"type":"image","source":{}})", ".type");
  block("user", R"({"type":"document"})", ".type");
  block("user", R"({"type":"tool_use","id":"c","name":"f","input":{}})", ".type");
  block("user", R"({"type":"text"})", ".text");
  block("user", R"({"type":"tool_result","content":"x"})", ".tool_use_id");
  block("user", R"({"type":"tool_result","tool_use_id":"c","content":7})", ".content");
  block("user", R"({"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]})", ".content[0].type");
  block("assistant", R"({"type":"tool_result","tool_use_id":"c"})", ".type");
  block("assistant", R"({"type":"container_upload","file_id":"c"})", ".type");
  block("assistant", R"({"type":"thinking"})", ".thinking");
  block("assistant", R"({"type":"tool_use","name":"f","input":{}})", ".id");
  block("assistant", R"({"type":"tool_use","id":"c","input":{}})", ".name");
  block("assistant", R"({"type":"tool_use","id":"c","name":"f","input":[]})", ".input");
  block("assistant", R"({"type":"tool_use","id":"c","name":"f","input":7})", ".input");
}

TEST_F(Conversations, AreWithinTheirLimits) {
  const std::string message = R"({"role":"user","content":"a"})";
  const std::string block = R"({"type":"text","text":"a"})";
  const std::string call = R"({"type":"tool_use","id":"c","name":"f","input":{}})";
  const auto of_blocks = [](const char* role, const std::string& blocks) {
    return R"([{"role":")" + std::string(role) + R"(","content":)" + blocks + "}]";
  };
  for (const std::size_t count : {4095u, 4096u}) EXPECT_EQ(refusal(of_messages(list_of(message, count))), "");
  wrong(list_of(message, 4097), "messages");
  for (const std::size_t count : {1023u, 1024u}) {
    EXPECT_EQ(refusal(of_messages(of_blocks("user", list_of(block, count)))), "");
    EXPECT_EQ(refusal(of_messages(kHi, R"("system":)" + list_of(block, count))), "");
  }
  wrong(of_blocks("user", list_of(block, 1025)), "messages[0].content");
  expect_refused(of_messages(kHi, R"("system":)" + list_of(block, 1025)), "system");
  for (const std::size_t count : {127u, 128u}) {
    EXPECT_EQ(refusal(of_messages(of_blocks("assistant", list_of(call, count)))), "");
  }
  wrong(of_blocks("assistant", list_of(call, 129)), "messages[0]");
}

}  // namespace
}  // namespace quire::api::messages::test
