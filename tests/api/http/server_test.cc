// The server as a whole: ports, limits, many connections, and going in good order.
#include "api/http/server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "tests/api/generation/fake_engine.h"
#include "tests/api/http/raw_client.h"
#include "tests/support/quiet_log.h"

namespace quire::api::http::server_test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::get;
using test::post_completion;
using test::RawClient;

const std::string kBody = R"({"prompt":"Once upon a time","max_tokens":4})";
const std::string kStream = R"({"prompt":"Once upon a time","max_tokens":8,"stream":true})";
const std::string kEndlessStream = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stream":true})";

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { config_.port = 0; }
  Server& serve(bool ready = true) {
    server_ = std::make_unique<Server>(config_, world_.services());
    server_->start();
    server_->set_ready(ready);
    return *server_;
  }
  int status_of(const std::string& request) { return status_at(server_->port(), request); }
  static int status_at(std::uint16_t port, const std::string& request) {
    RawClient client(port);
    client.send(request);
    return client.read_response().status;
  }

  test::World world_{{.max_sequences = 4096, .max_tokens = 1u << 22}};
  quire::testing::QuietLog quiet_log_;
  ServerConfig config_;
  test::FakeEngine engine_{world_};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, SaysWhatToDoWhenThePortIsTaken) {
  serve();
  ServerConfig same = config_;
  same.port = server_->port();
  Server second(same, world_.services());
  try {
    second.start();
    FAIL() << "two servers on one port";
  } catch (const StartError& error) {
    EXPECT_NE(std::string(error.what()).find("--port"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(same.port)), std::string::npos);
  }
}

TEST_F(ServerTest, SaysWhatAHostIs) {
  config_.host = "no such host";
  Server server(config_, world_.services());
  EXPECT_THROW(server.start(), StartError);
}

TEST_F(ServerTest, MayBeMadeAndNeverStarted) { const Server server(config_, world_.services()); }

TEST_F(ServerTest, IsNotReadyUntilItIsSetReady) {
  serve(false);
  EXPECT_EQ(status_of(get("/live")), 200);
  EXPECT_EQ(status_of(get("/ready")), 503);
  EXPECT_EQ(status_of(post_completion(kBody)), 503);
  server_->set_ready(true);
  EXPECT_EQ(status_of(get("/ready")), 200);
  EXPECT_EQ(status_of(post_completion(kBody)), 200);
}

TEST_F(ServerTest, DrainsFirstNotReadyThenFinishedThenGone) {
  serve();
  engine_.allow_tokens(2);
  RawClient stream(server_->port());
  stream.send(post_completion(kStream));
  stream.read_until("\"text\"");
  RawClient kept(server_->port());
  kept.send(get("/ready"));
  EXPECT_EQ(kept.read_response().status, 200);

  server_->drain();
  kept.send(get("/ready"));
  EXPECT_EQ(kept.read_response().status, 503);
  EXPECT_EQ(status_of(get("/live")), 200);
  RawClient late(server_->port());
  late.send(post_completion(kBody));
  const test::RawResponse refused = late.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.fields.at("retry-after").empty());
  EXPECT_EQ(refused.fields.at("connection"), "close");

  engine_.allow_tokens(-1);
  stream.read_until("data: [DONE]\n\n");
  EXPECT_TRUE(server_->wait()) << "nothing was cut short";
  EXPECT_FALSE(RawClient(server_->port()).connected());
}

TEST_F(ServerTest, DrainsAtOnceWhenNothingIsUnderWay) {
  serve();
  RawClient idle(server_->port());
  idle.send(get("/live"));
  EXPECT_EQ(idle.read_response().status, 200);
  server_->drain();
  server_->drain();
  EXPECT_TRUE(server_->wait());
  EXPECT_TRUE(idle.closed_without_a_byte());
}

TEST_F(ServerTest, CutsWhatOutlastsTheDrain) {
  config_.drain_timeout = 50ms;
  serve();
  engine_.allow_tokens(2);
  RawClient stream(server_->port());
  stream.send(post_completion(kEndlessStream));
  stream.read_until("\"text\"");
  RawClient plain(server_->port());
  plain.send(post_completion(kBody));
  ASSERT_TRUE(engine_.wait_running(2));
  server_->drain();
  EXPECT_FALSE(server_->wait());
  EXPECT_NE(stream.read_until("data: [DONE]\n\n").find("\"code\":503"), std::string::npos);
  EXPECT_EQ(plain.read_response().status, 503);
  EXPECT_TRUE(engine_.wait_cancelled(2));
}

TEST_F(ServerTest, StopsWithRequestsInEveryState) {
  serve();
  engine_.allow_tokens(3);
  std::vector<RawClient> clients;
  for (const std::string& request :
       {std::string(), std::string("GET /li"), std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"),
        post_completion(kBody), post_completion(kEndlessStream)}) {
    clients.emplace_back(server_->port());
    clients.back().send(request);
  }
  ASSERT_TRUE(engine_.wait_running(2));
  const auto begun = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_FALSE(server_->wait());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST_F(ServerTest, DiesWithRequestsInFlight) {
  serve();
  engine_.hold_queue(true);
  RawClient client(server_->port());
  client.send(post_completion(kEndlessStream));
  while (world_.queue.waiting_sequences() == 0) std::this_thread::yield();
  server_.reset();
  engine_.hold_queue(false);
  EXPECT_TRUE(engine_.wait_cancelled(1)) << "the engine may hold a stream longer than the server lives";
}

TEST_F(ServerTest, SlicesTheConnectionTooManyAway) {
  config_.max_connections = 3;
  serve();
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server_->port());
    clients.back().send(get("/live"));
    EXPECT_EQ(clients.back().read_response().status, 200);
  }
  EXPECT_EQ(world_.metrics.open_connections.value(), 3.0);
  {
    RawClient extra(server_->port());
    EXPECT_EQ(extra.read_response().status, 503);
  }
  clients.pop_back();
  for (int tries = 0; status_of(get("/live")) != 200; ++tries) ASSERT_LT(tries, 1000);
}

TEST_F(ServerTest, SlicesTheRequestTooManyAwayAtOnce) {
  server_.reset();
  test::World small({.max_sequences = 2, .max_tokens = 1000});
  test::FakeEngine engine(small);
  engine.hold_queue(true);
  server_ = std::make_unique<Server>(config_, small.services());
  server_->start();
  server_->set_ready(true);
  std::vector<RawClient> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back(server_->port());
    waiting.back().send(post_completion(i == 0 ? kBody : kStream));
  }
  while (small.queue.waiting_sequences() != 2) std::this_thread::yield();
  for (const std::string& body : {kBody, kStream, std::string(R"({"prompt":["a","b","c"]})")}) {
    RawClient client(server_->port());
    client.send(post_completion(body));
    const test::RawResponse refused = client.read_response();
    EXPECT_EQ(refused.status, 429);
    EXPECT_GE(std::stoi(refused.fields.at("retry-after")), 1);
    EXPECT_EQ(json::parse(refused.body).at("error").at("type"), "rate_limit_error");
  }
  engine.hold_queue(false);
  for (RawClient& client : waiting) EXPECT_EQ(client.read_response().status, 200);
  server_.reset();
}

TEST_F(ServerTest, TakesNoMoreTextThanTheWorkersCanHold) {
  server_.reset();
  test::World small({}, 100000);
  test::FakeEngine engine(small);
  server_ = std::make_unique<Server>(config_, small.services());
  server_->start();
  server_->set_ready(true);
  // The workers are busy until the gate opens; the next body fits into the budget, the one after it does not.
  std::mutex gate;
  gate.lock();
  const auto hold = [&small, &gate](const std::string& caller) {
    Workers::Work work{.caller = caller, .bytes = 1, .run = {}, .done = [](bool) {}};
    work.run = [&gate](Allowance&) { const std::lock_guard wait(gate); };
    return small.workers.post(Lane::kQuick, std::move(work)).ticket != nullptr;
  };
  ASSERT_TRUE(hold("one") && hold("another"));
  const std::string large = kBody + std::string(60000, ' ');
  RawClient first(server_->port());
  first.send(post_completion(large));
  while (small.workers.figures(Lane::kQuick).jobs < 3) std::this_thread::yield();
  RawClient second(server_->port());
  second.send(post_completion(large));
  const test::RawResponse refused = second.read_response();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.fields.at("retry-after"), "1");
  EXPECT_NE(refused.body.find("75000 bytes in total"), std::string::npos) << refused.body;
  EXPECT_EQ(small.budgets.bodies.num_refused(), 1u);
  gate.unlock();
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(small.budgets.bodies.held(), 0u);
  server_.reset();
}

TEST_F(ServerTest, TakesNoMoreSlowWorkThanMayWait) {
  server_.reset();
  test::World small;
  test::FakeEngine engine(small);
  Services services = small.services();
  services.grammars =
      std::make_shared<Grammars>(vocabulary_of(*services.tokenizer, services.logits_width, services.eos));
  server_ = std::make_unique<Server>(config_, services);
  server_->start();
  server_->set_ready(true);
  std::mutex gate;
  gate.lock();
  const auto hold = [&small, &gate](std::size_t i) {
    Workers::Work work{.caller = std::to_string(i), .bytes = 1, .run = {}, .done = [](bool) {}};
    work.run = [&gate](Allowance&) { const std::lock_guard wait(gate); };
    return small.workers.post(Lane::kSlow, std::move(work)).ticket != nullptr;
  };
  for (std::size_t i = 0; i < Workers::kMaxSlowJobs; ++i) ASSERT_TRUE(hold(i)) << i;
  EXPECT_FALSE(hold(Workers::kMaxSlowJobs));
  RawClient client(server_->port());
  client.send(post_completion(R"({"prompt":"Once","guided_regex":"[ab]*a[ab]{16}"})"));
  const test::RawResponse refused = client.read_response();
  EXPECT_EQ(refused.status, 429);
  EXPECT_GE(std::stoi(refused.fields.at("retry-after")), 1);
  EXPECT_NE(refused.body.find("too many request bytes"), std::string::npos) << refused.body;
  RawClient plain(server_->port());
  plain.send(post_completion(kBody));
  EXPECT_EQ(plain.read_response().status, 200);
  gate.unlock();
  server_.reset();
}

TEST_F(ServerTest, AcceptsAgainWhenDescriptorsAreFreeAgain) {
  serve();
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(RawClient::Unconnected{});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{static_cast<rlim_t>(clients.back().fd()) + 1 + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (RawClient& client : clients) EXPECT_TRUE(client.connect(server_->port()));
  for (RawClient& client : clients) client.send(get("/version"));
  std::size_t answered = 0;
  for (RawClient& client : clients) {
    // Each answered client leaves, and with it the server's descriptor.
    answered += client.read_response().status == 200 ? 1 : 0;
    client.close();
  }
  EXPECT_EQ(answered, clients.size());
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ServerTest, HasNoAdminPortByDefault) {
  serve();
  EXPECT_EQ(server_->admin_port(), 0);
  EXPECT_EQ(status_of(test::post("/admin/cache/save", "{}")), 404) << "there is no --cache-dir";
}

TEST_F(ServerTest, AnswersOnTheAdminPortWhileTheOtherOneIsFull) {
  config_.admin_port = 0;
  config_.max_connections = 2;
  serve();
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server_->port());
    clients.back().send(get("/live"));
    EXPECT_EQ(clients.back().read_response().status, 200);
  }
  ASSERT_EQ(status_of(get("/live")), 503);
  for (const char* path : {"/live", "/ready", "/health", "/metrics"}) {
    EXPECT_EQ(status_at(server_->admin_port(), get(path)), 200) << path;
  }
  EXPECT_EQ(world_.metrics.open_connections.value(), 2.0) << "clients alone are counted";
  EXPECT_EQ(status_at(server_->admin_port(), post_completion(kBody)), 404);
}

TEST_F(ServerTest, BothPortsDrainAndEnd) {
  config_.admin_port = 0;
  serve();
  engine_.allow_tokens(2);
  RawClient stream(server_->port());
  stream.send(post_completion(kStream));
  stream.read_until("\"text\"");
  server_->drain();
  EXPECT_EQ(status_at(server_->admin_port(), get("/live")), 200);
  EXPECT_EQ(status_at(server_->admin_port(), get("/ready")), 503);
  engine_.allow_tokens(-1);
  stream.read_until("data: [DONE]\n\n");
  EXPECT_TRUE(server_->wait());
  EXPECT_FALSE(RawClient(server_->port()).connected());
  EXPECT_FALSE(RawClient(server_->admin_port()).connected());
}

TEST_F(ServerTest, SaysWhichFlagToChangeWhenTheAdminPortIsTaken) {
  serve();
  ServerConfig same = config_;
  same.admin_port = server_->port();
  Server second(same, world_.services());
  try {
    second.start();
    FAIL() << "two servers on one port";
  } catch (const StartError& error) {
    EXPECT_NE(std::string(error.what()).find("--admin-port"), std::string::npos) << error.what();
  }
}

class ManyStreams : public ServerTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(ManyStreams, AThousandAtOnceEachGetTheirOwnTokens) {
  constexpr std::size_t kStreams = 1000;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 3 * kStreams) {
    files.rlim_cur = files.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < 3 * kStreams) GTEST_SKIP() << "this machine allows too few open files";
  }
  config_.io_threads = GetParam();
  serve();
  engine_.allow_tokens(0);
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back(server_->port());
    const std::string token = std::to_string(i + 100);
    ASSERT_TRUE(
        clients.back().send(post_completion(R"({"prompt":[)" + token + R"(],"max_tokens":100,"stream":true})")));
  }
  ASSERT_TRUE(engine_.wait_running(kStreams));
  engine_.allow_tokens(-1);
  for (std::size_t i = 0; i < kStreams; ++i) {
    const test::RawResponse response = clients[i].read_response();
    ASSERT_EQ(response.status, 200);
    ASSERT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
    std::string text;
    for (std::size_t at = 0; (at = response.body.find("data: {", at)) != std::string::npos; at += 6) {
      const json::value event = json::parse(response.body.substr(at + 6, response.body.find("\n\n", at) - at - 6));
      text += event.at("choices").at(0).at("text").as_string();
    }
    const std::vector<TokenId> expected(100, static_cast<TokenId>(i + 100));
    ASSERT_EQ(text, test::stories_tokenizer()->decode(expected, true)) << i;
  }
  EXPECT_TRUE(engine_.wait_running(0));
}

INSTANTIATE_TEST_SUITE_P(IoThreads, ManyStreams, ::testing::Values(1u, 2u));

}  // namespace
}  // namespace quire::api::http::server_test
