#include "api/responses/input_items.h"

#include <boost/json/serialize.hpp>

#include "api/responses/responses_request.h"
#include "tests/api/chat/chat_world.h"

namespace quire::api::responses::test {
namespace {

using chat::test::list_of;

class InputItems : public chat::test::Bodies<ResponsesRequest, parse_responses_request> {
 protected:
  static std::string of_input(const std::string& input) { return R"({"input":)" + input + "}"; }
  std::string shaped(const std::string& input) { return quire::json::serialize(good(of_input(input)).messages); }
  void wrong(const std::string& input, const std::string& param) { expect_refused(of_input(input), param); }
};

TEST_F(InputItems, AreOneMessageOfTheUsersWhereThereIsOnlyAText) {
  EXPECT_EQ(shaped(R"("hi")"), R"([{"role":"user","content":"hi"}])");
}

TEST_F(InputItems, AreMessagesWithOrWithoutAType) {
  EXPECT_EQ(
      shaped(R"([{"role":"developer","content":"be"},{"type":"message","role":"user",)"
             R"("content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},)"
             R"({"type":"message","role":"assistant","id":"m","status":"completed",)"
             R"("content":[{"type":"output_text","text":"c","annotations":[]}]}])"),
      R"([{"role":"system","content":"be"},{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"}])");
}

TEST_F(InputItems, JoinAnAssistantsTurn) {
  EXPECT_EQ(shaped(R"([{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},)"
                   R"({"type":"message","role":"assistant","content":"I look"},)"
                   R"({"type":"function_call","call_id":"c1","name":"now","arguments":"{\"a\":1}"},)"
                   R"({"type":"function_call","call_id":"c2","name":"get","arguments":""},)"
                   R"({"type":"function_call_output","call_id":"c1","output":"12"},)"
                   R"({"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"x"}]}])"),
            R"([{"role":"assistant","reasoning_content":"hm","reasoning":"hm","thinking":"hm","content":"I look",)"
            R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":{"a":1}}},)"
            R"({"id":"c2","type":"function","function":{"name":"get","arguments":{}}}]},)"
            R"({"role":"tool","content":"12","tool_call_id":"c1"},{"role":"tool","content":"x","tool_call_id":"c2"}])");
}

TEST_F(InputItems, BeginAnotherTurnWhereOneCannotGoOn) {
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])"),
            R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])");
  const std::string reasoning = R"({"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]})";
  const std::string reasoned = R"({"role":"assistant","reasoning_content":"s","reasoning":"s","thinking":"s",)";
  EXPECT_EQ(shaped("[" + reasoning + "," + reasoning + R"(,{"role":"user","content":"u"}])"),
            "[" + reasoned + R"("content":""},)" + reasoned + R"("content":""},{"role":"user","content":"u"}])");
}

TEST_F(InputItems, PassOverReasoningThatOnlyItsWriterCanRead) {
  EXPECT_EQ(shaped(R"([{"type":"reasoning","summary":[],"encrypted_content":"x"},{"role":"user","content":"u"}])"),
            R"([{"role":"user","content":"u"}])");
}

TEST_F(InputItems, AreAnEmptyTextWhereThereAreNone) {
  EXPECT_EQ(shaped("[]"), shaped(R"("")"));
  EXPECT_EQ(quire::json::serialize(good(R"({"input":[],"instructions":"be"})").messages),
            R"([{"role":"system","content":"be"},{"role":"user","content":""}])");
}

TEST_F(InputItems, MayBeEmptyWithoutText) {
  EXPECT_EQ(shaped(R"([{"role":"assistant","content":[]},{"type":"function_call_output","call_id":"a","output":[]},)"
                   R"({"type":"function_call_output","call_id":"b","output":null}])"),
            R"([{"role":"assistant","content":""},{"role":"tool","content":"","tool_call_id":"a"},)"
            R"({"role":"tool","content":"","tool_call_id":"b"}])");
}

TEST_F(InputItems, TakeArgumentsThatWereCutShort) {
  EXPECT_EQ(
      shaped(R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\": "}])"),
      R"([{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}],)"
      R"("content":null}])");
}

TEST_F(InputItems, ReadCallsOfCustomToolsAsTheirInput) {
  EXPECT_EQ(shaped(R"([{"type":"custom_tool_call","call_id":"c","name":"patch","input":"+a"},)"
                   R"({"type":"custom_tool_call_output","call_id":"c","output":"done"}])"),
            R"([{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"patch",)"
            R"("arguments":{"input":"+a"}}}],"content":null},{"role":"tool","content":"done","tool_call_id":"c"}])");
}

TEST_F(InputItems, OfToolsThatAServerRanAreLeftOut) {
  const ResponsesRequest request = good(
      of_input(R"([{"role":"user","content":"u"},{"type":"web_search_call","id":"w"},{"type":"mcp_call","id":"m"}])"));
  EXPECT_EQ(request.messages.size(), 1u);
  EXPECT_EQ(request.left_out, (std::vector<std::string>{"input[1]", "input[2]"}));
}

TEST_F(InputItems, AreRefusedWithThePathOfWhatIsWrong) {
  wrong("7", "input");
  wrong("[7]", "input[0]");
  wrong("[{}]", "input[0].type");
  wrong(R"([{"type":7}])", "input[0].type");
  wrong(R"([{"type":"item_reference","id":"x"}])", "input[0].type");
  wrong(R"([{"type":"computer_call_output","output":{}}])", "input[0].type");
  wrong(R"([{"type":"custom_tool_call","call_id":"c","name":"f"}])", "input[0].input");
  wrong(R"([{"role":"user","content":[]}])", "input[0].content");
  wrong(R"([{"type":"message","content":"x"}])", "input[0].role");
  wrong(R"([{"role":"tool","content":"x"}])", "input[0].role");
  wrong(R"([{"role":"user"}])", "input[0].content");
  wrong(R"([{"role":"user","content":7}])", "input[0].content");
  wrong(R"([{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])", "input[0].content[0].type");
  wrong(R"([{"role":"user","content":[{"type":"input_file"}]}])", "input[0].content[0].type");
  wrong(R"([{"role":"user","content":[{"type":"input_text"}]}])", "input[0].content[0].text");
  wrong(R"([{"type":"reasoning","summary":[{"type":"other","text":"x"}]}])", "input[0].summary[0].type");
  wrong(R"([{"type":"function_call","name":"f","arguments":"{}"}])", "input[0].call_id");
  wrong(R"([{"type":"function_call","call_id":"c","arguments":"{}"}])", "input[0].name");
  wrong(R"([{"type":"function_call","call_id":"c","name":"f"}])", "input[0].arguments");
  wrong(R"([{"type":"function_call","call_id":"c","name":"f","arguments":[]}])", "input[0].arguments");
  wrong(R"([{"type":"function_call_output","output":"x"}])", "input[0].call_id");
  wrong(R"([{"type":"function_call_output","call_id":"c"}])", "input[0].output");
  wrong(R"([{"type":"function_call_output","call_id":"c","output":{}}])", "input[0].output");
}

TEST_F(InputItems, AreWithinTheirLimits) {
  const std::string message = R"({"role":"user","content":"a"})";
  const std::string part = R"({"type":"input_text","text":"a"})";
  const std::string call = R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"})";
  for (const std::size_t count : {4095u, 4096u}) EXPECT_EQ(refusal(of_input(list_of(message, count))), "");
  wrong(list_of(message, 4097), "input");
  const auto of_parts = [&](std::size_t count) {
    return R"([{"role":"user","content":)" + list_of(part, count) + "}]";
  };
  for (const std::size_t count : {1023u, 1024u}) EXPECT_EQ(refusal(of_input(of_parts(count))), "");
  wrong(of_parts(1025), "input[0].content");
  for (const std::size_t count : {127u, 128u}) EXPECT_EQ(refusal(of_input(list_of(call, count))), "");
  wrong(list_of(call, 129), "input[128]");
}

}  // namespace
}  // namespace quire::api::responses::test
