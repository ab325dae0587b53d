#include "api/limits/request_book.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"

namespace quire::api::requests {
namespace {

class RequestBookTest : public ::testing::Test {
 protected:
  std::shared_ptr<RequestRecord> record(const std::string& id, const std::string& key, std::size_t num_timelines = 1) {
    auto made = std::make_shared<RequestRecord>();
    made->id = id;
    made->key = key;
    for (std::size_t i = 0; i < num_timelines; ++i) made->timelines.push_back(std::make_shared<bridge::Timeline>());
    return made;
  }
  // One that ran and ended.
  void finished(RequestBook& book, const std::string& id, std::size_t num_timelines = 1) {
    const auto one = record(id, "key", num_timelines);
    book.enter(one);
    book.leave(one);
  }

  bridge::Doorbell doorbell_;
  std::shared_ptr<bridge::StreamHub> hub_ = std::make_shared<bridge::StreamHub>(
      8, [] {}, doorbell_);
};

TEST_F(RequestBookTest, BelongsToItsOwnerAndIsShownToWhoSeesAll) {
  using Asker = RequestBook::Asker;
  RequestBook book(2);
  const auto mine = record("a", "my key");
  mine->owner = "alice";
  book.enter(mine);
  const Asker alice{.owner = "alice"}, bob{.owner = "bob"}, admin{.owner = "root", .sees_all = true};
  for (const char* key : {"", "my key"}) {
    EXPECT_EQ(book.find("a", key, alice)->record, mine) << key;
    EXPECT_EQ(book.find("a", key, admin)->record, mine) << key;
    EXPECT_FALSE(book.find("a", key, bob)) << key;
    EXPECT_FALSE(book.cancel("a", key, bob)) << key;
    EXPECT_FALSE(book.find("a", key)) << "an asker without a name";
  }
  EXPECT_FALSE(book.find("a", "other key", alice)) << "who names one means it";
  EXPECT_FALSE(mine->cancelled.load());
  EXPECT_TRUE(book.cancel("a", "", alice));
  book.leave(mine);
  EXPECT_FALSE(book.find("a", "", alice)->running);
}

TEST_F(RequestBookTest, FindsByIdAndKeyTogether) {
  RequestBook book(2);
  const auto mine = record("a", "my key");
  book.enter(mine);
  EXPECT_EQ(book.find("a", "my key")->record, mine);
  EXPECT_TRUE(book.find("a", "my key")->running);
  for (const char* wrong : {"", "m", "my kez", "ny key", "my key "}) EXPECT_FALSE(book.find("a", wrong)) << wrong;
  EXPECT_FALSE(book.find("b", "my key"));
  EXPECT_FALSE(book.find("", ""));
  book.leave(mine);
  EXPECT_EQ(book.find("a", "my key")->record, mine);
  EXPECT_FALSE(book.find("a", "my key")->running);
}

TEST_F(RequestBookTest, ReportsApartRequestsThatChoseTheSameId) {
  RequestBook book(2);
  const auto one = record("a", "key 1"), other = record("a", "key 2");
  book.enter(one);
  book.enter(other);
  EXPECT_EQ(book.find("a", "key 1")->record, one);
  EXPECT_EQ(book.find("a", "key 2")->record, other);
  book.leave(one);
  EXPECT_FALSE(book.find("a", "key 1")->running);
  EXPECT_TRUE(book.find("a", "key 2")->running);
  book.leave(other);
}

TEST_F(RequestBookTest, OfTheSameIdAndKeyTheOneThatRunsIsMeant) {
  RequestBook book(4);
  const auto old = record("a", "key"), now = record("a", "key"), last = record("a", "key");
  book.enter(old);
  book.enter(now);
  book.enter(last);
  book.leave(last);
  book.leave(old);
  EXPECT_EQ(book.find("a", "key")->record, now);
  EXPECT_TRUE(book.cancel("a", "key"));
  EXPECT_TRUE(now->cancelled.load());
  EXPECT_FALSE(old->cancelled.load());
  book.leave(now);
}

TEST_F(RequestBookTest, KeepsSoManyFinishedOnesAndForgetsTheOldest) {
  for (const std::uint32_t most : {1u, 2u, 3u}) {
    RequestBook book(most);
    const auto running = record("running", "key");
    book.enter(running);
    for (std::uint32_t i = 0; i <= most; ++i) finished(book, "r" + std::to_string(i));
    EXPECT_FALSE(book.find("r0", "key")) << most;
    for (std::uint32_t i = 1; i <= most; ++i) EXPECT_TRUE(book.find("r" + std::to_string(i), "key")) << most;
    EXPECT_TRUE(book.find("running", "key"));
    book.leave(running);
  }
}

TEST_F(RequestBookTest, KeepsNoneWhereNoneIsAskedFor) {
  RequestBook book(0);
  const auto running = record("a", "key");
  book.enter(running);
  EXPECT_TRUE(book.find("a", "key")) << "while it runs";
  book.leave(running);
  EXPECT_FALSE(book.find("a", "key"));
}

TEST_F(RequestBookTest, RequestsOfManySequencesLeaveRoomForFewerOthers) {
  RequestBook book(2);  // 16 timelines
  finished(book, "a", 1);
  finished(book, "b", 15);
  EXPECT_TRUE(book.find("a", "key"));
  finished(book, "c", 2);
  EXPECT_FALSE(book.find("a", "key"));
  EXPECT_FALSE(book.find("b", "key"));
  EXPECT_TRUE(book.find("c", "key"));
  finished(book, "d", 128);
  EXPECT_FALSE(book.find("c", "key"));
  EXPECT_TRUE(book.find("d", "key")) << "the last one is kept, whatever it is";
}

TEST_F(RequestBookTest, ACancelReachesEveryStreamOfThatRequestAlone) {
  RequestBook book(2);
  const auto mine = record("a", "key"), other = record("b", "key");
  const std::vector<std::shared_ptr<bridge::TokenStream>> streams{hub_->open([] {}), hub_->open([] {}),
                                                                  hub_->open([] {})};
  mine->streams = {streams[0], streams[1]};
  other->streams = {streams[2]};
  book.enter(mine);
  book.enter(other);
  EXPECT_FALSE(book.cancel("a", "kez"));
  EXPECT_FALSE(book.cancel("c", "key"));
  EXPECT_FALSE(streams[0]->cancelled());
  EXPECT_TRUE(book.cancel("a", "key"));
  EXPECT_TRUE(mine->cancelled.load());
  EXPECT_TRUE(streams[0]->cancelled());
  EXPECT_TRUE(streams[1]->cancelled());
  EXPECT_FALSE(streams[2]->cancelled());
  EXPECT_FALSE(streams[0]->satisfied());
  book.leave(mine);
  EXPECT_FALSE(book.cancel("a", "key")) << "it has ended";
  book.leave(other);
}

TEST_F(RequestBookTest, AStreamThatIsGoneIsNoTroubleAndNoneIsHeldBack) {
  RequestBook book(2);
  const auto mine = record("a", "key");
  auto stream = hub_->open([] {});
  mine->streams = {stream};
  book.enter(mine);
  stream.reset();
  EXPECT_EQ(hub_->num_open(), 0u);
  EXPECT_TRUE(book.cancel("a", "key"));
  book.leave(mine);
}

TEST_F(RequestBookTest, ListsWhatRunsOldestFirstAndCountsWhatItLeavesOut) {
  RequestBook book(4);
  std::vector<std::shared_ptr<RequestRecord>> entered;
  for (const int seconds : {3, 1, 2}) {
    entered.push_back(record("arrived at " + std::to_string(seconds), "key"));
    entered.back()->arrival = TimePoint{} + std::chrono::seconds(seconds);
    book.enter(entered.back());
  }
  const auto ids = [&book](std::size_t max_records) {
    std::vector<std::string> out;
    for (const auto& one : book.running(max_records).records) out.push_back(one->id);
    return out;
  };
  EXPECT_EQ(ids(3), (std::vector<std::string>{"arrived at 1", "arrived at 2", "arrived at 3"}));
  EXPECT_EQ(book.running(3).left_out, 0u);
  EXPECT_EQ(book.running(4).left_out, 0u);
  EXPECT_EQ(ids(2), (std::vector<std::string>{"arrived at 1", "arrived at 2"}));
  EXPECT_EQ(book.running(2).left_out, 1u);
  EXPECT_EQ(book.running(0).left_out, 3u);
  book.leave(entered[1]);
  EXPECT_EQ(ids(3), (std::vector<std::string>{"arrived at 2", "arrived at 3"}))
      << "the finished one is kept, not listed";
  book.withdraw(entered[2]);
  EXPECT_EQ(ids(3), std::vector<std::string>{"arrived at 3"});
  book.leave(entered[0]);
  EXPECT_TRUE(book.running(3).records.empty());
}

TEST_F(RequestBookTest, ListsRequestsThatArrivedTogether) {
  RequestBook book(2);
  const auto one = record("a", "key"), other = record("a", "key");
  book.enter(one);
  book.enter(other);
  EXPECT_EQ(book.running(5).records.size(), 2u);
  book.leave(one);
  EXPECT_EQ(book.running(5).records, std::vector<std::shared_ptr<const RequestRecord>>{other});
  book.leave(other);
}

TEST_F(RequestBookTest, ServesManyThreads) {
  RequestBook book(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, &book, t] {
      for (int i = 0; i < 500; ++i) {
        const std::string id = std::to_string(i % 7);
        const auto one = record(id, std::to_string(t));
        book.enter(one);
        EXPECT_TRUE(book.cancel(id, std::to_string(t)));
        book.find(std::to_string((i + 1) % 7), std::to_string((t + 1) % 4));
        EXPECT_GE(book.running(2).records.size(), 1u);
        book.leave(one);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t kept = 0;
  for (int i = 0; i < 7; ++i) {
    for (int t = 0; t < 4; ++t) kept += book.find(std::to_string(i), std::to_string(t)).has_value();
  }
  EXPECT_GE(kept, 1u);
  EXPECT_LE(kept, 16u);
}

}  // namespace
}  // namespace quire::api::requests
