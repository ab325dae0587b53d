#include "api/messages/messages_formatter.h"

#include "tests/api/chat/answer_rig.h"
#include "tests/api/wire/patient_calls.h"

namespace quire::api::messages::test {
namespace {

namespace json = boost::json;
using chat::test::named_events_of;
using flow::Finish;

class MessageAnswers : public chat::test::AnswerRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override { return converse(services_, std::move(request)); }
  static std::string body(const std::string& members = "") {
    return R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":99,"seed":7)" +
           (members.empty() ? "" : "," + members) + "}";
  }
  static std::string with_tools(const std::string& members = "") {
    return body(R"("tools":[{"name":"now","input_schema":{}},{"name":"get","input_schema":{}}])" +
                (members.empty() ? "" : "," + members));
  }
};

TEST_F(MessageAnswers, AreInAnthropicsShape) {
  json::object answer = answered(body(), "Hello there.").as_object();
  EXPECT_TRUE(answer.at("timings").is_object());
  answer.stable_erase(answer.find("timings"));
  const auto prompt = services_.tokenizer->encode("<user>hi\n<assistant>", false).size();
  const auto said = services_.tokenizer->encode("Hello there.", false).size();
  EXPECT_EQ(json::serialize(answer),
            R"({"id":"msg_r1","type":"message","role":"assistant","model":"stories","system_fingerprint":"fp-test",)"
            R"("seed":7,"content":[{"type":"text","text":"Hello there."}],)"
            R"("stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":)" +
                std::to_string(prompt) + R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)" +
                R"("output_tokens":)" + std::to_string(said) + "}}");
}

TEST_F(MessageAnswers, GoOnWithTheAssistantsLastWords) {
  auto answer =
      start(R"({"max_tokens":5,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"I"}]})");
  EXPECT_EQ(submissions_[0].request.prompt, services_.tokenizer->encode("<user>hi\n<assistant>I", false));
}

TEST_F(MessageAnswers, ReportThinkingTextAndCallsAsBlocks) {
  auto answer = start(with_tools());
  say_all(*answer, "<think>hm</think>Yes. " + std::string(chat::test::kCall), Finish::kNone);
  say(0, 0, Finish::kStop);
  const json::value reported = whole(*answer);
  EXPECT_EQ(reported.at("stop_reason"), "tool_use");
  const json::array& blocks = reported.at("content").as_array();
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(json::serialize(blocks[0]), R"({"type":"thinking","thinking":"hm","signature":""})");
  EXPECT_EQ(blocks[1].at("text"), "Yes.");
  EXPECT_EQ(blocks[2].at("type"), "tool_use");
  EXPECT_EQ(blocks[2].at("name"), "now");
  EXPECT_EQ(blocks[2].at("id").as_string().size(), 29u);
  EXPECT_EQ(json::serialize(blocks[2].at("input")), R"({"a":[1,"}"]})");
}

TEST_F(MessageAnswers, SayWhyTheyEnded) {
  EXPECT_EQ(answered(body(), "Hello.", Finish::kStop).at("stop_reason"), "end_turn");
  auto answer = start(body(R"("stop_sequences":["lo"])"));
  say_all(*answer, "Hello", Finish::kNone);
  const json::value stopped = whole(*answer);
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), "lo");
  EXPECT_EQ(stopped.at("content").at(0).at("text"), "Hel");
}

TEST_F(MessageAnswers, HaveNoInputWhereACallWasCutShort) {
  const json::value answer = answered(with_tools(), "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1,");
  EXPECT_EQ(answer.at("stop_reason"), "max_tokens");
  EXPECT_EQ(answer.at("content").at(0).at("input"), json::object());
}

TEST_F(MessageAnswers, LeaveThinkingOutWhereItIsToBeOmitted) {
  const json::value answer =
      answered(body(R"("thinking":{"type":"enabled","display":"omitted"})"), "<think>hm</think>Yes.");
  EXPECT_EQ(answer.at("content").as_array().size(), 1u);
}

// ---- streams

// What a client puts together from the events of a stream, held to their order.
json::value received(const std::vector<json::value>& events) {
  EXPECT_EQ(events.front().at("type"), "message_start");
  json::object message = events.front().at("message").as_object();
  EXPECT_TRUE(message.at("content").as_array().empty());
  EXPECT_TRUE(message.at("stop_reason").is_null());
  json::array blocks;
  bool open = false;
  std::string input;
  for (std::size_t i = 1; i < events.size(); ++i) {
    const json::value& event = events[i];
    const std::string type(event.at("type").as_string());
    if (type == "content_block_start") {
      EXPECT_FALSE(open);
      EXPECT_EQ(event.at("index"), blocks.size());
      blocks.push_back(event.at("content_block"));
      open = true;
      input.clear();
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(open);
      EXPECT_EQ(event.at("index"), blocks.size() - 1);
      const json::object& delta = event.at("delta").as_object();
      json::object& block = blocks.back().as_object();
      if (delta.contains("text")) block["text"].as_string() += delta.at("text").as_string();
      if (delta.contains("thinking")) block["thinking"].as_string() += delta.at("thinking").as_string();
      if (delta.contains("partial_json")) input += delta.at("partial_json").as_string();
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(open);
      open = false;
      boost::system::error_code fault;
      const json::value parsed = json::parse(input, fault);
      if (blocks.back().as_object().contains("input") && !fault) blocks.back().as_object()["input"] = parsed;
    } else if (type == "message_delta") {
      EXPECT_FALSE(open);
      for (const char* name : {"stop_reason", "stop_sequence"}) message[name] = event.at("delta").at(name);
      message["usage"] = event.at("usage");
      EXPECT_TRUE(event.at("timings").is_object());
    } else {
      EXPECT_EQ(type, "message_stop");
      EXPECT_EQ(i + 1, events.size());
    }
  }
  message["content"] = std::move(blocks);
  return message;
}

TEST_F(MessageAnswers, AreTheSameStreamedWhereverTheyAreCut) {
  for (const std::string& text : chat::test::said_texts()) {
    for (const Finish finish : {Finish::kLength, Finish::kStop}) {
      json::value answer = answered(with_tools(), text, finish);
      answer.as_object().erase("timings");
      for (const std::size_t per_slice : {1u, 2u, 3u, 7u, 40u}) {
        auto message = start(with_tools(R"("stream":true)"));
        EXPECT_EQ(received(named_events_of(say_all(*message, text, finish, per_slice))), answer) << text << per_slice;
      }
    }
  }
}

TEST_F(MessageAnswers, FailInTheMiddleOfAStreamWithAnErrorOfTheirShape) {
  auto message = start(body(R"("stream":true)"));
  std::string events = say_all(*message, "Hello", Finish::kNone);
  message->fail({Code::kUnavailable, "the engine has failed", "", 1});
  events += api::test::take_events(*message);
  const json::value last = named_events_of(events).back();
  EXPECT_EQ(last.at("type"), "error");
  EXPECT_EQ(last.at("error").at("type"), "overloaded_error");
  EXPECT_EQ(last.at("error").at("message"), "the engine has failed");
}

TEST_F(MessageAnswers, AreRefusedInTheirShape) {
  for (const char* request : {"{", R"({"max_tokens":5})", R"({"messages":[{"role":"user","content":"hi"}]})"}) {
    auto message = make(request);
    const std::optional<http::Response> refused = message->admit({hub_, [] {}, {}});
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 400);
    const json::value reported = json::parse(refused->body);
    EXPECT_EQ(reported.at("type"), "error");
    EXPECT_EQ(reported.at("error").at("type"), "invalid_request_error");
  }
  EXPECT_EQ(refusal(body(R"("model":"other")"), 404).at("type"), "not_found_error");
  EXPECT_EQ(refusal(R"({"max_tokens":512,"messages":[{"role":"user","content":"hi"}]})", 400).at("param"),
            "max_tokens");
}

TEST_F(MessageAnswers, CountTheTokensOfTheirPrompt) {
  const http::Response counted =
      count_tokens(services_, R"({"messages":[{"role":"user","content":"hi"}],"system":"be","mood":1})");
  EXPECT_EQ(counted.body,
            R"({"input_tokens":)" +
                std::to_string(services_.tokenizer->encode("<system>be\n<user>hi\n<assistant>", false).size()) + "}");
  EXPECT_EQ(counted.fields.at(0).value, "unknown fields: mood");
  const http::Response refused = count_tokens(services_, R"({"messages":7})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body).at("type"), "error");
}

}  // namespace
}  // namespace quire::api::messages::test
