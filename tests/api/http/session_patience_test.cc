// How long a connection waits for a client that drips, stalls or says nothing, and what becomes of one that goes away.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/api/http/session_rig.h"

namespace quire::api::http::session_patience_test {
namespace {

using namespace std::chrono_literals;

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

TEST_F(SessionTest, ASilentStreamSendsKeepAlives) {
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

}  // namespace
}  // namespace quire::api::http::session_patience_test
