// One connection at a time: what is asked is answered, in order, and the connection lives on.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <string>
#include <vector>

#include "tests/api/http/session_rig.h"

namespace quire::api::http::session_test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Long answers wait to be written until it opens.
void hold_writing(Workers& workers, std::shared_future<void> open) {
  workers.post(Lane::kWriting, {.caller = {}, .run = [open](Allowance&) { open.wait(); }, .done = [](bool) {}});
}

TEST_F(SessionTest, CompletesOverASocket) {
  const RawResponse response = ask(post_completion(kBody, "X-Request-Id: my-id.1\r\n"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.fields.at("content-type"), "application/json");
  EXPECT_EQ(response.fields.at("x-request-id"), "my-id.1");
  EXPECT_TRUE(response.fields.count("date"));
  const json::value body = json::parse(response.body);
  EXPECT_EQ(body.at("id"), "cmpl-my-id.1");
  EXPECT_EQ(body.at("choices").at(0).at("text"), "Once upon a time");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(world_.metrics.http_responses[2].value(), 1u);
}

TEST_F(SessionTest, StreamsEventsInChunks) {
  const RawResponse response = ask(post_completion(kStream));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.fields.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response.fields.at("transfer-encoding"), "chunked");
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(SessionTest, EachWriteOfAStreamIsTimedFromItsEventAndEachHandlerOfTheThread) {
  const auto all = [](const observe::Histogram& histogram) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) sum += histogram.count(i);
    return sum;
  };
  RawClient client = connect();
  client.send(post_completion(kBody));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(all(world_.metrics.event_to_socket_s), 0u) << "no stream yet";
  // Events that the engine emitted before the io thread looks for the first time are not pending: with a fast engine,
  // all events of a stream.
  std::uint32_t num_streams = 0;
  do {
    client.send(post_completion(kStream));
    EXPECT_EQ(client.read_response().status, 200);
    client.send(get("/live"));  // behind what there was to count
    EXPECT_EQ(client.read_response().status, 200);
    ++num_streams;
  } while (all(world_.metrics.event_to_socket_s) == 0 && num_streams < 1000);
  EXPECT_GE(all(world_.metrics.event_to_socket_s), 1u);
  EXPECT_LE(all(world_.metrics.event_to_socket_s), 4u) << "no more than events";
  EXPECT_LT(world_.metrics.event_to_socket_s.sum(), 20.0);
  EXPECT_GE(all(world_.metrics.io_slice_s), 6u);
}

TEST_F(SessionTest, ALongAnswerIsWrittenByAWorkerAndHoldsUpNobody) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  hold_writing(world_.workers, open);
  const auto asking = [](int tokens) {
    return post_completion(R"({"prompt":"Once upon a time","ignore_eos":true,"n":8,"max_tokens":)" +
                           std::to_string(tokens) + "}");
  };
  RawClient longer = connect();
  longer.send(asking(256));
  ASSERT_TRUE(engine_.wait_ended(8));
  EXPECT_EQ(ask(asking(255)).status, 200) << "the shorter one waits for no worker";
  EXPECT_EQ(ask(get("/live")).status, 200);
  gate.set_value();
  const RawResponse response = longer.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body).at("usage").at("completion_tokens"), 8 * 256);
}

// The scores of an echoed prompt are one event. Meanwhile the engine goes on, and what it says is not forgotten.
TEST_F(SessionTest, ALongEventOfAStreamIsWrittenByAWorkerAndHoldsUpNobody) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  hold_writing(world_.workers, open);
  std::string ids = "300";
  for (int i = 1; i < 200; ++i) ids += ",300";
  engine_.allow_tokens(1);
  RawClient client = connect();
  client.send(post_completion(R"({"prompt":[)" + ids +
                              R"(],"echo":true,"logprobs":20,"max_tokens":4,"ignore_eos":true,"stream":true})"));
  ASSERT_TRUE(engine_.wait_running(1));
  EXPECT_EQ(ask(get("/live")).status, 200);
  engine_.allow_tokens(-1);
  ASSERT_TRUE(engine_.wait_ended(1));
  EXPECT_EQ(ask(get("/live")).status, 200);
  gate.set_value();
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(SessionTest, KeepsTheConnectionThroughEveryKindOfAnswer) {
  RawClient client = connect();
  for (int round = 0; round < 2; ++round) {
    for (const std::string& request : {post_completion(kBody), post_completion(kStream), get("/live"), get("/nowhere"),
                                       post_completion("{}"), post_completion(kBody)}) {
      ASSERT_TRUE(client.send(request));
      EXPECT_NE(client.read_response().status, 0);
    }
  }
}

TEST_F(SessionTest, AnOrderToTheCacheIsAnsweredOnceTheEngineHasDoneIt) {
  cache_dir_ = "caches";
  RawClient client = connect();
  const std::string save = post("/admin/cache/save", R"({"path":"a.kv"})");
  client.send(save + get("/live"));
  ASSERT_TRUE(engine_.end_order(bridge::CacheReport{7, 8, 9}));
  const RawResponse report = client.read_response();
  EXPECT_EQ(report.status, 200);
  EXPECT_EQ(report.body, R"({"object":"cache_report","blocks":7,"bytes":8,"skipped":9})");
  EXPECT_EQ(client.read_response().status, 200) << "the connection goes on";

  client.send(post("/admin/cache/load", R"({"path":"b.kv"})"));
  ASSERT_TRUE(engine_.end_order(Error{Code::kNotFound, "no such file", "path", 0}));
  EXPECT_EQ(client.read_response().status, 404);
}

TEST_F(SessionTest, AClientThatLeavesDoesNotStopItsOrder) {
  cache_dir_ = "caches";
  {
    RawClient client = connect();
    client.send(post("/admin/cache/save", R"({"path":"a.kv"})"));
    ASSERT_TRUE(engine_.wait_order());
    client.reset();
  }
  ASSERT_TRUE(engine_.end_order(bridge::CacheReport{}));
  RawClient other = connect();
  other.send(post("/admin/cache/save", R"({"path":"a.kv"})"));
  ASSERT_TRUE(engine_.end_order(bridge::CacheReport{}));
  EXPECT_EQ(other.read_response().status, 200);
}

TEST_F(SessionTest, AnswersPipelinedRequestsInOrder) {
  RawClient client = connect();
  client.send(post_completion(kBody) + get("/version") + post_completion(kStream) + get("/nowhere") + get("/live"));
  EXPECT_NE(client.read_response().body.find("Once upon"), std::string::npos);
  EXPECT_NE(client.read_response().body.find("1.2.3"), std::string::npos);
  EXPECT_TRUE(client.read_response().body.ends_with("[DONE]\n\n"));
  EXPECT_EQ(client.read_response().status, 404);
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(SessionTest, ReadsARequestThatComesByteByByte) {
  RawClient client = connect();
  for (const char c : "\r\n" + post_completion(kBody)) client.send(std::string(1, c));
  EXPECT_EQ(client.read_response().status, 200);
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", kBody.size());
  for (const char c : kPostHead + "Transfer-Encoding: chunked\r\n\r\n" + size + kBody + "\r\n0\r\nX: y\r\n\r\n") {
    client.send(std::string(1, c));
  }
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(SessionTest, AnswersHeadWithoutABody) {
  RawClient client = connect();
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: a\r\n\r\n" + get("/live"));
  const RawResponse head = client.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.fields.at("content-length"), "0");
  EXPECT_EQ(client.read_response().body, R"({"status":"alive"})");
}

TEST_F(SessionTest, SaysWhatMethodsAndPathsThereAre) {
  const RawResponse wrong = ask(get("/v1/completions"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.fields.at("allow"), "POST");
  EXPECT_EQ(ask("POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").status, 405);
  EXPECT_EQ(ask(get("/nowhere")).status, 404);
  EXPECT_EQ(ask("GET http://somewhere/live?x HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
  EXPECT_EQ(ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
}

TEST_F(SessionTest, TalksHttp10) {
  RawClient client = connect();
  client.send("GET /live HTTP/1.0\r\n\r\n");
  const RawResponse closing = client.read_response();
  EXPECT_EQ(closing.fields.at("connection"), "close");
  EXPECT_TRUE(closes(client));

  RawClient keeping = connect();
  keeping.send("GET /live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeping.read_response().fields.at("connection"), "keep-alive");
  keeping.send("GET /live HTTP/1.0\r\n\r\n");
  EXPECT_EQ(keeping.read_response().status, 200);

  const RawResponse stream =
      ask("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(kStream.size()) + "\r\n\r\n" + kStream);
  EXPECT_EQ(stream.fields.count("transfer-encoding"), 0u);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(SessionTest, TheNextRequestMayComeWhileAStreamRuns) {
  engine_.allow_tokens(2);
  RawClient client = connect();
  client.send(post_completion(kStream));
  client.read_until("\"text\"");
  client.send(get("/version") + get("/live"));
  engine_.allow_tokens(-1);
  client.read_until("0\r\n\r\n");
  EXPECT_EQ(client.read_response().body, R"({"version":"1.2.3"})");
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(SessionTest, MoreThanABufferPipelinedBehindAStreamIsRead) {
  engine_.allow_tokens(0);
  RawClient client = connect();
  client.send(post_completion(kStream));
  ASSERT_TRUE(engine_.wait_running(1));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += get("/live");
  ASSERT_TRUE(client.send(many));
  engine_.allow_tokens(-1);
  EXPECT_TRUE(client.read_response().body.ends_with("[DONE]\n\n"));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.read_response().status, 200) << i;
}

TEST_F(SessionTest, AStopStringCancelsTheSequence) {
  const RawResponse response =
      ask(post_completion(R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stop":" upon"})"));
  EXPECT_EQ(json::parse(response.body).at("choices").at(0).at("text"), "Once");
  EXPECT_TRUE(engine_.wait_cancelled(1));
}

TEST_F(SessionTest, ErrorsHaveTheirStatusInAStreamToo) {
  EXPECT_EQ(ask(post_completion(R"({"prompt":"a","stream":true,"max_tokens":0})")).status, 400);
  EXPECT_EQ(ask(post_completion(R"({"prompt":"a","stream":true,"model":"b"})")).status, 404);
}

class NotFiniteTest : public SessionTest {
 protected:
  NotFiniteTest()
      : SessionTest([](const flow::Request& request, std::size_t n) {
          return n == 2 ? flow::TokenEvent{-1, flow::Finish::kFailed} : test::FakeEngine::repeat_prompt(request, n);
        }) {}
};

TEST_F(NotFiniteTest, AFaultIsAStatusWhereThereCanBeOneAndElseAnEvent) {
  EXPECT_EQ(ask(post_completion(kBody)).status, 500);
  const RawResponse stream = ask(post_completion(kStream));
  EXPECT_TRUE(stream.status == 500 || stream.body.find("\"code\":500") != std::string::npos) << stream.body;
}

}  // namespace
}  // namespace quire::api::http::session_test
