#include "api/limits/tracked_request.h"

#include <gtest/gtest.h>

#include <set>

#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"

namespace quire::api::requests::tracked_request_test {
namespace {

class TrackedRequestTest : public ::testing::Test {
 protected:
  static http::Request request(std::string key) {
    http::Request made;
    made.key = std::move(key);
    return made;
  }
  bridge::Doorbell doorbell_;
  std::shared_ptr<bridge::StreamHub> hub_ = std::make_shared<bridge::StreamHub>(
      8, [] {}, doorbell_);
  requests::RequestBook book_{4};
};

TEST_F(TrackedRequestTest, CanBeFoundFromItsAdmissionOnAndAfterItsEnd) {
  const std::string key = "a key of my own!";
  {
    TrackedRequest tracked(book_, request(key));
    EXPECT_TRUE(tracked.fields().empty()) << "a request that is refused has nothing to ask about";
    EXPECT_FALSE(book_.find("r1", key));
    tracked.enter("r1");
    EXPECT_EQ(tracked.fields().at(0).name, "X-Request-Key");
    EXPECT_EQ(tracked.fields().at(0).value, key);
    EXPECT_TRUE(book_.find("r1", key)->running);
  }
  EXPECT_FALSE(book_.find("r1", key)->running);
}

TEST_F(TrackedRequestTest, OneThatNeverEnteredLeavesNothing) {
  { TrackedRequest tracked(book_, request("0123456789abcdef")); }
  EXPECT_FALSE(book_.find("r1", "0123456789abcdef"));
}

TEST_F(TrackedRequestTest, EntersFactsOnTheRequestForTheList) {
  http::Request asked = request("0123456789abcdef");
  asked.path = "/v1/completions";
  asked.arrival = TimePoint{} + std::chrono::seconds(5);
  asked.body = "a prompt";
  asked.caller = std::make_shared<const keys::Caller>(keys::Caller{.name = "alice"});
  TrackedRequest tracked(book_, asked);
  tracked.enter("r1", {.model = "stories", .stream = true, .prompt_tokens = 7, .num_prompts = 2});
  const auto record = book_.running(1).records.at(0);
  EXPECT_EQ(record->id, "r1");
  EXPECT_EQ(record->owner, "alice");
  EXPECT_EQ(record->path, "/v1/completions");
  EXPECT_EQ(record->arrival, asked.arrival);
  EXPECT_EQ(record->asked.model, "stories");
  EXPECT_TRUE(record->asked.stream);
  EXPECT_EQ(record->asked.prompt_tokens, 7u);
  EXPECT_EQ(record->asked.num_prompts, 2u);
}

TEST_F(TrackedRequestTest, DrawsAKeyOfItsOwnForWhoBringsNone) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    TrackedRequest tracked(book_, request(""));
    tracked.enter("r1");
    const std::string key = tracked.fields().at(0).value;
    EXPECT_EQ(key.size(), 32u);
    EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 100u);
}

TEST_F(TrackedRequestTest, ReceivesThatItWasCancelledAndSoDoAllItsStreams) {
  TrackedRequest tracked(book_, request("0123456789abcdef"));
  const auto first = hub_->open([] {}), second = hub_->open([] {});
  tracked.add_sequence(first);
  tracked.add_stream(second);
  tracked.enter("r1");
  EXPECT_EQ(book_.find("r1", "0123456789abcdef")->record->timelines.size(), 1u);
  EXPECT_FALSE(tracked.cancelled());
  EXPECT_TRUE(book_.cancel("r1", "0123456789abcdef"));
  EXPECT_TRUE(tracked.cancelled());
  EXPECT_TRUE(first->cancelled());
  EXPECT_TRUE(second->cancelled());
}

TEST(RequestKey, IsSixteenToAHundredAndTwentyEightPlainCharacters) {
  EXPECT_TRUE(is_request_key("")) << "none";
  EXPECT_FALSE(is_request_key(std::string(15, 'a')));
  EXPECT_TRUE(is_request_key(std::string(16, 'a')));
  EXPECT_TRUE(is_request_key(std::string(17, 'a')));
  EXPECT_TRUE(is_request_key(std::string(128, 'a')));
  EXPECT_FALSE(is_request_key(std::string(129, 'a')));
  EXPECT_TRUE(is_request_key("AZaz09-_.:AZaz09"));
  for (const char bad : {' ', '/', '\n', '\0', '"', '\x80'}) EXPECT_FALSE(is_request_key(std::string(20, 'a') + bad));
}

}  // namespace
}  // namespace quire::api::requests::tracked_request_test
