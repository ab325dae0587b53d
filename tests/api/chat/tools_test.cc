#include "api/chat/tools.h"

#include <boost/json/serialize.hpp>

#include "tests/api/chat/chat_world.h"

namespace quire::api::chat::test {
namespace {

class Tools : public ChatBodies {
 protected:
  static std::string tool(const std::string& name, const std::string& more = "") {
    return R"({"type":"function","function":{"name":")" + name + "\"" + more + "}}";
  }
  static std::string tools(const std::string& list, const std::string& more = "") {
    return with(R"("tools":[)" + list + "]" + more);
  }
  void wrong(const std::string& list, const std::string& param) { expect_refused(tools(list), param); }
};

TEST_F(Tools, AreForTheTemplateAsGivenButForStrict) {
  const std::string given =
      R"({"type":"function","function":{"name":"now","strict":true,"description":"d","parameters":{"b":1,"a":2},"return":{}}})";
  const ChatRequest request = good(tools(given));
  EXPECT_EQ(
      quire::json::serialize(request.tools),
      R"([{"type":"function","function":{"name":"now","description":"d","parameters":{"b":1,"a":2},"return":{}}}])");
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_EQ(request.functions[0].name, "now");
  EXPECT_EQ(request.functions[0].parameters, R"({"b":1,"a":2})");
  EXPECT_TRUE(request.functions[0].strict);
  EXPECT_TRUE(request.offers_tools());
  EXPECT_FALSE(request.forces_call());
}

TEST_F(Tools, MayBeLeftOutOrNone) {
  for (const char* members :
       {"", R"("tools":null)", R"("tools":[])", R"("tool_choice":"none")", R"("tool_choice":"auto")"}) {
    EXPECT_FALSE(good(with(members)).offers_tools()) << members;
  }
  EXPECT_FALSE(good(tools(tool("f"), R"(,"tool_choice":"none")")).offers_tools());
}

TEST_F(Tools, AreRefusedWithThePathOfWhatIsWrong) {
  expect_refused(with(R"("tools":{})"), "tools");
  wrong("1", "tools[0]");
  wrong("{}", "tools[0].function");
  wrong(R"({"type":7})", "tools[0].type");
  wrong(R"({"type":"function"})", "tools[0].function");
  wrong(R"({"type":"function","function":"f"})", "tools[0].function");
  wrong(R"({"type":"function","function":{}})", "tools[0].function.name");
  wrong(tool("two words"), "tools[0].function.name");
  wrong(tool(""), "tools[0].function.name");
  wrong(tool("f") + "," + tool("f"), "tools[1].function.name");
  wrong(tool("f", R"(,"description":1)"), "tools[0].function.description");
  wrong(tool("f", R"(,"parameters":[])"), "tools[0].function.parameters");
  wrong(tool("f", R"(,"strict":1)"), "tools[0].function.strict");
}

TEST_F(Tools, AreNumberAndNamesWithinTheirLimits) {
  for (const std::size_t length : {63u, 64u}) EXPECT_EQ(refusal(tools(tool(std::string(length, 'f')))), "");
  wrong(tool(std::string(65, 'f')), "tools[0].function.name");
  const auto many = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + tool("f" + std::to_string(i));
    return list;
  };
  EXPECT_EQ(refusal(tools(many(127))), "");
  EXPECT_EQ(refusal(tools(many(128))), "");
  wrong(many(129), "tools");
}

TEST_F(Tools, AreChosen) {
  const auto chosen = [&](const std::string& choice) {
    return good(tools(tool("f"), R"(,"tool_choice":)" + choice)).tool_choice;
  };
  EXPECT_EQ(chosen("\"auto\"").kind, ToolChoice::Kind::kAuto);
  EXPECT_EQ(chosen("\"required\"").kind, ToolChoice::Kind::kRequired);
  const ToolChoice named = chosen(R"({"type":"function","function":{"name":"f"}})");
  EXPECT_EQ(named.kind, ToolChoice::Kind::kNamed);
  EXPECT_EQ(named.name, "f");
}

TEST_F(Tools, AreChosenAmongThoseThatAreThere) {
  const auto choose = [&](const std::string& choice) { return tools(tool("f"), R"(,"tool_choice":)" + choice); };
  expect_refused(choose("\"maybe\""), "tool_choice");
  expect_refused(choose("true"), "tool_choice");
  expect_refused(choose("{}"), "tool_choice.function.name");
  expect_refused(choose(R"({"type":"custom","custom":{"name":"f"}})"), "tool_choice.type");
  expect_refused(choose(R"({"type":"allowed_tools"})"), "tool_choice.mode");
  expect_refused(choose(R"({"type":"function"})"), "tool_choice.function.name");
  expect_refused(choose(R"({"type":"function","function":{"name":7}})"), "tool_choice.function.name");
  expect_refused(choose(R"({"type":"function","function":{"name":"g"}})"), "tool_choice");
  expect_refused(with(R"("tool_choice":"required")"), "tool_choice");
}

TEST_F(Tools, MayLeaveOutTheirType) {
  const char* nested = R"({"function":{"name":"f"}})";
  EXPECT_EQ(quire::json::serialize(good(tools(nested)).tools), R"([{"type":"function","function":{"name":"f"}}])");
  const ChatRequest flat = good(tools(R"({"name":"f","description":"d","parameters":{}})"));
  EXPECT_EQ(quire::json::serialize(flat.tools),
            R"([{"type":"function","function":{"name":"f","description":"d","parameters":{}}}])");
  const auto named = [](const char* choice) { return R"(,"tool_choice":)" + std::string(choice); };
  for (const char* choice : {R"({"function":{"name":"f"}})", R"({"name":"f"})", R"({"type":null,"name":"f"})"}) {
    EXPECT_EQ(good(tools(tool("f"), named(choice))).tool_choice.name, "f") << choice;
  }
}

TEST_F(Tools, ThatAServerWouldRunAreLeftOutAndNamed) {
  const ChatRequest request = good(tools(R"({"type":"custom","custom":{"name":"c"}},)" + tool("f")));
  EXPECT_EQ(request.left_out, std::vector<std::string>{"tools[0]"});
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_FALSE(good(tools(R"({"type":"web_search"})")).offers_tools());
}

TEST_F(Tools, MayBeAllowedInPart) {
  const auto allowed = [&](const std::string& mode, const std::string& list) {
    return tools(tool("f") + "," + tool("g"), R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":")" +
                                                  mode + R"(","tools":[)" + list + "]}}");
  };
  const ChatRequest request = good(allowed("auto", tool("g")));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_EQ(request.tools.size(), 2u) << "the prompt stays the same";
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_EQ(request.functions[0].name, "g");
  EXPECT_TRUE(good(allowed("required", tool("g"))).forces_call());
  EXPECT_FALSE(good(allowed("auto", "")).offers_tools());
  expect_refused(allowed("auto", tool("h")), "tool_choice");
  expect_refused(allowed("required", ""), "tool_choice");
  expect_refused(allowed("none", ""), "tool_choice.allowed_tools.mode");
}

TEST_F(Tools, AreRefusedWhereCallsWouldNotBeUnderstood) {
  services_.chat = model_of(kPlain);
  wrong(tool("f"), "tools");
  EXPECT_EQ(refusal(tools(tool("f"), R"(,"tool_choice":"none")")), "");
}

}  // namespace
}  // namespace quire::api::chat::test
