// One connection at a time, over real loopback sockets, with bytes that no library would send.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <string>
#include <vector>

#include "api/http/server.h"
#include "core/base/log.h"
#include "tests/api/fake_engine.h"
#include "tests/api/raw_client.h"

namespace quire::api::http {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::get;
using test::post;
using test::post_completion;
using test::RawClient;
using test::RawResponse;

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(test::FakeEngine::Script script = test::FakeEngine::repeat_prompt)
      : engine_(world_, std::move(script)) {
    set_log_level(LogLevel::kOff);
  }

  // Limits short enough for tests; each test may change config_ before it calls serve().
  void serve() {
    config_.port = 0;
    Services services = world_.services();
    services.cache_dir = cache_dir_;
    server_ = std::make_unique<Server>(config_, services);
    server_->start();
    server_->set_ready(true);
  }
  RawClient connect() {
    if (!server_) serve();
    RawClient client(server_->port());
    EXPECT_TRUE(client.connected());
    return client;
  }
  RawResponse ask(const std::string& request, bool to_head = false) {
    RawClient client = connect();
    client.send(request);
    return client.read_response(to_head);
  }
  static bool closes(RawClient& client) { return !client.read_some() && client.buffer().empty(); }

  test::World world_;
  ServerConfig config_;
  std::string cache_dir_;
  test::FakeEngine engine_;
  std::unique_ptr<Server> server_;  // goes before the engine
};

const std::string kBody = R"({"prompt":"Once upon a time","max_tokens":4})";
const std::string kStream = R"({"prompt":"Once upon a time","max_tokens":4,"stream":true})";
const std::string kEndless = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true})";
const std::string kEndlessStream = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stream":true})";

const std::string kPostHead = "POST /v1/completions HTTP/1.1\r\nHost: a\r\n";

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

TEST_F(SessionTest, EachWriteOfAStreamIsTimedFromItsEventAndEachTurnOfTheThread) {
  const auto all = [](const observe::Histogram& histogram) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) sum += histogram.count(i);
    return sum;
  };
  RawClient client = connect();
  client.send(post_completion(kBody));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(all(world_.metrics.event_to_socket_s), 0u) << "no stream yet";
  client.send(post_completion(kStream));
  EXPECT_EQ(client.read_response().status, 200);
  client.send(get("/live"));  // behind what there was to count
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_GE(all(world_.metrics.event_to_socket_s), 1u);
  EXPECT_LE(all(world_.metrics.event_to_socket_s), 4u) << "no more than events";
  EXPECT_LT(world_.metrics.event_to_socket_s.sum(), 20.0);
  EXPECT_GE(all(world_.metrics.io_turn_s), 6u);
}

TEST_F(SessionTest, ALongAnswerIsWrittenByAWorkerAndHoldsUpNobody) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  ASSERT_TRUE(world_.workers.post(Lane::kWriting, 0, [open] { open.wait(); }));
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

TEST_F(SessionTest, ReadsAChunkedBodyInAnyPieces) {
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece : {1u, 7u, 1000u}) {
    std::string request = head;
    for (std::size_t at = 0; at < kBody.size(); at += piece) {
      const std::string part = kBody.substr(at, piece);
      char size[16];
      std::snprintf(size, sizeof size, "%zX\r\n", part.size());
      request += size + part + "\r\n";
    }
    RawClient client = connect();
    client.send(request + "0\r\nX-Trailer: ignored\r\nConnection: close\r\n\r\n" + get("/live"));
    EXPECT_EQ(client.read_response().status, 200) << piece;
    EXPECT_EQ(client.read_response().status, 200) << "a trailer must not close the connection";
  }
}

struct BadChunks {
  const char* what;
  const char* body;
};

class SessionChunks : public SessionTest, public testing::WithParamInterface<BadChunks> {};

TEST_P(SessionChunks, AreRefusedWhereParsersDiffer) {
  RawClient client = connect();
  client.send(std::string("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n") +
              GetParam().body + get("/version"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 400) << response.body;
  EXPECT_EQ(response.fields.at("connection"), "close");
  EXPECT_TRUE(closes(client)) << "the bytes after it must not be answered: " << client.buffer();
}

INSTANTIATE_TEST_SUITE_P(
    Table, SessionChunks,
    testing::Values(
        BadChunks{"bare_line_feed", "2\n{}\n0\n\n"}, BadChunks{"line_feed_after_size", "2\n{}\r\n0\r\n\r\n"},
        BadChunks{"negative", "-2\r\n{}\r\n0\r\n\r\n"}, BadChunks{"plus", "+2\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"hex_prefix", "0x2\r\n{}\r\n0\r\n\r\n"}, BadChunks{"space_before", " 2\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"space_after", "2 \r\n{}\r\n0\r\n\r\n"}, BadChunks{"extension", "2;a=b\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"quoted_line_feed", "2;a=\"\n\"\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"extension_on_the_last", "2\r\n{}\r\n0;a=b\r\n\r\n"}, BadChunks{"no_size", "\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"overflow", "10000000000000002\r\n{}\r\n0\r\n\r\n"}, BadChunks{"too_short", "1\r\n{}\r\n0\r\n\r\n"},
        BadChunks{"no_end", "2\r\n{}0\r\n\r\n"}),
    [](const auto& param) { return std::string(param.param.what); });

struct BadHead {
  const char* what;
  std::string bytes;
  int status;
};

class SessionHeads : public SessionTest, public testing::WithParamInterface<BadHead> {};

TEST_P(SessionHeads, GetOneReplyAndAClose) {
  RawClient client = connect();
  client.send(GetParam().bytes);
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, GetParam().status);
  EXPECT_EQ(response.fields.at("connection"), "close");
  EXPECT_EQ(json::parse(response.body).at("error").at("code"), GetParam().status);
  EXPECT_TRUE(closes(client)) << client.buffer();
}

const std::string kInner = "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";
INSTANTIATE_TEST_SUITE_P(
    Table, SessionHeads,
    testing::Values(
        BadHead{"te_and_cl", kPostHead + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kInner,
                400},
        BadHead{"te_identity", kPostHead + "Transfer-Encoding: identity\r\n\r\n" + kInner, 400},
        BadHead{"te_not_ending_in_chunked", kPostHead + "Transfer-Encoding: chunked, identity\r\n\r\n" + kInner, 400},
        BadHead{"double_te",
                kPostHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + kInner, 400},
        BadHead{"double_cl", kPostHead + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + kInner, 400},
        BadHead{"double_host", "GET /live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + kInner, 400},
        BadHead{"no_host", "GET /live HTTP/1.1\r\n\r\n" + kInner, 400},
        BadHead{"bare_line_feeds", "GET /live HTTP/1.1\nHost: a\n\n" + kInner, 400},
        BadHead{"one_bare_line_feed", "GET /live HTTP/1.1\r\nHost: a\nX: y\r\n\r\n" + kInner, 400},
        BadHead{"folding", "GET /live HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n" + kInner, 400},
        BadHead{"chunked_in_1_0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kInner,
                400},
        BadHead{"not_http", std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10), 400},
        BadHead{"http_2_preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        BadHead{"no_length", kPostHead + "\r\n", 411},
        BadHead{"body_too_large", kPostHead + "Content-Length: 9000000000\r\n\r\n", 413},
        BadHead{"unknown_expectation", kPostHead + "Content-Length: 1\r\nExpect: tea\r\n\r\n", 417},
        BadHead{"many_fields",
                "GET / HTTP/1.1\r\nHost: a\r\n" +
                    [] {
                      std::string fields;
                      for (int i = 0; i < 128; ++i) fields += "X: y\r\n";
                      return fields;
                    }() +
                    "\r\n",
                431},
        BadHead{"long_field", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", 431},
        BadHead{"long_line", "GET /" + std::string(100000, 'x'), 431}),
    [](const auto& param) { return std::string(param.param.what); });

TEST_F(SessionTest, HoldsBodiesToTheLimitWhateverTheirFraming) {
  config_.limits.body_bytes = 1000;
  for (const std::size_t size : {999u, 1000u, 1001u}) {
    const std::string body = kBody + std::string(size - kBody.size(), ' ');
    const int expected = size <= 1000 ? 200 : 413;
    EXPECT_EQ(ask(post_completion(body)).status, expected) << size;
    char chunk[16];
    std::snprintf(chunk, sizeof chunk, "%zx\r\n", size);
    EXPECT_EQ(ask(kPostHead + "Transfer-Encoding: chunked\r\n\r\n" + chunk + body + "\r\n0\r\n\r\n").status, expected)
        << size;
  }
  std::string tiny = kPostHead + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1001; ++i) tiny += "1\r\n \r\n";
  EXPECT_EQ(ask(tiny).status, 413) << "many small chunks are one large body";
}

TEST_F(SessionTest, ReadsABodyOfMegabytes) {
  const RawResponse response = ask(post_completion(kBody + std::string(8000000, ' ')));
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST_F(SessionTest, AClientThatSendsTooMuchStillReadsTheReply) {
  RawClient client = connect();
  client.send(kPostHead + "Content-Length: 9000000\r\n\r\n");
  const std::string part(100000, 'x');
  for (int i = 0; i < 90 && client.send(part); ++i) {
  }
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(SessionTest, MeetsTheExpectationOf100Continue) {
  RawClient client = connect();
  client.send(kPostHead + "Expect: 100-continue\r\nContent-Length: " + std::to_string(kBody.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 100);
  client.send(kBody);
  EXPECT_EQ(client.read_response().status, 200);

  RawClient large = connect();
  large.send(kPostHead + "Expect: 100-continue\r\nContent-Length: 9000000\r\n\r\n");
  EXPECT_EQ(large.read_response().status, 413) << "without asking for the body";
}

TEST_F(SessionTest, KeepsOnlyPlainRequestIds) {
  for (const char* id : {"a b", "a\tb", "\"x\"", "<x>", "\xC3\xA9"}) {
    const RawResponse response = ask(std::string("GET /live HTTP/1.1\r\nHost: a\r\nX-Request-Id: ") + id + "\r\n\r\n");
    EXPECT_EQ(response.fields.at("x-request-id").size(), 32u);
  }
  for (const std::size_t size : {127u, 128u, 129u}) {
    const std::string id(size, 'i');
    const RawResponse response = ask("GET /live HTTP/1.1\r\nHost: a\r\nX-Request-Id: " + id + "\r\n\r\n");
    EXPECT_EQ(response.fields.at("x-request-id") == id, size <= 128);
  }
}

// ---- time

TEST_F(SessionTest, AHeadThatDripsEndsInTime) {
  config_.limits.head_timeout = 150ms;
  RawClient client = connect();
  const auto begun = std::chrono::steady_clock::now();
  client.send("GET /live HTTP/1.1\r\n");
  while (client.send("X: y\r\n") && !client.read_some(20)) {
    if (std::chrono::steady_clock::now() - begun > 10s) break;
  }
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

TEST_F(SessionTest, ABodyThatDripsEndsInTime) {
  config_.limits.body_timeout = 200ms;
  RawClient client = connect();
  client.send(kPostHead + "Content-Length: 8000000\r\n\r\n");
  const auto begun = std::chrono::steady_clock::now();
  while (client.send("x") && !client.read_some(20)) {
    if (std::chrono::steady_clock::now() - begun > 10s) break;
  }
  EXPECT_EQ(client.read_response().status, 408);
}

TEST_F(SessionTest, ABodyThatStallsEndsInTime) {
  config_.limits.body_read_timeout = 100ms;
  RawClient client = connect();
  client.send(kPostHead + "Content-Length: 100\r\n\r\n{");
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_TRUE(closes(client));
}

TEST_F(SessionTest, AnIdleConnectionIsClosedWithoutAWord) {
  config_.limits.idle_timeout = 100ms;
  RawClient fresh = connect();
  EXPECT_TRUE(fresh.closed_without_a_byte());
  RawClient used = connect();
  used.send(get("/live"));
  EXPECT_EQ(used.read_response().status, 200);
  EXPECT_TRUE(used.closed_without_a_byte());
}

TEST_F(SessionTest, ALongAnswerIsNotAnIdleConnection) {
  config_.limits.idle_timeout = config_.limits.head_timeout = 50ms;
  config_.limits.first_byte_delay = 150ms;
  engine_.allow_tokens(0);
  RawClient client = connect();
  client.send(post_completion(kStream));
  EXPECT_NE(client.read_until(": keep-alive\n\n").find("HTTP/1.1 200"), std::string::npos);
  engine_.allow_tokens(-1);
  client.read_until("[DONE]");
}

TEST_F(SessionTest, ASilentStreamSaysThatItLives) {
  config_.limits.first_byte_delay = 20ms;
  config_.limits.ping_interval = 20ms;
  engine_.allow_tokens(1);
  RawClient client = connect();
  client.send(post_completion(kStream));
  client.read_until("\"text\"");
  for (int i = 0; i < 3; ++i) client.read_until("\r\n: keep-alive\n\n\r\n");
  engine_.allow_tokens(-1);
  client.read_until("[DONE]");
}

TEST_F(SessionTest, AReaderThatStopsEndsInTime) {
  config_.limits.write_timeout = 200ms;
  RawClient client = connect();
  const std::string metrics = get("/metrics");
  std::string many;
  for (int i = 0; i < 100; ++i) many += metrics;
  // Never reads: after the buffers are full, the server's write waits, and with it everything else it reads.
  const auto begun = std::chrono::steady_clock::now();
  while (client.send(many) && std::chrono::steady_clock::now() - begun < 15s) {
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 15s);
}

// ---- the client goes away

TEST_F(SessionTest, ADisconnectCancelsInEveryState) {
  const struct {
    const char* what;
    bool held;
    std::int64_t tokens;
    const std::string& body;
  } kStates[] = {{"queued", true, -1, kEndless},     {"queued stream", true, -1, kEndlessStream},
                 {"prefilling", false, 0, kEndless}, {"prefilling stream", false, 0, kEndlessStream},
                 {"decoding", false, 3, kEndless},   {"decoding stream", false, 3, kEndlessStream}};
  std::size_t cancelled = 0;
  for (const bool reset : {false, true}) {
    for (const auto& state : kStates) {
      engine_.hold_queue(state.held);
      engine_.allow_tokens(state.tokens);
      RawClient client = connect();
      client.send(post_completion(state.body));
      if (state.held) {
        while (world_.queue.waiting_sequences() == 0) std::this_thread::yield();
      } else {
        ASSERT_TRUE(engine_.wait_running(1)) << state.what;
      }
      reset ? client.reset() : client.close();
      if (state.held) {
        while (world_.metrics.client_disconnects.value() <= cancelled) std::this_thread::yield();
        engine_.hold_queue(false);
      }
      EXPECT_TRUE(engine_.wait_cancelled(++cancelled)) << state.what << reset;
      EXPECT_TRUE(engine_.wait_running(0)) << state.what;
    }
  }
  EXPECT_EQ(world_.metrics.client_disconnects.value(), cancelled);
}

TEST_F(SessionTest, AClientThatHalfClosesStillGetsItsAnswer) {
  for (const std::string& body : {kBody, kStream}) {
    engine_.allow_tokens(0);
    RawClient client = connect();
    client.send(post_completion(body));
    ASSERT_TRUE(engine_.wait_running(1));
    client.half_close();
    // What shows that it is still there comes before the answer does, and is a part of it.
    ASSERT_TRUE(client.read_some());
    EXPECT_TRUE(client.buffer().starts_with("HTTP/1.1 "));
    engine_.allow_tokens(-1);
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_NE(response.body.find("time"), std::string::npos);
    EXPECT_TRUE(closes(client));
  }
  RawClient quick = connect();
  quick.send(get("/version"));
  quick.half_close();
  EXPECT_EQ(quick.read_response().status, 200);
  engine_.allow_tokens(0);
  RawClient several = connect();
  several.send(post_completion(kBody) + get("/version") + post_completion(kStream) + get("/live"));
  several.half_close();
  ASSERT_TRUE(several.read_some());
  engine_.allow_tokens(-1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(several.read_response().status, 200) << i;
  EXPECT_TRUE(closes(several));
  EXPECT_EQ(world_.metrics.client_disconnects.value(), 0u);
}

TEST_F(SessionTest, AClientThatHalfClosesWithoutARequestIsLetGo) {
  RawClient silent = connect();
  silent.half_close();
  EXPECT_TRUE(closes(silent));
  RawClient partial = connect();
  partial.send("GET /live HT");
  partial.half_close();
  EXPECT_TRUE(closes(partial));
  RawClient body = connect();
  body.send(kPostHead + "Content-Length: 100\r\n\r\n{");
  body.half_close();
  EXPECT_TRUE(closes(body));
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
}  // namespace quire::api::http
