#include "api/admin/request_routes.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::requests::request_routes_test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr TimePoint kArrival = TimePoint{} + 1h;
const std::string kKey = "0123456789abcdef";

class RequestRoutesTest : public ::testing::Test {
 protected:
  std::shared_ptr<requests::RequestRecord> enter(const std::string& id) {
    auto record = std::make_shared<requests::RequestRecord>();
    record->id = id;
    record->key = kKey;
    record->timelines.push_back(timeline_);
    world_.requests.enter(record);
    return record;
  }
  static http::Request with_key(const std::string& key) {
    http::Request request;
    request.key = key;
    return request;
  }
  static http::Request with_authorization(const std::string& value) {
    http::Request request;
    request.authorization = value;
    return request;
  }
  static http::Request as_alice() {
    http::Request request;
    request.caller = std::make_shared<const keys::Caller>(keys::Caller{.name = "alice"});
    return request;
  }
  json::value explained(const std::string& id) {
    const http::Response response = explain(services_, id, with_key(kKey));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }

  test::World world_;
  Services services_ = world_.services();
  std::shared_ptr<bridge::Timeline> timeline_ = std::make_shared<bridge::Timeline>();
};

TEST_F(RequestRoutesTest, ExplainsWhatTheEngineNoted) {
  const auto record = enter("r1");
  json::value sequence = explained("r1").at("sequences").at(0);
  EXPECT_EQ(sequence.at("state"), "queued");
  EXPECT_TRUE(sequence.at("queued_ms").is_null());

  timeline_->begin(kArrival, 100);
  timeline_->note_start(kArrival + 2ms, 30, flow::WaitCause::kBlocks);
  timeline_->note_chunk(kArrival + 2ms, kArrival + 5ms, 70);
  timeline_->note_token(kArrival + 5ms);
  timeline_->note_preemption(kArrival + 6ms, false);
  timeline_->note_preemption(kArrival + 7ms, true);
  timeline_->note_draft(4, 1);
  timeline_->note_token(kArrival + 9500us);
  json::value reported = explained("r1");
  EXPECT_EQ(reported.at("object"), "request_timeline");
  EXPECT_EQ(reported.at("id"), "r1");
  EXPECT_EQ(reported.at("state"), "running");
  EXPECT_EQ(
      reported.at("sequences").at(0),
      json::parse(R"({"state":"running","prompt_tokens":100,"cached_tokens":30,"queued_ms":2,"queued_for":"blocks",
                            "prefill":[{"at_ms":2,"ms":3,"rows":70}],"prefill_not_kept":0,
                            "preemptions":[{"at_ms":6,"kind":"recompute"},{"at_ms":7,"kind":"swap"}],
                            "preemptions_not_kept":0,"drafted_tokens":4,"accepted_tokens":1,
                            "drafts":[{"drafted":4,"accepted":1}],"drafts_not_kept":0,"generated_tokens":2,"token_ms":[5,9.5],"token_ms_not_kept":0,
                            "longest_gap":{"token":1,"ms":4.5},"ended_ms":null,"end":null})"));

  timeline_->note_end(kArrival + 10ms, bridge::Timeline::End::kStop);
  world_.requests.leave(record);
  reported = explained("r1");
  EXPECT_EQ(reported.at("state"), "finished");
  EXPECT_EQ(reported.at("sequences").at(0).at("state"), "ended");
  EXPECT_EQ(reported.at("sequences").at(0).at("end"), "stop");
  EXPECT_EQ(reported.at("sequences").at(0).at("ended_ms").to_number<double>(), 10.0);
}

TEST_F(RequestRoutesTest, ReportsHowMuchWasNotKept) {
  timeline_->begin(kArrival, 100);
  for (int i = 0; i < 65; ++i) timeline_->note_chunk(kArrival, kArrival + 1ms, 1);
  for (int i = 0; i < 16; ++i) timeline_->note_preemption(kArrival, false);
  for (int i = 0; i < 266; ++i) timeline_->note_token(kArrival);
  for (int i = 0; i < 257; ++i) timeline_->note_draft(2, 1);
  const auto record = enter("r1");
  const json::value reported = explained("r1").at("sequences").at(0);
  EXPECT_EQ(reported.at("prefill").as_array().size(), 64u);
  EXPECT_EQ(reported.at("prefill_not_kept"), 1);
  EXPECT_EQ(reported.at("preemptions").as_array().size(), 16u);
  EXPECT_EQ(reported.at("preemptions_not_kept"), 0);
  EXPECT_EQ(reported.at("token_ms").as_array().size(), 256u);
  EXPECT_EQ(reported.at("token_ms_not_kept"), 10);
  EXPECT_EQ(reported.at("generated_tokens"), 266);
  EXPECT_EQ(reported.at("drafts").as_array().size(), 256u);
  EXPECT_EQ(reported.at("drafts_not_kept"), 1);
  EXPECT_EQ(reported.at("drafted_tokens"), 514);
  EXPECT_EQ(reported.at("accepted_tokens"), 257);
  world_.requests.leave(record);
}

TEST_F(RequestRoutesTest, TakesTheRequestsIdAndWhatAnswersMakeOfIt) {
  for (const std::string id : {"r1", "a-b", "cmpl-x"}) {
    const auto record = enter(id);
    for (const std::string prefix : {"", "cmpl-", "chatcmpl-", "resp_", "msg_"}) {
      EXPECT_EQ(explained(prefix + id).at("id"), json::string(id)) << prefix;
    }
    world_.requests.leave(record);
  }
  const auto record = enter("a:b");
  EXPECT_EQ(explained("cmpl-a%3Ab").at("id"), "a:b");
  EXPECT_EQ(explain(services_, "9-a:b", with_key(kKey)).status, 404);
  EXPECT_EQ(explain(services_, "cmpl-cmpl-a:b", with_key(kKey)).status, 404);
  world_.requests.leave(record);
}

TEST_F(RequestRoutesTest, AWrongKeyOrNoneIsAnsweredAsIfThereWereNoSuchRequest) {
  const auto record = enter("r1");
  const http::Response nobody = explain(services_, "r2", with_key(kKey));
  EXPECT_EQ(nobody.status, 404);
  for (const http::Request& request :
       {with_key(""), with_key("0123456789abcdeF"), with_key(kKey + "0"), with_authorization(""),
        with_authorization(kKey), with_authorization("Basic " + kKey), with_authorization("Bearer"),
        with_authorization("Bearer 0123456789abcde"), with_authorization("Bearer  ")}) {
    const http::Response explanation = explain(services_, "r1", request);
    EXPECT_EQ(explanation.status, 404) << request.key << request.authorization;
    EXPECT_EQ(explanation.body, nobody.body);
    EXPECT_EQ(cancel(services_, "r1", request).status, 404);
  }
  EXPECT_FALSE(record->cancelled.load());
  EXPECT_EQ(explain(services_, "r1", with_authorization("Bearer " + kKey)).status, 200);
  EXPECT_EQ(explain(services_, "r1", with_authorization("bearer  " + kKey)).status, 200);
  http::Request both = with_authorization("Bearer none");
  both.key = kKey;
  EXPECT_EQ(explain(services_, "r1", both).status, 200) << "OpenAI's clients always send the other one";
  world_.requests.leave(record);
}

TEST_F(RequestRoutesTest, ARequestOfAnApiKeyIsItsHoldersAndTheAdministrators) {
  const auto by = [](const char* name, keys::Role role, const std::string& key = {}) {
    http::Request request = with_key(key);
    request.caller = std::make_shared<const keys::Caller>(keys::Caller{.name = name, .role = role});
    return request;
  };
  auto record = std::make_shared<requests::RequestRecord>();
  record->id = "r1";
  record->key = kKey;
  record->owner = "alice";
  world_.requests.enter(record);
  const http::Response nobody = explain(services_, "r2", by("bob", keys::Role::kUser));
  for (const std::string& key : {std::string(), kKey}) {
    const http::Response explanation = explain(services_, "r1", by("bob", keys::Role::kUser, key));
    EXPECT_EQ(explanation.status, 404) << key;
    EXPECT_EQ(explanation.body, nobody.body);
    EXPECT_EQ(cancel(services_, "r1", by("bob", keys::Role::kUser, key)).status, 404) << key;
    EXPECT_EQ(explain(services_, "r1", by("alice", keys::Role::kUser, key)).status, 200) << key;
    EXPECT_EQ(explain(services_, "r1", by("root", keys::Role::kAdmin, key)).status, 200) << key;
  }
  EXPECT_EQ(cancel(services_, "r1", by("alice", keys::Role::kUser)).status, 200);
  world_.requests.leave(record);
}

TEST_F(RequestRoutesTest, AnOperatorFindsTheRequestsOfEverybodyWithoutAKey) {
  auto record = std::make_shared<requests::RequestRecord>();
  record->id = "r1";
  record->key = kKey;
  record->owner = "alice";
  world_.requests.enter(record);
  const http::Response explanation = explain_to_operator(services_, "cmpl-r1");
  EXPECT_EQ(explanation.body, explain(services_, "r1", as_alice()).body) << "the same object";
  for (const http::Response& none : {explain_to_operator(services_, "r2"), cancel_by_operator(services_, "r2"),
                                     explain_to_operator(services_, "")}) {
    EXPECT_EQ(none.status, 404);
    EXPECT_NE(none.body.find("GET /admin/requests"), std::string::npos) << none.body;
  }
  EXPECT_FALSE(record->cancelled.load());
  EXPECT_EQ(cancel_by_operator(services_, "r1").body, R"({"id":"r1","cancelled":true})");
  EXPECT_TRUE(record->cancelled.load());
  world_.requests.leave(record);
  EXPECT_EQ(cancel_by_operator(services_, "r1").status, 404) << "it has ended";
  EXPECT_EQ(explain_to_operator(services_, "r1").status, 200);
}

TEST_F(RequestRoutesTest, CancelsWhatRunsAndNothingElse) {
  const auto record = enter("r1");
  EXPECT_EQ(cancel(services_, "r2", with_key(kKey)).status, 404);
  const http::Response done = cancel(services_, "cmpl-r1", with_key(kKey));
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(done.body, R"({"id":"r1","cancelled":true})");
  EXPECT_TRUE(record->cancelled.load());
  world_.requests.leave(record);
  EXPECT_EQ(cancel(services_, "r1", with_key(kKey)).status, 404) << "it has ended";
  EXPECT_EQ(explain(services_, "r1", with_key(kKey)).status, 200);
}

}  // namespace
}  // namespace quire::api::requests::request_routes_test
