// Connections under TLS, with records cut as no library would cut them.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "api/http/server.h"
#include "tests/api/generation/fake_engine.h"
#include "tests/api/http/raw_client.h"
#include "tests/api/http/transport/certificates.h"
#include "tests/api/http/transport/tls_client.h"
#include "tests/support/quiet_log.h"

namespace quire::api::http::session_tls_test {
namespace {

using namespace std::chrono_literals;
using test::Certificate;
using test::get;
using test::post_completion;
using test::RawClient;
using test::TlsClient;

const std::string kBody = R"({"prompt":"Once upon a time","max_tokens":4})";
const std::string kEndless = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true})";
const std::string kEndlessStream = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stream":true})";

class TlsSessionTest : public ::testing::Test {
 protected:
  TlsSessionTest() {
    std::signal(SIGPIPE, SIG_IGN);
    config_.port = 0;
    config_.tls = context_of(pair_);
  }
  static std::shared_ptr<const TlsContext> context_of(const Certificate& pair) {
    return TlsContext::load(pair.certificate_path, pair.key_path).value();
  }
  std::uint16_t serve() {
    server_ = std::make_unique<Server>(config_, world_.services());
    server_->start();
    server_->set_ready(true);
    return server_->port();
  }
  static int status_of(TlsClient& client, const std::string& request) {
    client.send(request);
    return std::atoi(client.read_answer().c_str() + 9);
  }

  const Certificate pair_{"session"};
  quire::testing::QuietLog quiet_log_;
  test::World world_;
  ServerConfig config_;
  test::FakeEngine engine_{world_};
  std::unique_ptr<Server> server_;  // goes before the engine
};

TEST_F(TlsSessionTest, SamplesTls12And13AndNothingOlder) {
  const std::uint16_t port = serve();
  for (const auto& [version, name] : {std::pair{TLS1_2_VERSION, "TLSv1.2"}, std::pair{TLS1_3_VERSION, "TLSv1.3"}}) {
    TlsClient client(port, {.min_version = version, .max_version = version});
    ASSERT_TRUE(client.connected()) << name;
    EXPECT_EQ(client.version(), name);
    EXPECT_EQ(status_of(client, get("/live")), 200);
    EXPECT_EQ(status_of(client, post_completion(kBody)), 200) << "on the same connection";
  }
  EXPECT_FALSE(TlsClient(port, {.min_version = TLS1_VERSION, .max_version = TLS1_1_VERSION}).connected());
  const TlsClient::SloHints no_authentication{.max_version = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA"};
  EXPECT_FALSE(TlsClient(port, no_authentication).connected());
  EXPECT_EQ(TlsClient(port).version(), "TLSv1.3") << "the newest that both speak";
}

TEST_F(TlsSessionTest, AnswersRequestsHoweverTheyAreCutIntoRecords) {
  const std::uint16_t port = serve();
  const std::string request = post_completion(kBody);
  TlsClient byte_by_byte(port);
  for (const char byte : request) ASSERT_TRUE(byte_by_byte.send(std::string(1, byte)));
  EXPECT_TRUE(byte_by_byte.read_answer().starts_with("HTTP/1.1 200"));

  // Many in one record: what OpenSSL holds already is never announced by the socket.
  TlsClient all_at_once(port);
  std::string many;
  for (int i = 0; i < 40; ++i) many += request;
  ASSERT_LT(many.size(), 16384u);
  ASSERT_TRUE(all_at_once.send(many));
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(all_at_once.read_answer().starts_with("HTTP/1.1 200")) << i;
}

TEST_F(TlsSessionTest, TakesABodyOfManyRecords) {
  TlsClient client(serve());
  const std::string large = kBody + std::string(3u << 20, ' ');
  ASSERT_TRUE(client.send(post_completion(large)));
  EXPECT_TRUE(client.read_answer().starts_with("HTTP/1.1 200"));
  TlsClient other(server_->port());
  other.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n");
  EXPECT_TRUE(other.read_answer().starts_with("HTTP/1.1 413")) << "limits are those of plain connections";
}

TEST_F(TlsSessionTest, AStreamEndsWithACloseNotify) {
  TlsClient client(serve());
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(kEndlessStream.size()) + "\r\n\r\n" + kEndlessStream);
  const std::string all = client.read_to_the_end();
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n")) << all.substr(all.size() - std::min<std::size_t>(100, all.size()));
  EXPECT_TRUE(client.knows_of_the_end()) << "not cut: closed";
}

TEST_F(TlsSessionTest, AClientThatLeavesEndsItsSequences) {
  const std::uint16_t port = serve();
  engine_.allow_tokens(3);
  std::size_t cancelled = 0;
  for (const std::string& body : {kEndless, kEndlessStream}) {
    for (const bool goodbye : {true, false}) {
      TlsClient client(port);
      client.send(post_completion(body));
      ASSERT_TRUE(engine_.wait_running(1));
      if (goodbye) client.send_end();
      client.raw().close();
      ASSERT_TRUE(engine_.wait_cancelled(++cancelled)) << body << goodbye;
    }
    TlsClient client(port);
    client.send(post_completion(body));
    ASSERT_TRUE(engine_.wait_running(1));
    client.raw().reset();
    ASSERT_TRUE(engine_.wait_cancelled(++cancelled)) << body;
  }
}

TEST_F(TlsSessionTest, AClientThatSendsCloseNotifyAndReadsOnGetsItsAnswer) {
  TlsClient client(serve());
  engine_.allow_tokens(0);
  client.send(post_completion(kBody));
  ASSERT_TRUE(engine_.wait_running(1));
  client.send_end();
  engine_.allow_tokens(-1);
  EXPECT_TRUE(client.read_answer().starts_with("HTTP/1.1 200"));
}

TEST_F(TlsSessionTest, SaysInPlainWordsThatItSpeaksTls) {
  RawClient client(serve());
  client.send(post_completion(kBody));
  const test::RawResponse refused = client.read_response();
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("https://"), std::string::npos);
  EXPECT_FALSE(client.read_some()) << "and closes";
  EXPECT_TRUE(engine_.seen().empty());
}

TEST_F(TlsSessionTest, ClosesWhatIsNoHandshakeAndWhatIsTooSlowAOne) {
  config_.limits.head_timeout = 50ms;
  const std::uint16_t port = serve();
  for (const std::string& bytes : {std::string("\x16\x03\x01"), std::string(), std::string(300, '\xff')}) {
    RawClient client(port);
    client.send(bytes);
    while (client.read_some()) {
    }
    EXPECT_EQ(client.buffer().find("HTTP"), std::string::npos);
  }
  TlsClient good(port);
  EXPECT_EQ(status_of(good, get("/live")), 200);
}

TEST_F(TlsSessionTest, StopsInTheMiddleOfAHandshake) {
  RawClient client(serve());
  client.send("\x16\x03\x01");
  TlsClient other(server_->port());
  EXPECT_EQ(status_of(other, get("/live")), 200);
  server_->stop();
  EXPECT_TRUE(server_->wait());
}

TEST_F(TlsSessionTest, NewConnectionsTakeTheNewPairAndOldOnesGoOn) {
  config_.io_threads = 2;
  const std::uint16_t port = serve();
  std::vector<std::unique_ptr<TlsClient>> old;
  for (int i = 0; i < 4; ++i) old.push_back(std::make_unique<TlsClient>(port));
  for (const auto& client : old) EXPECT_EQ(client->subject(), "session");
  const Certificate renewed("renewed");
  server_->renew_tls(context_of(renewed));
  for (const auto& client : old) EXPECT_EQ(status_of(*client, get("/live")), 200);
  for (int i = 0; i < 4; ++i) {
    TlsClient client(port);
    EXPECT_EQ(client.subject(), "renewed");
    EXPECT_EQ(status_of(client, get("/live")), 200);
  }
}

TEST_F(TlsSessionTest, TheAdminPortIsPlain) {
  config_.admin_port = 0;
  serve();
  RawClient client(server_->admin_port());
  client.send(get("/live"));
  EXPECT_EQ(client.read_response().status, 200);
  server_->renew_tls(context_of(pair_));
  RawClient later(server_->admin_port());
  later.send(get("/live"));
  EXPECT_EQ(later.read_response().status, 200);
}

}  // namespace
}  // namespace quire::api::http::session_tls_test
