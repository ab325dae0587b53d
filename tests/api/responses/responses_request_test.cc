#include "api/responses/responses_request.h"

#include <boost/json/serialize.hpp>

#include "tests/api/chat/chat_world.h"

namespace quire::api::responses::test {
namespace {

using chat::test::list_of;

constexpr const char* kTool =
    R"({"type":"function","name":"now","description":"d","parameters":{"type":"object"},"strict":true})";

class ResponsesRequests : public chat::test::Bodies<ResponsesRequest, parse_responses_request> {
 protected:
  static std::string with(const std::string& members) {
    return R"({"input":"hi")" + (members.empty() ? "" : "," + members) + "}";
  }
  void wrong(const std::string& members, const std::string& param) { expect_refused(with(members), param); }
  void right(const std::string& members) { EXPECT_EQ(refusal(with(members)), "") << members; }
};

TEST_F(ResponsesRequests, BeginWithTheirOwnDefaults) {
  const ResponsesRequest request = good(with(""));
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.instructions);
  EXPECT_FALSE(request.truncate_prompt_tokens);
  EXPECT_STREQ(request.prompt_field, "input");
  EXPECT_STREQ(request.max_tokens_field, "max_output_tokens");
  EXPECT_EQ(request.n, 1u);
}

TEST_F(ResponsesRequests, NeedInput) {
  expect_refused("{}", "input");
  expect_refused(R"({"input":null})", "input");
}

TEST_F(ResponsesRequests, PutInstructionsInFrontWhereverTheyStand) {
  for (const char* body : {R"({"input":"hi","instructions":"be"})", R"({"instructions":"be","input":"hi"})"}) {
    const ResponsesRequest request = good(body);
    EXPECT_EQ(quire::json::serialize(request.messages),
              R"([{"role":"system","content":"be"},{"role":"user","content":"hi"}])");
    EXPECT_EQ(request.instructions, "be");
  }
  wrong(R"("instructions":7)", "instructions");
}

TEST_F(ResponsesRequests, SayHowLongTheAnswerMayBe) {
  EXPECT_EQ(good(with(R"("max_output_tokens":1)")).max_tokens, 1u);
  EXPECT_EQ(good(with(R"("max_output_tokens":2147483647)")).max_tokens, 2147483647u);
  wrong(R"("max_output_tokens":0)", "max_output_tokens");
  wrong(R"("max_output_tokens":2147483648)", "max_output_tokens");
}

TEST_F(ResponsesRequests, GiveToolsToTemplatesAsAChatDoes) {
  const ResponsesRequest request = good(with(R"("tools":[)" + std::string(kTool) + "]"));
  EXPECT_EQ(quire::json::serialize(request.tools),
            R"([{"type":"function","function":{"name":"now","description":"d","parameters":{"type":"object"}}}])");
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_TRUE(request.functions[0].strict);
  EXPECT_EQ(request.functions[0].parameters_field, "tools[0].parameters");
  EXPECT_EQ(request.tools_json, "[" + std::string(kTool) + "]");
}

TEST_F(ResponsesRequests, RefuseToolsByTheirPath) {
  wrong(R"("tools":{})", "tools");
  wrong(R"("tools":[7])", "tools[0]");
  wrong(R"("tools":[{}])", "tools[0].name");
  wrong(R"("tools":[{"type":7}])", "tools[0].type");
  wrong(R"("tools":[{"type":"function"}])", "tools[0].name");
  wrong(R"("tools":[{"type":"function","name":"a b"}])", "tools[0].name");
  wrong(R"("tools":[{"type":"function","name":"f","parameters":7}])", "tools[0].parameters");
  wrong(R"("tools":[{"type":"function","name":"f","strict":7}])", "tools[0].strict");
  wrong(R"("tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}])", "tools[1].name");
  const auto many = [](std::size_t count) {
    std::string tools;
    for (std::size_t i = 0; i < count; ++i) {
      tools += (i == 0 ? "" : ",") + (R"({"type":"function","name":"f)" + std::to_string(i) + "\"}");
    }
    return R"("tools":[)" + tools + "]";
  };
  right(many(127));
  right(many(128));
  wrong(many(129), "tools");
}

TEST_F(ResponsesRequests, ChooseTools) {
  const std::string tools = R"("tools":[)" + std::string(kTool) + R"(],"tool_choice":)";
  EXPECT_EQ(good(with(tools + R"("none")")).tool_choice.kind, chat::ToolChoice::Kind::kNone);
  EXPECT_EQ(good(with(tools + R"("required")")).tool_choice.kind, chat::ToolChoice::Kind::kRequired);
  const ResponsesRequest named = good(with(tools + R"({"type":"function","name":"now"})"));
  EXPECT_EQ(named.tool_choice.kind, chat::ToolChoice::Kind::kNamed);
  EXPECT_EQ(named.tool_choice.name, "now");
  EXPECT_EQ(named.tool_choice_json, R"({"type":"function","name":"now"})");
  wrong(tools + R"("sometimes")", "tool_choice");
  wrong(tools + R"({"type":"function"})", "tool_choice.name");
  wrong(tools + R"({"type":"web_search"})", "tool_choice.type");
  wrong(tools + R"({"type":"custom","name":"now"})", "tool_choice.type");
  wrong(tools + R"({"type":"function","name":"other"})", "tool_choice");
  wrong(R"("tool_choice":"required")", "tool_choice");
  EXPECT_FALSE(good(with(R"("parallel_tool_calls":false)")).parallel_tool_calls);
  wrong(R"("parallel_tool_calls":1)", "parallel_tool_calls");
}

TEST_F(ResponsesRequests, SayWhatFormTheTextHas) {
  EXPECT_FALSE(good(with(R"("text":{"format":{"type":"text"},"verbosity":"medium"})")).grammar_text);
  EXPECT_EQ(good(with(R"("text":{"format":{"type":"json_object"}})")).grammar_text->field, "text.format");
  const ResponsesRequest request =
      good(with(R"("text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"array"}}})"));
  EXPECT_EQ(request.grammar_text->text, R"({"type":"array"})");
  EXPECT_EQ(request.grammar_text->field, "text.format.schema");
  wrong(R"("text":7)", "text");
  wrong(R"("text":{"format":7})", "text.format");
  wrong(R"("text":{"format":{"type":"xml"}})", "text.format.type");
  wrong(R"("text":{"format":{"type":"json_schema","name":"n"}})", "text.format.schema");
  wrong(R"("text":{"format":{"type":"json_schema","schema":7}})", "text.format.schema");
  wrong(R"("text":{"verbosity":7})", "text.verbosity");
}

TEST_F(ResponsesRequests, SayHowMuchToReason) {
  const ResponsesRequest request = good(with(R"("reasoning":{"effort":"low","summary":"auto"})"));
  EXPECT_EQ(request.reasoning_effort, "low");
  EXPECT_EQ(request.reasoning_summary, "auto");
  EXPECT_EQ(good(with(R"("chat_template_kwargs":{"enable_thinking":true})")).template_kwargs.size(), 1u);
  wrong(R"("chat_template_kwargs":{"messages":1})", "chat_template_kwargs.messages");
  wrong(R"("reasoning":"low")", "reasoning");
  wrong(R"("reasoning":{"effort":"huge"})", "reasoning.effort");
  wrong(R"("reasoning":{"summary":"long"})", "reasoning.summary");
}

TEST_F(ResponsesRequests, HoldMetadataToItsLimits) {
  const auto pairs = [](std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + R"(":"v")";
    return R"("metadata":{)" + all + "}";
  };
  const auto pair = [](std::size_t key, std::size_t value) {
    return R"("metadata":{")" + std::string(key, 'k') + R"(":")" + std::string(value, 'v') + R"("})";
  };
  for (const std::size_t count : {0u, 15u, 16u}) right(pairs(count));
  wrong(pairs(17), "metadata");
  right(pair(63, 511));
  right(pair(64, 512));
  wrong(pair(65, 1), "metadata");
  wrong(pair(1, 513), "metadata.k");
  wrong(R"("metadata":{"k":7})", "metadata.k");
  wrong(R"("metadata":[])", "metadata");
  EXPECT_EQ(good(with(R"("metadata":{ "a" : "b" })")).metadata_json, R"({"a":"b"})");
}

TEST_F(ResponsesRequests, HoldNamesToTheirLimit) {
  for (const std::string name : {"user", "safety_identifier", "prompt_cache_key"}) {
    const auto of = [&](std::size_t bytes) { return "\"" + name + "\":\"" + std::string(bytes, 'x') + "\""; };
    right(of(255));
    right(of(256));
    wrong(of(257), name);
    wrong("\"" + name + "\":7", name);
  }
  EXPECT_EQ(good(with(R"("user":"u")")).user, "u");
}

TEST_F(ResponsesRequests, AcceptWhatChangesNothing) {
  for (const char* members :
       {R"("store":true)", R"("store":false)", R"("service_tier":"auto")", R"("service_tier":"default")",
        R"("background":false)", R"("top_logprobs":0)", R"("truncation":"disabled")",
        R"("include":["reasoning.encrypted_content"])", R"("include":[])", R"("prompt_cache_retention":"24h")",
        R"("previous_response_id":null,"conversation":null,"prompt":null,"max_tool_calls":null)",
        R"("context_management":[],"moderation":null)",
        R"("stream":true,"stream_options":{"include_obfuscation":false})"}) {
    right(members);
  }
  EXPECT_EQ(good(with(R"("truncation":"auto")")).truncate_prompt_tokens, -1);
}

TEST_F(ResponsesRequests, RefuseWhatIsNotSupported) {
  const std::pair<const char*, const char*> cases[] = {{"store", "1"},
                                                       {"service_tier", "7"},
                                                       {"background", "true"},
                                                       {"top_logprobs", "-1"},
                                                       {"top_logprobs", "21"},
                                                       {"truncation", "\"some\""},
                                                       {"previous_response_id", "\"resp_1\""},
                                                       {"conversation", "\"conv_1\""},
                                                       {"prompt", "{\"id\":\"p\"}"},
                                                       {"max_tool_calls", "\"1\""},
                                                       {"context_management", "7"},
                                                       {"moderation", "[]"},
                                                       {"prompt_cache_retention", "7"},
                                                       {"include", "\"x\""}};
  for (const auto& [name, value] : cases) wrong("\"" + std::string(name) + "\":" + value, name);
  wrong(R"("include":["reasoning.encrypted_content",7])", "include[1]");
}

TEST_F(ResponsesRequests, TakeHintsAndNameThoseThatHaveNoEffect) {
  const ResponsesRequest request =
      good(with(R"("store":true,"service_tier":"flex","max_tool_calls":3,"context_management":[{"type":"compaction"}],)"
                R"("moderation":{},"prompt_cache_retention":"24h","prompt_cache_key":"k","safety_identifier":"s",)"
                R"("text":{"verbosity":"low"},"include":["message.output_text.logits"])"));
  EXPECT_EQ(request.left_out, (std::vector<std::string>{"store", "service_tier", "max_tool_calls", "context_management",
                                                        "moderation", "prompt_cache_retention", "prompt_cache_key",
                                                        "safety_identifier", "text.verbosity", "include[0]"}));
  const ResponsesRequest neutral =
      good(with(R"("store":false,"service_tier":"auto","context_management":[],"text":{"verbosity":"medium"})"));
  EXPECT_EQ(neutral.num_left_out, 0u);
}

TEST_F(ResponsesRequests, LeaveOutToolsThatAServerWouldRun) {
  const ResponsesRequest request = good(
      with(R"("tools":[{"type":"web_search"},{"type":"function","name":"f"},{"type":"custom","name":"apply_patch"},)"
           R"({"type":"local_shell"},{"name":"g"}])"));
  ASSERT_EQ(request.functions.size(), 2u);
  EXPECT_EQ(request.functions[0].name, "f");
  EXPECT_EQ(request.functions[1].name, "g");
  EXPECT_EQ(request.tools.size(), 2u);
  EXPECT_EQ(request.left_out, (std::vector<std::string>{"tools[0]", "tools[2]", "tools[3]"}));
  EXPECT_FALSE(good(with(R"("tools":[{"type":"web_search"}],"tool_choice":"auto")")).offers_tools());
  wrong(R"("tools":[{"type":"web_search"}],"tool_choice":"required")", "tool_choice");
}

TEST_F(ResponsesRequests, AllowSomeOfTheirTools) {
  const std::string tools = R"("tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],"tool_choice":)";
  const ResponsesRequest request =
      good(with(tools + R"({"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]})"));
  EXPECT_EQ(request.tool_choice.kind, chat::ToolChoice::Kind::kRequired);
  EXPECT_EQ(request.tools.size(), 2u) << "the prompt stays the same";
  ASSERT_EQ(request.functions.size(), 1u);
  EXPECT_EQ(request.functions[0].name, "g");
  EXPECT_FALSE(good(with(tools + R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp"}]})")).offers_tools());
  wrong(tools + R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"h"}]})", "tool_choice");
  wrong(tools + R"({"type":"allowed_tools","mode":"any","tools":[]})", "tool_choice.mode");
  wrong(tools + R"({"type":"allowed_tools","mode":"auto"})", "tool_choice.tools");
  wrong(tools + R"({"type":"allowed_tools","mode":"required","tools":[{"type":"mcp"}]})", "tool_choice");
}

TEST_F(ResponsesRequests, ReportLogProbabilitiesWhereTheyAreIncluded) {
  EXPECT_FALSE(good(with(R"("top_logprobs":20)")).logprobs);
  EXPECT_EQ(good(with(R"("include":["message.output_text.logprobs"])")).logprobs, 0u);
  EXPECT_EQ(good(with(R"("include":["message.output_text.logprobs"],"top_logprobs":20)")).logprobs, 20u);
}

TEST_F(ResponsesRequests, PassOverWhatTheyDoNotHaveAndSaySo) {
  const ResponsesRequest request = good(with(R"("n":2,"messages":[],"text":{"mood":1},"reasoning":{"mode":"pro"})"));
  EXPECT_EQ(request.unknown_fields, (std::vector<std::string>{"n", "messages", "text.mood", "reasoning.mode"}));
}

TEST_F(ResponsesRequests, EveryFieldOfTheWrongTypeIsRefusedByName) {
  for (const Field& field : responses_fields()) {
    const std::string name = field.name;
    if (name == "input") continue;
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
}  // namespace quire::api::responses::test
