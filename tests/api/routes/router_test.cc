#include "api/routes/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::http::router_test {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  Response reply(const std::string& method, const std::string& path, Request request = {}) {
    request.method = method;
    request.path = path;
    Reply answered = route(std::move(request), services_, serving_, surface_);
    if (auto* response = std::get_if<Response>(&answered)) return *response;
    Response started;
    started.status = 0;
    return started;
  }
  static std::string field(const Response& response, const std::string& name) {
    for (const Field& one : response.fields) {
      if (one.name == name) return one.value;
    }
    return {};
  }

  test::World world_;
  Services services_ = world_.services();
  admin::Serving serving_{.ready = true, .draining = false};
  Surface surface_ = Surface::kEverything;
};

TEST_F(RouterTest, AnswersEveryGet) {
  for (const char* path :
       {"/live", "/ready", "/startup", "/health", "/metrics", "/version", "/v1/models", "/v1/models/stories"}) {
    for (const char* method : {"GET", "HEAD"}) EXPECT_EQ(reply(method, path).status, 200) << path;
  }
  EXPECT_EQ(reply("GET", "/version").body, R"({"version":"1.2.3"})");
  EXPECT_TRUE(reply("GET", "/metrics").content_type.starts_with("text/plain; version=0.0.4"));
  EXPECT_NE(reply("GET", "/metrics").body.find("vllm:num_requests_running"), std::string::npos);
}

class RouterWithKeysTest : public RouterTest {
 protected:
  RouterWithKeysTest() { services_.keys = &keys_; }

  static std::shared_ptr<const keys::KeyTable> table() {
    std::vector<keys::KeyEntry> entries;
    for (const keys::Role role : {keys::Role::kUser, keys::Role::kMonitor, keys::Role::kAdmin}) {
      const std::string name = keys::name_of(role);
      entries.push_back({.name = name, .digest = keys::digest_of("secret of " + name), .role = role});
    }
    return std::make_shared<const keys::KeyTable>(entries, nullptr);
  }
  static Request with(const std::string& role) {
    Request request;
    if (!role.empty()) request.authorization = "Bearer secret of " + role;
    return request;
  }

  const concurrent::Latest<keys::KeyTable> keys_{table()};
};

TEST_F(RouterWithKeysTest, EveryPathButProbesNeedsAKey) {
  const std::pair<const char*, const char*> kPaths[] = {{"GET", "/metrics"},
                                                        {"GET", "/version"},
                                                        {"GET", "/openapi.json"},
                                                        {"GET", "/v1/models"},
                                                        {"GET", "/v1/models/stories"},
                                                        {"GET", "/v1/requests/a/explain"},
                                                        {"DELETE", "/v1/requests/a"},
                                                        {"POST", "/v1/completions"},
                                                        {"POST", "/v1/completions/render"},
                                                        {"POST", "/v1/chat/completions"},
                                                        {"POST", "/v1/chat/completions/render"},
                                                        {"POST", "/v1/responses"},
                                                        {"POST", "/v1/messages"},
                                                        {"POST", "/v1/messages/count_tokens"},
                                                        {"POST", "/v1/embeddings"},
                                                        {"POST", "/tokenize"},
                                                        {"POST", "/detokenize"},
                                                        {"POST", "/admin/cache/save"},
                                                        {"POST", "/admin/cache/load"},
                                                        {"POST", "/admin/cache/clear"},
                                                        {"GET", "/admin/requests"},
                                                        {"GET", "/admin/requests/a/explain"},
                                                        {"DELETE", "/admin/requests/a"},
                                                        {"GET", "/no/such/path"},
                                                        {"GET", ""},
                                                        {"BREW", "/v1/completions"},
                                                        {"GET", "//live"},
                                                        {"GET", "/live/"},
                                                        {"GET", "/LIVE"}};
  for (const auto& [method, path] : kPaths) {
    const Response refused = reply(method, path);
    EXPECT_EQ(refused.status, 401) << method << " " << path;
    EXPECT_EQ(field(refused, "WWW-Authenticate"), "Bearer") << path;
    EXPECT_EQ(boost::json::parse(refused.body).at("error").at("code"), "invalid_api_key") << path;
    EXPECT_NE(reply(method, path, with("admin")).status, 401) << path;
    EXPECT_NE(reply(method, path, with("admin")).status, 403) << path;
  }
  for (const char* path : {"/live", "/ready", "/startup", "/health"}) {
    EXPECT_EQ(reply("GET", path).status, 200) << path;
    EXPECT_EQ(reply("GET", path, with("nobody")).status, 200) << path;
  }
}

TEST_F(RouterWithKeysTest, AKeyOpensWhatItsRoleMay) {
  const auto status = [this](const char* method, const char* path, const char* role) {
    return reply(method, path, with(role)).status;
  };
  EXPECT_EQ(status("GET", "/v1/models", "user"), 200);
  EXPECT_EQ(status("GET", "/v1/models", "monitor"), 403);
  EXPECT_EQ(status("GET", "/metrics", "user"), 403);
  EXPECT_EQ(status("GET", "/metrics", "monitor"), 200);
  EXPECT_EQ(status("GET", "/metrics", "admin"), 200);
  for (const char* role : {"user", "monitor"}) {
    EXPECT_EQ(status("GET", "/admin/requests", role), 403);
    EXPECT_EQ(status("GET", "/admin/requests/a/explain", role), 403);
    EXPECT_EQ(status("DELETE", "/admin/requests/a", role), 403);
  }
  EXPECT_EQ(status("GET", "/admin/requests", "admin"), 200);
  for (const char* path : {"/admin/cache/save", "/admin/cache/load", "/admin/cache/clear", "/admin/other", "/admin"}) {
    EXPECT_EQ(status("POST", path, "user"), 403) << path;
    EXPECT_EQ(status("POST", path, "monitor"), 403) << path;
  }
  const Response refused = reply("POST", "/admin/cache/save", with("user"));
  EXPECT_EQ(boost::json::parse(refused.body).at("error").at("type"), "permission_error");
  EXPECT_EQ(field(refused, "WWW-Authenticate"), "");
}

TEST_F(RouterWithKeysTest, AnthropicsClientsGetErrorsInTheirShape) {
  const Response refused = reply("POST", "/v1/messages");
  EXPECT_EQ(boost::json::parse(refused.body).at("type"), "error");
  Request request;
  request.api_key = "secret of user";
  EXPECT_EQ(reply("POST", "/v1/messages", request).status, 0) << "an answer made over time";
}

TEST_F(RouterWithKeysTest, TheMetricsHaveEachKey) {
  const std::string text = reply("GET", "/metrics", with("monitor")).body;
  EXPECT_NE(text.find("vllm:num_requests_running"), std::string::npos);
  EXPECT_NE(text.find(R"(quire:key_requests_total{key="user"} 0)"), std::string::npos);
}

TEST_F(RouterTest, ListsTheModels) {
  const boost::json::value list = boost::json::parse(reply("GET", "/v1/models").body);
  EXPECT_EQ(list.at("object"), "list");
  ASSERT_EQ(list.at("data").as_array().size(), 2u);
  EXPECT_EQ(list.at("data").at(0).at("id"), "stories");
  EXPECT_EQ(list.at("data").at(0).at("object"), "model");
  EXPECT_EQ(list.at("data").at(0).at("created"), 1700000000);
  EXPECT_EQ(list.at("data").at(0).at("max_model_len"), 512);
  EXPECT_EQ(boost::json::parse(reply("GET", "/v1/models/org%2Fstories").body).at("id"), "org/stories");
  EXPECT_EQ(boost::json::parse(reply("GET", "/v1/models/org/stories").body).at("id"), "org/stories");
  EXPECT_EQ(reply("GET", "/v1/models/%zz%2").status, 404);
}

TEST_F(RouterTest, TellsNoClientThePathOfTheModelAndTakesIt) {
  services_.model_names = ModelNames({"stories"}, "/srv/models/stories");
  for (const char* path : {"/v1/models", "/v1/models/stories", "/v1/models/none"}) {
    EXPECT_EQ(reply("GET", path).body.find("/srv"), std::string::npos) << path;
  }
  const boost::json::value listed = boost::json::parse(reply("GET", "/v1/models").body);
  ASSERT_EQ(listed.at("data").as_array().size(), 1u);
  EXPECT_EQ(listed.at("data").at(0).at("root"), "stories");
  EXPECT_EQ(reply("GET", "/v1/models/%2Fsrv%2Fmodels%2Fstories").status, 200);
  EXPECT_EQ(reply("GET", "/v1/models/%2Fsrv%2Fmodels").status, 404);
}

TEST_F(RouterTest, SaysNotFound) {
  for (const char* path :
       {"", "/", "/v1", "/v1/completions/", "/V1/models", "/v1/models/", "/v1/models/none", "/../live", "//live"}) {
    EXPECT_EQ(reply("GET", path).status, 404) << path;
    EXPECT_EQ(boost::json::parse(reply("GET", path).body).at("error").at("type"), "not_found_error");
  }
}

TEST_F(RouterTest, SaysWhichMethodsAreAllowed) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"}) {
    const Response response = reply(method, "/v1/completions");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(field(response, "Allow"), "POST");
  }
  for (const char* path : {"/live", "/metrics", "/v1/models", "/v1/models/stories"}) {
    const Response response = reply("POST", path);
    EXPECT_EQ(response.status, 405) << path;
    EXPECT_EQ(field(response, "Allow"), "GET, HEAD");
  }
}

TEST_F(RouterTest, TakesOrdersToTheCache) {
  for (const char* path : {"/admin/cache/save", "/admin/cache/load", "/admin/cache/clear"}) {
    EXPECT_EQ(reply("POST", path).status, 0) << "an answer made over time";
    EXPECT_EQ(reply("GET", path).status, 405);
    EXPECT_EQ(field(reply("GET", path), "Allow"), "POST");
    serving_.ready = false;
    EXPECT_EQ(reply("POST", path).status, 503);
    serving_.ready = true;
  }
  EXPECT_EQ(world_.metrics.admission_rejections.value(), 0u) << "no completion was refused";
  EXPECT_EQ(reply("POST", "/admin/cache").status, 404);
}

TEST_F(RouterTest, BothPortsReportTheServersStateAndEachTakesItsOwnOrders) {
  const std::vector<std::string> orders = {"/admin/cache/save", "/admin/cache/load", "/admin/cache/clear"};
  const std::vector<std::string> questions = {"/v1/completions", "/v1/completions/render", "/v1/chat/completions",
                                              "/v1/embeddings", "/tokenize"};
  for (const Surface surface : {Surface::kEverything, Surface::kClients, Surface::kAdmin}) {
    surface_ = surface;
    for (const char* path : {"/live", "/ready", "/startup", "/health", "/metrics", "/version"}) {
      EXPECT_EQ(reply("GET", path).status, 200) << path;
    }
    for (const std::string& path : orders) {
      EXPECT_EQ(reply("POST", path).status, surface == Surface::kClients ? 404 : 0) << path;
    }
    for (const std::string& path : questions) {
      EXPECT_EQ(reply("POST", path).status, surface == Surface::kAdmin ? 404 : 0) << path;
    }
    EXPECT_EQ(reply("GET", "/v1/models").status, surface == Surface::kAdmin ? 404 : 200);
    EXPECT_EQ(reply("GET", "/admin/none").status, 404);
  }
  surface_ = Surface::kClients;
  EXPECT_NE(reply("POST", orders.front()).body.find("admin port"), std::string::npos);
}

TEST_F(RouterTest, ExplainsAndCancelsRequestsByTheirName) {
  Request request;
  request.key = "0123456789abcdef";
  const auto record = std::make_shared<requests::RequestRecord>();
  record->id = "a/b";  // whatever else an id may be: the last segment alone is ours
  record->key = request.key;
  world_.requests.enter(record);
  EXPECT_EQ(reply("GET", "/v1/requests/a/b/explain", request).status, 200);
  EXPECT_EQ(reply("HEAD", "/v1/requests/a/b/explain", request).status, 200);
  EXPECT_EQ(reply("GET", "/v1/requests//explain", request).status, 404);
  EXPECT_EQ(reply("GET", "/v1/requests/a/b/explain").status, 404) << "without the key";
  EXPECT_EQ(field(reply("POST", "/v1/requests/a/b/explain"), "Allow"), "GET, HEAD");
  EXPECT_EQ(field(reply("GET", "/v1/requests/a/b"), "Allow"), "DELETE");
  serving_ = {.ready = false, .draining = true};
  EXPECT_EQ(reply("DELETE", "/v1/requests/a/b", request).status, 200) << "draining or not";
  EXPECT_EQ(reply("DELETE", "/v1/requests/", request).status, 404);
  world_.requests.leave(record);
  EXPECT_EQ(reply("DELETE", "/v1/requests/a/b", request).status, 404);
}

TEST_F(RouterTest, OperatorsListExplainAndStopRequests) {
  const auto record = std::make_shared<requests::RequestRecord>();
  record->id = "explain";  // the last segment alone is ours
  record->key = "0123456789abcdef";
  world_.requests.enter(record);
  for (const Surface surface : {Surface::kEverything, Surface::kAdmin}) {
    surface_ = surface;
    const boost::json::value listed = boost::json::parse(reply("GET", "/admin/requests").body);
    EXPECT_EQ(listed.at("data").as_array().size(), 1u);
    EXPECT_EQ(listed.at("data").at(0).at("id"), "explain");
    EXPECT_EQ(reply("HEAD", "/admin/requests").status, 200);
    EXPECT_EQ(reply("GET", "/admin/requests/explain/explain").status, 200);
    EXPECT_EQ(reply("GET", "/admin/requests//explain").status, 404);
    EXPECT_EQ(reply("DELETE", "/admin/requests/r2").status, 404);
    EXPECT_EQ(field(reply("POST", "/admin/requests"), "Allow"), "GET, HEAD");
    EXPECT_EQ(field(reply("DELETE", "/admin/requests/explain/explain"), "Allow"), "GET, HEAD");
    EXPECT_EQ(field(reply("GET", "/admin/requests/explain"), "Allow"), "DELETE");
  }
  surface_ = Surface::kClients;
  for (const auto& [method, path] : {std::pair{"GET", "/admin/requests"},
                                     {"GET", "/admin/requests/explain/explain"},
                                     {"DELETE", "/admin/requests/explain"}}) {
    EXPECT_EQ(reply(method, path).status, 404) << path;
    EXPECT_NE(reply(method, path).body.find("admin port"), std::string::npos) << path;
  }
  surface_ = Surface::kAdmin;
  serving_ = {.ready = false, .draining = true};
  EXPECT_FALSE(record->cancelled.load());
  EXPECT_EQ(reply("DELETE", "/admin/requests/explain").status, 200) << "draining or not";
  EXPECT_TRUE(record->cancelled.load());
  world_.requests.leave(record);
}

TEST_F(RouterTest, WebPagesOfOtherOriginsNeitherListNorStopRequests) {
  const auto record = std::make_shared<requests::RequestRecord>();
  record->id = "r1";
  world_.requests.enter(record);
  Request page;
  page.host = "localhost:8000";
  page.origin = "http://evil.example";
  page.at_loopback = true;
  Request rebound;
  rebound.host = "evil.example:8000";
  rebound.at_loopback = true;
  for (const Request& foreign : {page, rebound}) {
    EXPECT_EQ(reply("GET", "/admin/requests", foreign).status, 403);
    EXPECT_EQ(reply("GET", "/admin/requests/r1/explain", foreign).status, 403);
    EXPECT_EQ(reply("DELETE", "/admin/requests/r1", foreign).status, 403);
    EXPECT_EQ(reply("GET", "/v1/models", foreign).status, 200) << "as before";
  }
  EXPECT_FALSE(record->cancelled.load());
  world_.requests.leave(record);
}

TEST_F(RouterTest, PathsOfRequestsAreNamedByTheirPatterns) {
  const std::vector<std::string> known = routes();
  for (const auto& [path, pattern] : {std::pair<std::string, std::string>{"/v1/requests/a", "/v1/requests/{id}"},
                                      {"/v1/requests/a/explain", "/v1/requests/{id}/explain"},
                                      {"/admin/requests", "/admin/requests"},
                                      {"/admin/requests/a", "/admin/requests/{id}"},
                                      {"/admin/requests/a/explain", "/admin/requests/{id}/explain"}}) {
    EXPECT_EQ(route_of(path), pattern);
    EXPECT_NE(std::ranges::find(known, pattern), known.end()) << pattern;
  }
}

TEST_F(RouterTest, AKeyThatIsNoneIsRefusedWhereItIsChosen) {
  Request request;
  for (const char* good : {"", "0123456789abcdef"}) {
    request.key = good;
    EXPECT_EQ(reply("POST", "/v1/completions", request).status, 0) << good;
  }
  request.key = "0123456789abcde";
  const Response refused = reply("POST", "/v1/completions", request);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(boost::json::parse(refused.body).at("error").at("param"), "X-Request-Key");
}

TEST_F(RouterTest, RefusesMessagesInTheirShapeAndAllElseInOpenAis) {
  serving_.ready = false;
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const boost::json::value refused = boost::json::parse(reply("POST", path).body);
    EXPECT_EQ(refused.at("type"), "error");
    EXPECT_EQ(refused.at("error").at("type"), "overloaded_error");
  }
  const boost::json::value refused = boost::json::parse(reply("POST", "/v1/responses").body);
  EXPECT_EQ(refused.at("error").at("type"), "unavailable_error");
  EXPECT_FALSE(refused.as_object().contains("type"));
}

TEST_F(RouterTest, ReadsJsonAlone) {
  Request request;
  for (const char* type : {"", "application/json", "Application/JSON; charset=utf-8", " application/json ;x=y"}) {
    request.content_type = type;
    EXPECT_EQ(reply("POST", "/v1/completions", request).status, 0) << type;
  }
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data; boundary=x"}) {
    request.content_type = type;
    EXPECT_EQ(reply("POST", "/v1/completions", request).status, 415) << type;
  }
  request.content_type = "application/json";
  request.content_encoding = "identity";
  EXPECT_EQ(reply("POST", "/v1/completions", request).status, 0);
  for (const char* encoding : {"gzip", "deflate", "br", "identity, gzip"}) {
    request.content_encoding = encoding;
    EXPECT_EQ(reply("POST", "/v1/completions", request).status, 415) << encoding;
  }
}

TEST_F(RouterTest, ItHasStartedOnceItWasReadyUnlessItsEngineFailed) {
  serving_ = {.ready = false, .draining = false};
  for (const char* path : {"/startup", "/ready", "/health", "/ping"}) {
    EXPECT_EQ(reply("GET", path).status, 503) << "loading";
    EXPECT_EQ(reply("GET", path).body, R"({"status":"loading"})") << path;
  }
  serving_ = {.ready = true, .draining = false};
  EXPECT_EQ(reply("GET", "/startup").status, 200);
  serving_ = {.ready = false, .draining = true};
  EXPECT_EQ(reply("GET", "/startup").status, 200) << "draining";
  world_.status.fail();
  EXPECT_EQ(reply("GET", "/startup").status, 503) << "failed";
}

TEST_F(RouterTest, ProbesSayWhatIsTrue) {
  const auto statuses = [this] {
    return std::vector<int>{reply("GET", "/live").status, reply("GET", "/ready").status, reply("GET", "/health").status,
                            reply("POST", "/v1/completions").status};
  };
  EXPECT_EQ(statuses(), (std::vector<int>{200, 200, 200, 0}));
  serving_ = {.ready = false, .draining = false};
  EXPECT_EQ(statuses(), (std::vector<int>{200, 503, 503, 503})) << "loading";
  serving_ = {.ready = false, .draining = true};
  EXPECT_EQ(statuses(), (std::vector<int>{200, 503, 503, 503})) << "draining";
  EXPECT_EQ(field(reply("POST", "/v1/completions"), "Retry-After"), "1") << "it should be gone already";
  serving_.gone_by = std::chrono::steady_clock::now() + std::chrono::milliseconds(29500);
  for (const auto& [method, path] : {std::pair{"POST", "/v1/completions"}, {"GET", "/ready"}, {"GET", "/health"}}) {
    EXPECT_EQ(field(reply(method, path), "Retry-After"), "30") << path;
  }
  serving_ = {.ready = true, .draining = false};
  world_.status.beat(std::chrono::steady_clock::now() - std::chrono::seconds(9), false);
  EXPECT_EQ(statuses(), (std::vector<int>{200, 200, 200, 0})) << "a long step";
  world_.status.beat(std::chrono::steady_clock::now() - std::chrono::seconds(11), false);
  EXPECT_EQ(statuses(), (std::vector<int>{503, 200, 503, 0})) << "stuck";
  world_.status.beat(std::chrono::steady_clock::now() - std::chrono::seconds(1000), true);
  EXPECT_EQ(statuses(), (std::vector<int>{200, 200, 200, 0})) << "asleep for want of work";
  world_.status.fail();
  EXPECT_EQ(statuses(), (std::vector<int>{503, 503, 503, 503})) << "failed";
  EXPECT_FALSE(field(reply("GET", "/live"), "Retry-After").empty());
}

TEST_F(RouterTest, OfAStuckEngineBothPortsSayWhereItIsForHowLongAndHowLongItMay) {
  world_.status.beat(std::chrono::steady_clock::now() - std::chrono::milliseconds(12340), false);
  world_.status.enter(bridge::EngineStatus::Phase::kComputing);
  for (const Surface surface : {Surface::kEverything, Surface::kClients, Surface::kAdmin}) {
    surface_ = surface;
    for (const char* path : {"/live", "/health"}) {
      const Response stuck = reply("GET", path);
      EXPECT_EQ(stuck.status, 503);
      EXPECT_FALSE(field(stuck, "Retry-After").empty());
      for (const char* part :
           {"computing a step", "has taken 12.", " s so far", "the limit is 10.0 s", "engine_stuck"}) {
        EXPECT_NE(stuck.body.find(part), std::string::npos) << stuck.body;
      }
    }
  }
  world_.status.enter(bridge::EngineStatus::Phase::kOrders);
  EXPECT_NE(reply("GET", "/live").body.find("saving or loading the cache"), std::string::npos);
}

// A browser sends what a page tells it to, and says whose page that is.
TEST_F(RouterTest, OrdersAreNotTakenFromWebPagesOfOtherOrigins) {
  const auto order = [this](const std::string& host, const std::string& origin, const std::string& site,
                            bool at_loopback) {
    Request request;
    request.host = host;
    request.origin = origin;
    request.fetch_site = site;
    request.at_loopback = at_loopback;
    return reply("POST", "/admin/cache/clear", std::move(request)).status;
  };
  EXPECT_EQ(order("localhost:8000", "", "", true), 0) << "no browser";
  EXPECT_EQ(order("localhost:8000", "http://localhost:8000", "same-origin", true), 0) << "a page of ours";
  EXPECT_EQ(order("LOCALHOST", "http://localhost:80", "none", true), 0) << "the usual port";
  EXPECT_EQ(order("quire.example", "https://quire.example", "", false), 0) << "behind a proxy that ends TLS";
  EXPECT_EQ(order("[::1]:8000", "", "", true), 0);
  EXPECT_EQ(order("127.0.0.1:8000", "", "", true), 0);
  EXPECT_EQ(order("", "", "", true), 0) << "HTTP/1.0 has no Host";
  EXPECT_EQ(order("localhost:8000", "http://evil.example", "", true), 403);
  EXPECT_EQ(order("localhost:8000", "http://localhost:3000", "", true), 403) << "another port is another origin";
  EXPECT_EQ(order("localhost:8000", "https://localhost:8000", "", true), 0) << "TLS may end before us";
  EXPECT_EQ(order("localhost:8000", "null", "", true), 403);
  EXPECT_EQ(order("localhost:8000", "", "cross-site", true), 403);
  EXPECT_EQ(order("evil.example:8000", "http://evil.example:8000", "same-origin", true), 403) << "a name led here";
  EXPECT_EQ(order("10.0.0.1:8000", "", "", false), 0) << "where others reach us names are the operator's";
  EXPECT_EQ(order("localhost.evil.example", "", "", true), 403);
}

TEST_F(RouterTest, AnOrderSaysThatItsBodyIsJsonAndWithoutOneNothing) {
  const auto order = [this](const std::string& type, const std::string& body) {
    Request request;
    request.content_type = type;
    request.body = body;
    return reply("POST", "/admin/cache/clear", std::move(request)).status;
  };
  EXPECT_EQ(order("", ""), 0);
  EXPECT_EQ(order("text/plain", ""), 0);
  EXPECT_EQ(order("application/json", "{}"), 0);
  EXPECT_EQ(order("application/json; charset=utf-8", "{}"), 0);
  EXPECT_EQ(order("", "{}"), 415) << "a page can send that without asking";
  EXPECT_EQ(order("text/plain", "{}"), 415);
}

TEST_F(RouterTest, AFullQueueIsReportedBeforeAnythingIsParsed) {
  test::World small({.max_sequences = 1, .max_tokens = 100});
  const Services services = small.services();
  std::vector<bridge::Submission> one(1);
  one[0].request.prompt = {1};
  ASSERT_TRUE(small.queue.admit(one).ok());
  Request request;
  request.method = "POST";
  request.path = "/v1/completions";
  request.body = "not even JSON";
  const Reply answered = route(request, services, serving_);
  ASSERT_TRUE(std::holds_alternative<Response>(answered));
  EXPECT_EQ(std::get<Response>(answered).status, 429);
  EXPECT_FALSE(field(std::get<Response>(answered), "Retry-After").empty());
  for (const char* path : {"/admin/cache/save", "/admin/cache/load", "/admin/cache/clear", "/v1/completions/render"}) {
    request.path = path;
    request.content_type = "application/json";
    EXPECT_TRUE(std::holds_alternative<std::unique_ptr<Answer>>(route(request, services, serving_)))
        << path << " takes no place in the line";
  }
}

}  // namespace
}  // namespace quire::api::http::router_test
