#include "api/chat/messages.h"

#include <boost/json/serialize.hpp>

#include "tests/api/chat/chat_world.h"

namespace quire::api::chat::test {
namespace {

class Messages : public ChatBodies {
 protected:
  std::string shaped(const std::string& messages) {
    return quire::json::serialize(good(of_messages(messages)).messages);
  }
  void wrong(const std::string& messages, const std::string& param) { expect_refused(of_messages(messages), param); }
};

TEST_F(Messages, KeepRolesNamesAndTexts) {
  EXPECT_EQ(shaped(R"([{"role":"system","content":"be"},{"role":"user","content":"hi","name":"Ann"}])"),
            R"([{"role":"system","content":"be"},{"role":"user","content":"hi","name":"Ann"}])");
}

TEST_F(Messages, JoinTextPartsWithLineBreaks) {
  EXPECT_EQ(shaped(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
            R"([{"role":"user","content":"a\nb"}])");
}

TEST_F(Messages, GiveTheDeveloperTheSystemsPlaceWhereTheTemplateDoesNotKnowIt) {
  EXPECT_EQ(shaped(R"([{"role":"developer","content":"be"}])"), R"([{"role":"system","content":"be"}])");
  services_.chat = model_of("{% for m in messages %}{% if m.role == 'developer' %}D{% endif %}{% endfor %}");
  EXPECT_EQ(shaped(R"([{"role":"developer","content":"be"}])"), R"([{"role":"developer","content":"be"}])");
}

TEST_F(Messages, ReadTheArgumentsOfCalls) {
  const std::string call = R"({"id":"x","type":"function","function":{"name":"now","arguments":)";
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":null,"tool_calls":[)" + call + R"("{\"a\": [1]}"}}]},)" +
                   R"({"role":"tool","tool_call_id":"x","content":"12"}])"),
            R"([{"role":"assistant","content":null,"tool_calls":[)" + call + R"({"a":[1]}}}]},)" +
                R"({"role":"tool","content":"12","tool_call_id":"x"}])");
  EXPECT_EQ(
      shaped(R"([{"role":"assistant","tool_calls":[{"function":{"name":"now"}}]}])"),
      R"([{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"now","arguments":{}}}]}])");
}

TEST_F(Messages, KeepAnEmptyAssistantMessageAsNull) {
  const char* const null = R"([{"role":"assistant","content":null}])";
  EXPECT_EQ(shaped(null), null);
  EXPECT_EQ(shaped(R"([{"role":"assistant"}])"), null);
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":[]}])"), null);
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":null,"tool_calls":[]}])"), null);
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":""}])"), R"([{"role":"assistant","content":""}])");
}

TEST_F(Messages, GiveTemplatesArgumentsAsTextThatTakeNoObjects) {
  services_.chat = model_of(
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}");
  EXPECT_FALSE(services_.chat->plain->object_arguments);
  EXPECT_EQ(
      shaped(R"([{"role":"assistant","tool_calls":[{"function":{"name":"now","arguments":"{ \"a\":1}"}}]}])"),
      R"([{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"now","arguments":"{ \"a\":1}"}}]}])");
}

TEST_F(Messages, TakeArgumentsThatWereCutShort) {
  const auto call = [](const std::string& arguments) {
    return R"([{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"now","arguments":)" +
           arguments + "}}]}]";
  };
  for (const char* cut : {R"("{\"a\": ")", R"("[]")", R"("7")", R"("not JSON")", R"("")"}) {
    EXPECT_EQ(shaped(call(cut)), call("{}")) << cut;
  }
  services_.chat = model_of(
      "{% for m in messages %}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}");
  EXPECT_EQ(shaped(call(R"("{\"a\": ")")), call(R"("{\"a\": ")"));
}

TEST_F(Messages, TakeTheShapesThatOtherServersTake) {
  EXPECT_EQ(
      shaped(R"([{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"output_text","text":"b"},"c"]},)"
             R"({"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},)"
             R"({"role":"tool","tool_call_id":"x","content":null},{"role":"tool","tool_call_id":"y","content":[]},)"
             R"({"role":"tool","tool_call_id":"z"}])"),
      R"([{"role":"user","content":"a\nb\nc"},{"role":"assistant","content":"no"},)"
      R"({"role":"tool","content":"","tool_call_id":"x"},{"role":"tool","content":"","tool_call_id":"y"},)"
      R"({"role":"tool","content":"","tool_call_id":"z"}])");
}

TEST_F(Messages, ReadCallsOfCustomToolsAsTheirInput) {
  EXPECT_EQ(
      shaped(
          R"([{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"+a"}}]}])"),
      R"([{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"patch",)"
      R"("arguments":{"input":"+a"}}}]}])");
}

TEST_F(Messages, PutReasoningUnderAllOfItsNames) {
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":"a","reasoning":"r"}])"),
            R"([{"role":"assistant","content":"a","reasoning_content":"r","reasoning":"r","thinking":"r"}])");
}

TEST_F(Messages, PassOverWhatNobodyKnowsAndSaySo) {
  const ChatRequest request = good(of_messages(
      R"([{"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":null,"function_call":null,"mood":"x"}])"));
  ASSERT_EQ(request.unknown_fields.size(), 1u);
  EXPECT_EQ(request.unknown_fields[0], "messages[0].mood");
}

TEST_F(Messages, AreRefusedWithThePathOfWhatIsWrong) {
  wrong("[]", "messages");
  wrong("{}", "messages");
  wrong("\"hi\"", "messages");
  wrong("[1]", "messages[0]");
  wrong(R"([{"content":"x"}])", "messages[0].role");
  wrong(R"([{"role":7,"content":"x"}])", "messages[0].role");
  wrong(R"([{"role":"function","content":"x"}])", "messages[0].role");
  wrong(R"([{"role":"wizard","content":"x"}])", "messages[0].role");
  wrong(R"([{"role":"user"}])", "messages[0].content");
  wrong(R"([{"role":"user","content":null}])", "messages[0].content");
  wrong(R"([{"role":"user","content":7}])", "messages[0].content");
  wrong(R"([{"role":"user","content":[]}])", "messages[0].content");
  wrong(R"([{"role":"user","content":"a"},{"role":"user","content":[7]}])", "messages[1].content[0]");
  wrong(R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])", "messages[0].content[0].type");
  wrong(R"([{"role":"user","content":[{"type":"refusal","text":"a"}]}])", "messages[0].content[0].refusal");
  wrong(R"([{"role":"user","content":[{"text":"a"}]}])", "messages[0].content[0].type");
  wrong(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}])",
        "messages[0].content[1].type");
  wrong(R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text");
  wrong(R"([{"role":"user","content":[{"type":"text","text":1}]}])", "messages[0].content[0].text");
  wrong(R"([{"role":"user","content":"a","name":1}])", "messages[0].name");
  wrong(R"([{"role":"tool","content":"a","tool_call_id":1}])", "messages[0].tool_call_id");
  wrong(R"([{"role":"assistant","content":"a","reasoning":1}])", "messages[0].reasoning");
  wrong(R"([{"role":"assistant","content":"a","function_call":{}}])", "messages[0].function_call");
  wrong(R"([{"role":"user","content":"a","tool_calls":[{"function":{"name":"f"}}]}])", "messages[0].tool_calls");
  const auto calls = [](const std::string& call) { return R"([{"role":"assistant","tool_calls":[)" + call + "]}]"; };
  wrong(R"([{"role":"assistant","content":"","tool_calls":{}}])", "messages[0].tool_calls");
  wrong(calls("1"), "messages[0].tool_calls[0]");
  wrong(calls("{}"), "messages[0].tool_calls[0].function");
  wrong(calls(R"({"type":"mcp","function":{"name":"f"}})"), "messages[0].tool_calls[0].type");
  wrong(calls(R"({"type":"custom","function":{"name":"f"}})"), "messages[0].tool_calls[0].custom");
  wrong(calls(R"({"type":"custom","custom":{"name":"f","input":7}})"), "messages[0].tool_calls[0].custom.input");
  wrong(calls(R"({"id":1,"function":{"name":"f"}})"), "messages[0].tool_calls[0].id");
  wrong(calls(R"({"function":{}})"), "messages[0].tool_calls[0].function.name");
  wrong(calls(R"({"function":{"name":"f","arguments":[1]}})"), "messages[0].tool_calls[0].function.arguments");
}

TEST_F(Messages, ArePartsCallsAndNumberWithinTheirLimits) {
  const std::string message = R"({"role":"user","content":"a"})";
  const std::string part = R"({"type":"text","text":"a"})";
  const std::string call = R"({"function":{"name":"f"}})";
  for (const std::size_t count : {4095u, 4096u}) {
    EXPECT_EQ(refusal(of_messages(list_of(message, count))), "");
  }
  wrong(list_of(message, 4097), "messages");
  for (const std::size_t count : {1023u, 1024u}) {
    EXPECT_EQ(refusal(of_messages(R"([{"role":"user","content":)" + list_of(part, count) + "}]")), "");
  }
  wrong(R"([{"role":"user","content":)" + list_of(part, 1025) + "}]", "messages[0].content");
  for (const std::size_t count : {127u, 128u}) {
    EXPECT_EQ(refusal(of_messages(R"([{"role":"assistant","tool_calls":)" + list_of(call, count) + "}]")), "");
  }
  wrong(R"([{"role":"assistant","tool_calls":)" + list_of(call, 129) + "}]", "messages[0].tool_calls");
}

TEST_F(Messages, NestArgumentsFortyEightDeepAndNoDeeper) {
  const auto nested = [](int lists) {
    return R"({"a":)" + std::string(static_cast<std::size_t>(lists), '[') +
           std::string(static_cast<std::size_t>(lists), ']') + "}";
  };
  const auto as_object = [&](int lists) {
    return R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" + nested(lists) + "}}]}]";
  };
  EXPECT_EQ(refusal(of_messages(as_object(46))), "");
  EXPECT_EQ(refusal(of_messages(as_object(47))), "");
  wrong(as_object(48), "messages[0].tool_calls[0].function.arguments");
}

}  // namespace
}  // namespace quire::api::chat::test
