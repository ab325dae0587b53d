#include "api/admin/request_list.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::requests::request_list_test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr TimePoint kArrival = TimePoint{} + 1h;

class RequestListTest : public ::testing::Test {
 protected:
  struct Entered {
    std::shared_ptr<RequestRecord> record;
    std::vector<std::shared_ptr<bridge::Timeline>> timelines;
  };

  Entered enter(const std::string& id, std::size_t num_sequences, RequestRecord::Asked asked = {},
                TimePoint arrival = kArrival) {
    Entered entered{std::make_shared<RequestRecord>(), {}};
    entered.record->id = id;
    entered.record->key = "0123456789abcdef";
    entered.record->path = "/v1/completions";
    entered.record->arrival = arrival;
    entered.record->asked = std::move(asked);
    for (std::size_t i = 0; i < num_sequences; ++i) {
      entered.timelines.push_back(std::make_shared<bridge::Timeline>());
      entered.timelines.back()->begin(arrival, 100);
      entered.record->timelines.push_back(entered.timelines.back());
    }
    world_.requests.enter(entered.record);
    return entered;
  }
  json::value listed(TimePoint now) {
    const http::Response response = list(services_, now);
    EXPECT_EQ(response.status, 200);
    return json::parse(response.body);
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(RequestListTest, ARequestIsQueuedUntilASequenceOfItRuns) {
  Entered one = enter("r1", 2, {.model = "stories", .stream = true, .prompt_tokens = 100});
  one.record->owner = "alice";
  json::value seen = listed(kArrival + 1500us);
  EXPECT_EQ(seen.at("object"), "list");
  EXPECT_EQ(seen.at("left_out"), 0);
  EXPECT_EQ(seen.at("data").at(0),
            json::parse(R"({"object":"request","id":"r1","state":"queued","api_key":"alice","model":"stories",
                            "path":"/v1/completions","stream":true,"age_ms":1.5,"queued_ms":1.5,"first_token_ms":null,
                            "prompt_tokens":100,"cached_tokens":0,"generated_tokens":0,"sequences":2})"));

  one.timelines[1]->note_start(kArrival + 2ms, 48);
  one.timelines[1]->note_token(kArrival + 4ms);
  one.timelines[1]->note_token(kArrival + 5ms);
  one.timelines[0]->note_start(kArrival + 3ms, 64);
  one.timelines[0]->note_token(kArrival + 6ms);
  EXPECT_EQ(listed(kArrival + 20ms).at("data").at(0),
            json::parse(R"({"object":"request","id":"r1","state":"running","api_key":"alice","model":"stories",
                            "path":"/v1/completions","stream":true,"age_ms":20,"queued_ms":2,"first_token_ms":4,
                            "prompt_tokens":100,"cached_tokens":48,"generated_tokens":3,"sequences":2})"));
  world_.requests.leave(one.record);
  EXPECT_TRUE(listed(kArrival + 21ms).at("data").as_array().empty());
}

TEST_F(RequestListTest, AddsUpTheCachedTokensOfEachPrompt) {
  const Entered one = enter("r1", 4, {.model = "stories", .prompt_tokens = 200, .num_prompts = 2});
  const std::uint32_t cached[] = {32, 16, 80, 64};
  for (std::size_t i = 0; i < 4; ++i) one.timelines[i]->note_start(kArrival, cached[i]);
  EXPECT_EQ(listed(kArrival).at("data").at(0).at("cached_tokens"), 16 + 64);
  world_.requests.leave(one.record);
}

TEST_F(RequestListTest, WithoutApiKeysThereIsNoNameOfOne) {
  const Entered one = enter("r1", 1);
  EXPECT_TRUE(listed(kArrival).at("data").at(0).at("api_key").is_null());
  world_.requests.leave(one.record);
}

TEST_F(RequestListTest, LeavesOutTheYoungestAndCountsThem) {
  std::vector<Entered> all;
  for (std::size_t i = 0; i < kMaxListed; ++i) {
    all.push_back(enter("r" + std::to_string(i), 1, {}, kArrival + std::chrono::milliseconds(i)));
  }
  EXPECT_EQ(listed(kArrival + 1h).at("data").as_array().size(), kMaxListed);
  EXPECT_EQ(listed(kArrival + 1h).at("left_out"), 0);
  all.push_back(enter("first", 1, {}, kArrival - 1ms));
  const json::value seen = listed(kArrival + 1h);
  EXPECT_EQ(seen.at("data").as_array().size(), kMaxListed);
  EXPECT_EQ(seen.at("left_out"), 1);
  EXPECT_EQ(seen.at("data").at(0).at("id"), "first");
  EXPECT_EQ(seen.at("data").at(kMaxListed - 1).at("id"), json::string("r" + std::to_string(kMaxListed - 2)));
  for (const Entered& one : all) world_.requests.leave(one.record);
}

TEST_F(RequestListTest, HasNeitherRequestKeysNorAnythingElse) {
  const Entered one = enter("r1", 1);
  const std::string body = list(services_, kArrival).body;
  EXPECT_EQ(body.find(one.record->key), std::string::npos);
  std::set<std::string> names;
  const json::value seen = json::parse(body);
  for (const auto& field : seen.at("data").at(0).as_object()) names.emplace(field.key());
  EXPECT_EQ(names, (std::set<std::string>{"object", "id", "state", "api_key", "model", "path", "stream", "age_ms",
                                          "queued_ms", "first_token_ms", "prompt_tokens", "cached_tokens",
                                          "generated_tokens", "sequences"}));
  world_.requests.leave(one.record);
}

}  // namespace
}  // namespace quire::api::requests::request_list_test
