#include "app/chat/conversation.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace quire::app {
namespace {

boost::json::object request_of(const Conversation& conversation) {
  return boost::json::parse(conversation.request()).as_object();
}
std::string messages_of(const Conversation& conversation) {
  return boost::json::serialize(request_of(conversation).at("messages"));
}
boost::json::object answer(const char* text) { return {{"role", "assistant"}, {"content", text}}; }

TEST(Conversation, IsTheBodyOfAStreamedRequest) {
  Conversation talk("m");
  talk.set_system("short");
  talk.ask("hello");
  talk.add_answer(answer("hi"));
  talk.ask("more \"quotes\"\n");
  EXPECT_EQ(messages_of(talk), R"([{"role":"system","content":"short"},{"role":"user","content":"hello"},)"
                               R"({"role":"assistant","content":"hi"},{"role":"user","content":"more \"quotes\"\n"}])");
  const boost::json::object request = request_of(talk);
  EXPECT_EQ(request.at("model"), "m");
  EXPECT_EQ(request.at("stream"), true);
  EXPECT_EQ(request.at("stream_options").at("include_usage"), true);
  EXPECT_FALSE(request.contains("tools"));
}

TEST(Conversation, TakesBackTheLastQuestionWithAllThatFollowed) {
  Conversation talk("m");
  talk.ask("one");
  talk.add_answer(answer("1"));
  const std::string before = messages_of(talk);
  talk.ask("two");
  talk.add_answer(answer(""));
  talk.add_tool_result("c1", "7");
  talk.take_back_question();
  EXPECT_EQ(messages_of(talk), before);
  talk.take_back_question();
  talk.take_back_question();
  EXPECT_EQ(messages_of(talk), "[]");
}

TEST(Conversation, SettingsAreJsonOrTextAndCanBeRemoved) {
  Conversation talk("m");
  EXPECT_TRUE(talk.set("temperature", "0.25"));
  EXPECT_TRUE(talk.set("stop", R"(["a","b"])"));
  EXPECT_TRUE(talk.set("reasoning_effort", "low"));
  EXPECT_TRUE(talk.set("seed", "1"));
  EXPECT_TRUE(talk.set("seed", ""));
  const boost::json::object request = request_of(talk);
  EXPECT_EQ(request.at("temperature"), 0.25);
  EXPECT_EQ(request.at("stop").as_array().size(), 2u);
  EXPECT_EQ(request.at("reasoning_effort"), "low");
  EXPECT_FALSE(request.contains("seed"));
  for (const char* name : {"model", "messages", "tools", "stream", "stream_options", "n"}) {
    EXPECT_FALSE(talk.set(name, "1")) << name;
  }
}

TEST(Conversation, TakesToolsAsAListOrInAnObject) {
  const std::string list = R"([{"type":"function","function":{"name":"f"}}])";
  Conversation talk("m");
  for (const std::string& text : {list, R"({"tools":)" + list + "}"}) {
    ASSERT_TRUE(talk.set_tools(text));
    EXPECT_EQ(boost::json::serialize(request_of(talk).at("tools")), list);
  }
  for (const char* wrong : {"{", "7", R"({"tools":7})", "{}"}) {
    EXPECT_FALSE(talk.set_tools(wrong)) << wrong;
    EXPECT_EQ(talk.tools().size(), 1u) << "those before stay";
  }
  EXPECT_TRUE(talk.set_tools(""));
  EXPECT_FALSE(request_of(talk).contains("tools"));
}

TEST(Conversation, IsTheSameAfterSavingAndLoading) {
  Conversation talk("m");
  talk.set_system("short");
  ASSERT_TRUE(talk.set("temperature", "0"));
  ASSERT_TRUE(talk.set_tools(R"([{"type":"function","function":{"name":"f"}}])"));
  talk.ask("one");
  talk.add_answer({{"role", "assistant"}, {"content", ""}, {"tool_calls", boost::json::array{1}}});
  talk.add_tool_result("c1", "7");
  talk.add_answer(answer("\xc3\xa9\n"));
  Conversation loaded("m");
  loaded.ask("something else");
  ASSERT_TRUE(loaded.load(talk.saved()));
  EXPECT_EQ(loaded.request(), talk.request());
  EXPECT_EQ(loaded.system(), "short");
}

TEST(Conversation, IsUnchangedByAFileThatIsNone) {
  Conversation talk("m");
  talk.ask("one");
  const std::string before = talk.request();
  for (const char* wrong : {"", "{", "[]", "7", "{}", R"({"messages":7})"}) {
    EXPECT_FALSE(talk.load(wrong)) << wrong;
    EXPECT_EQ(talk.request(), before);
  }
}

}  // namespace
}  // namespace quire::app
