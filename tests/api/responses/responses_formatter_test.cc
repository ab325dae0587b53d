#include "api/responses/responses_formatter.h"

#include "tests/api/chat/answer_rig.h"

namespace quire::api::responses::test {
namespace {

namespace json = boost::json;
using chat::test::named_events_of;
using flow::Finish;

class Responses : public chat::test::AnswerRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override { return respond(services_, std::move(request)); }
  static std::string body(const std::string& members = "") {
    return R"({"input":"hi","seed":7)" + (members.empty() ? "" : "," + members) + "}";
  }
  static std::string with_tools(const std::string& members = "") {
    return body(R"("tools":[{"type":"function","name":"now"},{"type":"function","name":"get"}])" +
                (members.empty() ? "" : "," + members));
  }
  // But for how long it took.
  static json::value timeless(json::value response) {
    response.as_object().erase("timings");
    return response;
  }
};

TEST_F(Responses, AreInOpenAisShape) {
  json::object answer =
      answered(body(R"("max_output_tokens":20,"metadata":{"a":"b"},"instructions":"be")"), "Hi.", Finish::kStop)
          .as_object();
  EXPECT_TRUE(answer.at("timings").is_object());
  answer.stable_erase(answer.find("timings"));
  answer.stable_erase(answer.find("created_at"));
  const std::int64_t input = answer.at("usage").at("input_tokens").as_int64();
  const std::int64_t output = answer.at("usage").at("output_tokens").as_int64();
  answer.stable_erase(answer.find("usage"));
  EXPECT_GT(input, 0);
  EXPECT_GT(output, 0);
  EXPECT_EQ(json::serialize(answer),
            R"({"id":"resp_r1","object":"response","status":"completed","model":"stories",)"
            R"("system_fingerprint":"fp-test","seed":7,"error":null,"incomplete_details":null,)"
            R"("output":[{"id":"msg_r1_0","type":"message","role":"assistant","content":[{"type":"output_text",)"
            R"("text":"Hi","annotations":[]}],"status":"completed"}],"instructions":"be","max_output_tokens":20,)"
            R"("temperature":8E-1,"top_p":9E-1,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,)"
            R"("text":{"format":{"type":"text"}},"reasoning":{"effort":null,"summary":null},"truncation":"disabled",)"
            R"("metadata":{"a":"b"},"user":null,"safety_identifier":null,"prompt_cache_key":null,"store":false,)"
            R"("background":false,"service_tier":"default","previous_response_id":null,"top_logprobs":0})");
}

TEST_F(Responses, GoOnFromTheTemplatesText) {
  auto response = start(body(R"("instructions":"be")"));
  EXPECT_EQ(submissions_[0].request.prompt, services_.tokenizer->encode("<system>be\n<user>hi\n<assistant>", false));
  EXPECT_EQ(submissions_[0].request.max_tokens, 512 - submissions_[0].request.prompt.size());
}

TEST_F(Responses, AreIncompleteWhereTheirLengthEndedThem) {
  const json::value answer = answered(body(), "Hello there.");
  EXPECT_EQ(answer.at("status"), "incomplete");
  EXPECT_EQ(answer.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(answer.at("output").at(0).at("status"), "incomplete");
}

TEST_F(Responses, AreCancelledWhereSomebodyEndedThemByName) {
  EXPECT_EQ(status_of("stop"), "completed");
  EXPECT_EQ(status_of("length"), "incomplete");
  EXPECT_EQ(status_of("abort"), "cancelled");
}

TEST_F(Responses, ReportReasoningTextAndCallsAsItems) {
  const json::value answer =
      answered(with_tools(), "<think>hm, so</think>\nYes. " + std::string(chat::test::kCall) + chat::test::kCall);
  const json::array& output = answer.at("output").as_array();
  ASSERT_EQ(output.size(), 4u);
  EXPECT_EQ(json::serialize(output[0]),
            R"({"id":"rs_r1_0","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm, so"}],)"
            R"("status":"completed"})");
  EXPECT_EQ(output[1].at("content").at(0).at("text"), "Yes.");
  EXPECT_EQ(output[2].at("type"), "function_call");
  EXPECT_EQ(output[2].at("id"), "fc_r1_2");
  EXPECT_EQ(output[2].at("name"), "now");
  EXPECT_EQ(output[2].at("arguments"), "{\"a\": [1, \"}\"]}");
  EXPECT_NE(output[2].at("call_id"), output[3].at("call_id"));
  const std::size_t reasoned = services_.tokenizer->encode("hm, so", false).size();
  EXPECT_EQ(answer.at("usage").at("output_tokens_details").at("reasoning_tokens"), reasoned);
}

TEST_F(Responses, CallOneToolAtMostWithoutParallelCalls) {
  const json::value answer =
      answered(with_tools(R"("parallel_tool_calls":false)"), std::string(chat::test::kCall) + chat::test::kCall);
  EXPECT_EQ(answer.at("output").as_array().size(), 1u);
}

TEST_F(Responses, KeepTheLastTokensOfAPromptThatMayBeTruncated) {
  services_.chat = chat::test::model_of("{{ messages[0].content }}");
  std::string text;
  for (int i = 0; i < 600; ++i) text += " the";
  const std::string input = R"({"input":")" + text + "\"";
  EXPECT_EQ(refusal(input + R"(,"truncation":"disabled"})", 400).at("param"), "input");
  auto response = start(input + R"(,"truncation":"auto","max_output_tokens":12})");
  EXPECT_EQ(submissions_.back().request.prompt.size(), 500u);
}

TEST_F(Responses, AreRefusedWithTheFieldAtFault) {
  EXPECT_EQ(refusal(body(R"("max_output_tokens":512)"), 400).at("param"), "max_output_tokens");
  EXPECT_EQ(refusal(body(R"("previous_response_id":"resp_1")"), 400).at("param"), "previous_response_id");
  services_.chat = nullptr;
  EXPECT_EQ(refusal(body(), 400).at("param"), "input");
}

// ---- streams

// What a client puts together from the events of a stream, held to their order.
struct Received {
  json::value last;    // the response of the last event
  json::array output;  // items as they were done
  std::string last_type;
};

void receive_text(json::object& item, const json::value& event, std::string& text) {
  const std::string type(event.at("type").as_string());
  EXPECT_EQ(event.at("item_id"), item.at("id"));
  if (type.ends_with(".delta")) text += event.at("delta").as_string();
  if (type.ends_with("_text.done")) {
    EXPECT_EQ(event.at("text"), json::string(text));
  }
  if (type.ends_with("arguments.done")) {
    EXPECT_EQ(event.at("arguments"), json::string(text));
  }
  if (type == "response.content_part.added") {
    EXPECT_EQ(event.at("part").at("text"), "");
  }
  if (type == "response.content_part.done") item["content"] = json::array{event.at("part")};
}

Received drain(const std::vector<json::value>& events) {
  Received received;
  EXPECT_EQ(events.at(0).at("type"), "response.created");
  EXPECT_EQ(events.at(1).at("type"), "response.in_progress");
  EXPECT_EQ(events.at(1).at("response").at("status"), "in_progress");
  EXPECT_TRUE(events.at(1).at("response").at("output").as_array().empty());
  json::object item;
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json::value& event = events[i];
    EXPECT_EQ(event.at("sequence_number"), i);
    received.last_type = std::string(event.at("type").as_string());
    if (received.last_type == "response.output_item.added") {
      EXPECT_TRUE(item.empty()) << "an item begins in another one";
      EXPECT_EQ(event.at("output_index"), received.output.size());
      item = event.at("item").as_object();
      EXPECT_EQ(item.at("status"), "in_progress");
      text.clear();
    } else if (received.last_type == "response.output_item.done") {
      if (item.contains("arguments")) item["arguments"] = text;
      item["status"] = event.at("item").at("status");
      EXPECT_EQ(event.at("item"), json::value(item));
      received.output.push_back(event.at("item"));
      item.clear();
    } else if (event.as_object().contains("item_id")) {
      receive_text(item, event, text);
    } else {
      received.last = event.at("response");
    }
  }
  EXPECT_TRUE(item.empty()) << "an item does not end";
  return received;
}

TEST_F(Responses, AreTheSameStreamedWhereverTheyAreCut) {
  for (const std::string& text : chat::test::said_texts()) {
    for (const Finish finish : {Finish::kLength, Finish::kStop}) {
      const json::value answer = timeless(answered(with_tools(), text, finish));
      for (const std::size_t per_slice : {1u, 2u, 3u, 7u, 40u}) {
        auto response = start(with_tools(R"("stream":true)"));
        const Received received = drain(named_events_of(say_all(*response, text, finish, per_slice)));
        EXPECT_EQ(received.last_type, finish == Finish::kStop ? "response.completed" : "response.incomplete");
        json::value last = timeless(received.last);
        last.at("created_at") = answer.at("created_at");
        EXPECT_EQ(last, answer) << text << per_slice;
        EXPECT_EQ(received.output, answer.at("output").as_array()) << text << per_slice;
      }
    }
  }
}

TEST_F(Responses, ReportTimingsAtTheEndOfAStreamAlone) {
  auto response = start(body(R"("stream":true)"));
  const auto events = named_events_of(say_all(*response, "Hello there.", Finish::kLength));
  EXPECT_FALSE(events[0].at("response").as_object().contains("timings"));
  EXPECT_TRUE(events.back().at("response").at("timings").is_object());
}

TEST_F(Responses, FailInTheMiddleOfAStreamWithTheirTextSoFar) {
  auto response = start(body(R"("stream":true)"));
  std::string events = say_all(*response, "Hello", Finish::kNone);
  response->fail({Code::kUnavailable, "the engine has failed", "", 1});
  events += api::test::take_events(*response);
  const json::value last = named_events_of(events).back();
  EXPECT_EQ(last.at("type"), "response.failed");
  EXPECT_EQ(last.at("response").at("status"), "failed");
  EXPECT_EQ(last.at("response").at("error").at("code"), "server_error");
  EXPECT_EQ(last.at("response").at("error").at("message"), "the engine has failed");
  EXPECT_EQ(last.at("response").at("output").at(0).at("content").at(0).at("text"), "Hello");
}

}  // namespace
}  // namespace quire::api::responses::test
