// A server with one connection at a time, for tests that send bytes over real loopback sockets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "api/http/server.h"
#include "tests/api/generation/fake_engine.h"
#include "tests/api/http/raw_client.h"
#include "tests/support/quiet_log.h"

namespace quire::api::http {

using test::get;
using test::post;
using test::post_completion;
using test::RawClient;
using test::RawResponse;

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(test::FakeEngine::Script script = test::FakeEngine::repeat_prompt)
      : engine_(world_, std::move(script)) {}

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

  quire::testing::QuietLog quiet_log_;
  test::World world_;
  ServerConfig config_;
  std::string cache_dir_;
  test::FakeEngine engine_;
  std::unique_ptr<Server> server_;  // goes before the engine
};

inline const std::string kBody = R"({"prompt":"Once upon a time","max_tokens":4})";
inline const std::string kStream = R"({"prompt":"Once upon a time","max_tokens":4,"stream":true})";
inline const std::string kEndless = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true})";
inline const std::string kEndlessStream =
    R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stream":true})";

inline const std::string kPostHead = "POST /v1/completions HTTP/1.1\r\nHost: a\r\n";

}  // namespace quire::api::http
