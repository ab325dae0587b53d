#include "api/messages/messages_request.h"

#include <boost/json/serialize.hpp>

#include "tests/api/chat/chat_world.h"

namespace quire::api::messages::test {
namespace {

class MessagesRequests : public chat::test::Bodies<MessagesRequest, parse_messages_request> {
 protected:
  static std::string with(const std::string& members) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":"hi"}])" + (members.empty() ? "" : "," + members) +
           "}";
  }
  void wrong(const std::string& members, const std::string& param) { expect_refused(with(members), param); }
  void right(const std::string& members) { EXPECT_EQ(refusal(with(members)), "") << members; }
};

TEST_F(MessagesRequests, NeedMessagesAndALength) {
  expect_refused(R"({"max_tokens":5})", "messages");
  expect_refused(R"({"messages":[{"role":"user","content":"hi"}]})", "max_tokens");
  expect_refused(R"({"max_tokens":0,"messages":[{"role":"user","content":"hi"}]})", "max_tokens");
  EXPECT_EQ(good(with("")).max_tokens, 5u);
}

TEST_F(MessagesRequests, OfACountNeedNoLength) {
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}],"system":"be","tools":[)"
                           R"({"name":"now","input_schema":{"type":"object"}}],"thinking":{"type":"disabled"}})";
  const Result<MessagesRequest> counted = parse_count_request(body, services_);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(counted->messages.size(), 2u);
  EXPECT_EQ(counted->tools.size(), 1u);
  EXPECT_FALSE(parse_count_request(R"({"messages":[]})", services_));
}

TEST_F(MessagesRequests, SampleAsAllRequestsDo) {
  const MessagesRequest request =
      good(with(R"("temperature":0.5,"top_p":0.25,"top_k":7,"seed":3,"stop_sequences":["a","b"])"));
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  const auto stops = [](std::size_t count) { return R"("stop_sequences":)" + chat::test::list_of("\"a\"", count); };
  right(stops(15));
  right(stops(16));
  wrong(stops(17), "stop_sequences");
  const auto bytes = [](std::size_t count) { return R"("stop_sequences":[")" + std::string(count, 'a') + "\"]"; };
  right(bytes(511));
  right(bytes(512));
  wrong(bytes(513), "stop_sequences");
  wrong(R"("stop_sequences":[""])", "stop_sequences");
}

TEST_F(MessagesRequests, GiveToolsToTemplatesAsAChatDoes) {
  const MessagesRequest request = good(with(R"("tools":[{"name":"now","description":"d","type":"custom",)"
                                            R"("input_schema":{"type":"object"},"cache_control":{}}])"));
  EXPECT_EQ(quire::json::serialize(request.tools),
            R"([{"type":"function","function":{"name":"now","description":"d","parameters":{"type":"object"}}}])");
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_EQ(request.functions[0].parameters, R"({"type":"object"})");
  EXPECT_EQ(request.functions[0].parameters_field, "tools[0].input_schema");
}

TEST_F(MessagesRequests, RefuseToolsByTheirPath) {
  wrong(R"("tools":{})", "tools");
  wrong(R"("tools":[7])", "tools[0]");
  wrong(R"("tools":[{"type":7,"name":"bash"}])", "tools[0].type");
  wrong(R"("tools":[{"input_schema":{}}])", "tools[0].name");
  wrong(R"("tools":[{"name":"f"}])", "tools[0].input_schema");
  wrong(R"("tools":[{"name":"f","input_schema":7}])", "tools[0].input_schema");
  const auto many = [](std::size_t count) {
    std::string tools;
    for (std::size_t i = 0; i < count; ++i) {
      tools += (i == 0 ? "" : ",") + (R"({"name":"f)" + std::to_string(i) + R"(","input_schema":{}})");
    }
    return R"("tools":[)" + tools + "]";
  };
  right(many(127));
  right(many(128));
  wrong(many(129), "tools");
}

TEST_F(MessagesRequests, ChooseTools) {
  const auto chosen = [](const std::string& choice) {
    return R"("tools":[{"name":"now","input_schema":{}}],"tool_choice":)" + choice;
  };
  using Kind = chat::ToolChoice::Kind;
  EXPECT_EQ(good(with(chosen(R"({"type":"auto"})"))).tool_choice.kind, Kind::kAuto);
  EXPECT_EQ(good(with(chosen(R"({"type":"any"})"))).tool_choice.kind, Kind::kRequired);
  EXPECT_EQ(good(with(chosen(R"({"type":"none"})"))).tool_choice.kind, Kind::kNone);
  const MessagesRequest named = good(with(chosen(R"({"type":"tool","name":"now","disable_parallel_tool_use":true})")));
  EXPECT_EQ(named.tool_choice.kind, Kind::kNamed);
  EXPECT_EQ(named.tool_choice.name, "now");
  EXPECT_FALSE(named.parallel_tool_calls);
  wrong(chosen(R"("auto")"), "tool_choice");
  wrong(chosen("{}"), "tool_choice.type");
  wrong(chosen(R"({"type":"some"})"), "tool_choice.type");
  wrong(chosen(R"({"type":"tool"})"), "tool_choice.name");
  wrong(chosen(R"({"type":"tool","name":"other"})"), "tool_choice");
  wrong(chosen(R"({"type":"auto","disable_parallel_tool_use":1})"), "tool_choice.disable_parallel_tool_use");
}

TEST_F(MessagesRequests, ReportTheTemplateWhetherToThink) {
  const MessagesRequest enabled = good(with(R"("thinking":{"type":"enabled","budget_tokens":1024})"));
  EXPECT_EQ(enabled.template_kwargs.at("enable_thinking").get_bool(), true);
  EXPECT_EQ(enabled.template_kwargs.at("thinking").get_bool(), true);
  EXPECT_EQ(good(with(R"("thinking":{"type":"disabled"})")).template_kwargs.at("enable_thinking").get_bool(), false);
  EXPECT_TRUE(good(with(R"("thinking":{"type":"adaptive"})")).template_kwargs.empty());
  for (const char* both : {R"("thinking":{"type":"disabled"},"chat_template_kwargs":{"enable_thinking":true})",
                           R"("chat_template_kwargs":{"enable_thinking":true},"thinking":{"type":"disabled"})"}) {
    EXPECT_EQ(good(with(both)).template_kwargs.at("enable_thinking").get_bool(), true)
        << "the template's own name counts";
  }
  EXPECT_FALSE(good(with(R"("thinking":{"type":"enabled","display":"omitted"})")).include_reasoning);
  EXPECT_TRUE(good(with(R"("thinking":{"type":"enabled","display":"summarized"})")).include_reasoning);
  right(R"("thinking":{"type":"enabled","budget_tokens":1})");
  wrong(R"("thinking":{"type":"enabled","budget_tokens":0})", "thinking.budget_tokens");
  wrong(R"("thinking":true)", "thinking");
  wrong(R"("thinking":{})", "thinking.type");
  wrong(R"("thinking":{"type":"some"})", "thinking.type");
  wrong(R"("thinking":{"type":"enabled","display":"all"})", "thinking.display");
}

TEST_F(MessagesRequests, SayWhatTheAnswerMustBe) {
  const MessagesRequest request =
      good(with(R"("output_config":{"effort":"max","format":{"type":"json_schema","schema":{"type":"array"}}})"));
  EXPECT_EQ(request.reasoning_effort, "max");
  EXPECT_EQ(request.grammar_text->text, R"({"type":"array"})");
  EXPECT_EQ(good(with(R"("output_config":{"effort":"low"})")).reasoning_effort, "low");
  wrong(R"("output_config":7)", "output_config");
  wrong(R"("output_config":{"effort":"huge"})", "output_config.effort");
  wrong(R"("output_config":{"format":{"type":"json_schema"}})", "output_config.format.schema");
}

TEST_F(MessagesRequests, AcceptWhatChangesNothing) {
  for (const char* members :
       {R"("metadata":{"user_id":"u"})", R"("service_tier":"auto")", R"("service_tier":"standard_only")",
        R"("cache_control":{"type":"ephemeral"})", R"("mcp_servers":[],"context_management":{},"container":null)"}) {
    right(members);
  }
}

TEST_F(MessagesRequests, RefuseWhatIsNotSupported) {
  const std::pair<const char*, const char*> cases[] = {
      {"metadata", "7"},      {"service_tier", "7"},          {"cache_control", "7"},
      {"mcp_servers", "{}"},  {"context_management", "[]"},   {"container", "7"},
      {"output_format", "7"}, {"chat_template_kwargs", "[]"}, {"top_k", "-2"},
      {"temperature", "2.5"}};
  for (const auto& [name, value] : cases) wrong("\"" + std::string(name) + "\":" + value, name);
}

TEST_F(MessagesRequests, LeaveOutWhatIsForAServerThatRunsToolsAndSaySo) {
  const MessagesRequest request =
      good(with(R"("service_tier":"priority","mcp_servers":[{}],"context_management":{"edits":[]},"container":"c",)"
                R"("metadata":{"user_id":"u"},"cache_control":{"type":"ephemeral"},)"
                R"("tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{}},)"
                R"({"type":"bash_20250124","name":"bash"}])"));
  EXPECT_EQ(request.left_out, (std::vector<std::string>{"service_tier", "mcp_servers", "context_management",
                                                        "container", "metadata", "tools[0]", "tools[2]"}));
  EXPECT_EQ(request.functions.size(), 1u);
  wrong(R"("tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"tool","name":"bash"})",
        "tool_choice");
}

TEST_F(MessagesRequests, TakeTheOlderNameOfTheirFormat) {
  const MessagesRequest request = good(with(R"("output_format":{"type":"json_schema","schema":{"type":"array"}})"));
  EXPECT_EQ(request.grammar_text->text, R"({"type":"array"})");
}

TEST_F(MessagesRequests, PassOverWhatTheyDoNotHaveAndSaySo) {
  EXPECT_EQ(good(with(R"("n":2,"stop":"x","output_config":{"mood":1})")).unknown_fields,
            (std::vector<std::string>{"n", "stop", "output_config.mood"}));
}

TEST_F(MessagesRequests, EveryFieldOfTheWrongTypeIsRefusedByName) {
  for (const Field& field : messages_fields()) {
    const std::string name = field.name;
    if (name == "messages") continue;
    bool refused = false;
    for (const char* value : {"true", "17", "\"x\"", "{\"x\":1}", "[[1]]"}) {
      const std::string reported = refusal(with("\"" + name + "\":" + value));
      if (!reported.empty()) {
        EXPECT_EQ(reported.substr(0, name.size()), name) << value;
      }
      refused = refused || !reported.empty();
    }
    EXPECT_TRUE(refused) << name;
  }
}

}  // namespace
}  // namespace quire::api::messages::test
