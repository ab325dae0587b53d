#include "api/chat/chat_formatter.h"

#include <map>

#include "tests/api/chat/answer_rig.h"

namespace quire::api::chat::test {
namespace {

namespace json = boost::json;
using flow::Finish;

class ChatAnswers : public AnswerRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override { return chat(services_, std::move(request)); }

  static std::string body(const std::string& members = "") {
    return R"({"messages":[{"role":"user","content":"hi"}],"seed":7)" + (members.empty() ? "" : "," + members) + "}";
  }
  static std::string with_tools(const std::string& members = "") {
    return body(
        R"("tools":[{"type":"function","function":{"name":"now"}},{"type":"function","function":{"name":"get"}}])" +
        (members.empty() ? "" : "," + members));
  }

  static json::value message(const json::value& answer) { return answer.at("choices").at(0).at("message"); }

  // What a client puts together from a choice's events.
  struct Received {
    std::string role, content, reasoning, finish_reason;
    std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
    std::vector<std::string> ids;
    std::size_t tokens = 0;  // with log probabilities
  };
  static void drain(const json::value& choice, Received& received) {
    EXPECT_EQ(received.finish_reason, "") << "a choice goes on after its end";
    const json::object& delta = choice.at("delta").as_object();
    if (delta.contains("role")) received.role += delta.at("role").as_string();
    if (delta.contains("content")) received.content += delta.at("content").as_string();
    if (delta.contains("reasoning")) received.reasoning += delta.at("reasoning").as_string();
    if (delta.contains("tool_calls")) {
      for (const json::value& call : delta.at("tool_calls").as_array()) {
        const auto index = static_cast<std::size_t>(call.at("index").as_int64());
        if (call.as_object().contains("id")) {
          EXPECT_EQ(index, received.calls.size());
          received.calls.push_back({std::string(call.at("function").at("name").as_string()), ""});
          received.ids.emplace_back(call.at("id").as_string());
        }
        received.calls.at(index).second += call.at("function").at("arguments").as_string();
      }
    }
    if (choice.at("logprobs").is_object()) received.tokens += choice.at("logprobs").at("content").as_array().size();
    if (choice.at("finish_reason").is_string()) received.finish_reason = choice.at("finish_reason").as_string();
  }
  // Streams `text`, a token a turn, as choice 0.
  Received streamed(const std::string& request, const std::string& text, Finish finish = Finish::kLength) {
    auto completion = start(request);
    Received received;
    for (const std::string& event : api::test::events_of(say_all(*completion, text, finish))) {
      if (event == "[DONE]") continue;
      const json::value parsed = json::parse(event);
      EXPECT_EQ(parsed.at("object"), "chat.completion.chunk");
      for (const json::value& choice : parsed.at("choices").as_array()) drain(choice, received);
    }
    EXPECT_TRUE(completion->finished());
    return received;
  }
};

TEST_F(ChatAnswers, AreMessagesInOpenAisShape) {
  const json::value answer = answered(body(), "Hello there.");
  EXPECT_EQ(answer.at("id"), "chatcmpl-r1");
  EXPECT_EQ(answer.at("object"), "chat.completion");
  EXPECT_EQ(answer.at("model"), "stories");
  EXPECT_EQ(answer.at("system_fingerprint"), "fp-test");
  const json::value& choice = answer.at("choices").at(0);
  EXPECT_EQ(json::serialize(choice),
            R"({"index":0,"message":{"role":"assistant","content":"Hello there.","refusal":null},)"
            R"("logprobs":null,"finish_reason":"length","stop_reason":null})");
  EXPECT_GT(answer.at("usage").at("prompt_tokens").as_int64(), 0);
  EXPECT_EQ(answer.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0);
}

TEST_F(ChatAnswers, GoOnFromTheTemplatesText) {
  auto completion = start(body());
  EXPECT_EQ(submissions_[0].request.prompt, services_.tokenizer->encode("<user>hi\n<assistant>", false));
  EXPECT_EQ(submissions_[0].request.max_tokens, 512 - submissions_[0].request.prompt.size());
}

TEST_F(ChatAnswers, ReadSpecialTokensThatTheTemplateWrites) {
  services_.chat = model_of("<|endoftext|>{{ messages[0].content }}");
  auto completion = start(body());
  EXPECT_EQ(submissions_[0].request.prompt[0], 0);
}

TEST_F(ChatAnswers, ReportReasoningApart) {
  const json::value said = message(answered(body(), "<think>\nhm\n</think>\n\nYes."));
  EXPECT_EQ(json::serialize(said),
            R"({"role":"assistant","content":"Yes.","refusal":null,"reasoning":"hm","reasoning_content":"hm"})");
  EXPECT_TRUE(message(answered(body(), "<think>hm")).at("content").is_null());
  EXPECT_FALSE(message(answered(body(R"("include_reasoning":false)"), "<think>hm</think>Yes."))
                   .as_object()
                   .contains("reasoning"));
}

TEST_F(ChatAnswers, ReportCallsAndEndForThem) {
  auto completion = start(with_tools());
  say_all(*completion, kCall, Finish::kNone);
  say(0, 0, Finish::kStop);
  const json::value answer = whole(*completion);
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "tool_calls");
  const json::value said = message(answer);
  EXPECT_TRUE(said.at("content").is_null());
  const json::value& call = said.at("tool_calls").at(0);
  EXPECT_EQ(call.at("type"), "function");
  EXPECT_EQ(call.at("id").as_string().size(), 29u);
  EXPECT_EQ(call.at("function").at("name"), "now");
  EXPECT_EQ(call.at("function").at("arguments"), "{\"a\": [1, \"}\"]}");
}

TEST_F(ChatAnswers, EndForTheirLengthWhereACallWasCutShort) {
  const json::value answer = answered(with_tools(), "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1,");
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(message(answer).at("tool_calls").at(0).at("function").at("arguments"), "{\"a\": [1,");
}

TEST_F(ChatAnswers, AreTheSameStreamed) {
  for (const std::string& text :
       {std::string("Hello there."), "<think>hm, so</think>\nYes. " + std::string(kCall) + "\n" + kCall,
        std::string("<tool_call>{\"name\": \"nobody\"}</tool_call>"), std::string("<think>hm")}) {
    const json::value answer = answered(with_tools(), text);
    const json::object said = message(answer).as_object();
    const Received received = streamed(with_tools(R"("stream":true)"), text);
    EXPECT_EQ(received.role, "assistant");
    EXPECT_EQ(received.content, said.at("content").is_null() ? "" : said.at("content").as_string()) << text;
    EXPECT_EQ(received.reasoning, said.contains("reasoning") ? said.at("reasoning").as_string() : "") << text;
    EXPECT_EQ(received.finish_reason, answer.at("choices").at(0).at("finish_reason").as_string());
    const json::array calls = said.contains("tool_calls") ? said.at("tool_calls").as_array() : json::array();
    ASSERT_EQ(received.calls.size(), calls.size()) << text;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(received.ids[i], calls[i].at("id").as_string());
      EXPECT_EQ(received.calls[i].first, calls[i].at("function").at("name").as_string());
      EXPECT_EQ(received.calls[i].second, calls[i].at("function").at("arguments").as_string());
    }
  }
}

TEST_F(ChatAnswers, CallOneToolAtMostWithoutParallelCalls) {
  const json::value said = message(answered(with_tools(R"("parallel_tool_calls":false)"), std::string(kCall) + kCall));
  EXPECT_EQ(said.at("tool_calls").as_array().size(), 1u);
}

TEST_F(ChatAnswers, LeaveCallsAloneWhereNoToolsAreOffered) {
  EXPECT_EQ(message(answered(body(), kCall)).at("content"), kCall);
  EXPECT_EQ(message(answered(with_tools(R"("tool_choice":"none")"), kCall)).at("content"), kCall);
}

TEST_F(ChatAnswers, ReportLogProbabilitiesOfEveryToken) {
  const json::value answer = answered(body(R"("logprobs":true)"), "<think>hm</think>Yes.");
  const json::array& tokens = answer.at("choices").at(0).at("logprobs").at("content").as_array();
  const std::size_t count = services_.tokenizer->encode("<think>hm</think>Yes.", false).size();
  ASSERT_EQ(tokens.size(), count);
  EXPECT_EQ(json::serialize(tokens[0]), R"({"token":"<","logprob":0,"bytes":[60],"top_logprobs":[]})");
  EXPECT_EQ(streamed(body(R"("logprobs":true,"stream":true)"), "<think>hm</think>Yes.").tokens, count);
}

TEST_F(ChatAnswers, HaveOneRoleAndOneEndForEachOfNChoices) {
  auto completion = start(body(R"("n":2,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_EQ(submissions_.size(), 2u);
  say_text(0, "one", Finish::kLength);
  say_text(1, "two", Finish::kLength);
  const std::vector<std::string> events = api::test::events_of(api::test::take_events(*completion));
  std::map<std::int64_t, Received> received;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json::value parsed = json::parse(event);
    for (const json::value& choice : parsed.at("choices").as_array()) {
      drain(choice, received[choice.at("index").as_int64()]);
    }
  }
  EXPECT_EQ(received[0].content, "one");
  EXPECT_EQ(received[1].content, "two");
  EXPECT_EQ(received[0].role + received[1].role, "assistantassistant");
  EXPECT_EQ(events.back(), "[DONE]");
  const json::value usage = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(usage.at("choices").as_array().empty());
  EXPECT_GT(usage.at("usage").at("completion_tokens").as_int64(), 1);
}

TEST_F(ChatAnswers, AreRefusedWithTheFieldAtFault) {
  EXPECT_EQ(refusal(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400).at("param"),
            "messages[0].content[0].type");
  EXPECT_EQ(refusal(body(R"("max_completion_tokens":512)"), 400).at("param"), "max_completion_tokens");
  EXPECT_EQ(refusal(with_tools(R"("tool_choice":"required")"), 400).at("param"), "tool_choice");
  services_.chat = nullptr;
  EXPECT_EQ(refusal(body(), 400).at("param"), "messages");
}

TEST_F(ChatAnswers, AreRefusedWhereTheConversationIsTooLong) {
  const auto of_tokens = [&](std::size_t count) {
    std::string text;
    services_.chat = model_of("{{ messages[0].content }}");
    for (std::size_t i = 0; i < count; ++i) text += " the";
    return R"({"messages":[{"role":"user","content":")" + text + R"("}]})";
  };
  start(of_tokens(510));
  start(of_tokens(511));
  EXPECT_EQ(refusal(of_tokens(512), 400).at("param"), "messages");
}

}  // namespace
}  // namespace quire::api::chat::test
