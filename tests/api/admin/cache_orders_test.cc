#include "api/admin/cache_orders.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::admin::cache_orders_test {
namespace {

namespace json = boost::json;
using Kind = bridge::ControlOrder::Kind;

TEST(CacheFileName, IsAPlainName) {
  const auto name = [](const std::string& text) { return cache_file_name(R"({"path":")" + text + R"("})"); };
  for (const char* good : {"a", "A.kv", "monday-2_b.cache", "-", "_", "a..b", "a."}) {
    ASSERT_TRUE(name(good).ok()) << good;
    EXPECT_EQ(*name(good), good);
  }
  for (const char* bad :
       {"", ".", "..", ".a", "a/b", "/a", "../a", "a\\\\b", "a b", "a\\u0000", "é", "a\\n", "~", "a:b"}) {
    ASSERT_FALSE(name(bad).ok()) << bad;
    EXPECT_EQ(name(bad).error().code, Code::kInvalidArgument);
    EXPECT_EQ(name(bad).error().param, "path") << bad;
  }
  EXPECT_TRUE(name(std::string(127, 'x')).ok());
  EXPECT_TRUE(name(std::string(128, 'x')).ok());
  EXPECT_FALSE(name(std::string(129, 'x')).ok());
}

TEST(CacheFileName, IsAllThatTheBodySays) {
  for (const char* body : {"", "null", "[]", "{", R"({"path":"a"}x)", "\"a\""})
    EXPECT_FALSE(cache_file_name(body)) << body;
  for (const char* body :
       {"{}", R"({"path":1})", R"({"path":null})", R"({"path":["a"]})", R"({"path":"a","path":"b"})"}) {
    ASSERT_FALSE(cache_file_name(body)) << body;
    EXPECT_EQ(cache_file_name(body).error().param, "path") << body;
  }
  EXPECT_EQ(cache_file_name(R"({"path":"a","force":true})").error().param, "force");
}

// The test is the engine, and the io thread that runs what was posted when it likes.
class CacheOrderTest : public ::testing::Test {
 protected:
  CacheOrderTest() { services_.cache_dir = "dir"; }

  std::unique_ptr<CacheOrder> make(Kind kind, const std::string& body) const {
    http::Request request;
    request.body = body;
    auto order = std::make_unique<CacheOrder>(services_, std::move(request), kind);
    Allowance patient;
    order->work(Lane::kQuick, patient);
    return order;
  }
  http::IoHandle io_handle() {
    return {nullptr, [this] { ++events_; }, [this](std::function<void()> job) { posted_.push_back(std::move(job)); }};
  }
  void run_posted() {
    for (const auto& job : std::exchange(posted_, {})) job();
  }
  // As the engine: the order that waits ends with `report`.
  bridge::ControlOrder carry_out(Result<bridge::CacheReport> report) {
    std::optional<bridge::ControlOrder> order = world_.control.take();
    EXPECT_TRUE(order);
    world_.control.finish();
    order->done(std::move(report));
    return std::move(*order);
  }

  test::World world_;
  Services services_ = world_.services();
  int events_ = 0;
  std::vector<std::function<void()>> posted_;
};

TEST_F(CacheOrderTest, GivesTheOrderAndReturnsTheReport) {
  for (const Kind kind : {Kind::kSaveCache, Kind::kLoadCache}) {
    const auto answer = make(kind, R"({"path":"a.kv"})");
    ASSERT_FALSE(answer->admit(io_handle()));
    EXPECT_FALSE(answer->finished());
    const bridge::ControlOrder order = carry_out(bridge::CacheReport{3, 4096, 1});
    EXPECT_EQ(order.kind, kind);
    EXPECT_EQ(order.path, "dir/a.kv");
    EXPECT_FALSE(answer->finished()) << "the engine's thread touches nothing of the answer";
    run_posted();
    EXPECT_TRUE(answer->finished());
    EXPECT_FALSE(answer->failed());
    EXPECT_EQ(answer->whole().status, 200);
    EXPECT_EQ(answer->whole().body, R"({"object":"cache_report","blocks":3,"bytes":4096,"skipped":1})");
  }
  EXPECT_EQ(events_, 2);
}

TEST_F(CacheOrderTest, ReportsWhatTheEngineRefused) {
  const auto answer = make(Kind::kLoadCache, R"({"path":"a.kv"})");
  ASSERT_FALSE(answer->admit(io_handle()));
  carry_out(invalid("path", "path: this file was saved by another model"));
  run_posted();
  EXPECT_TRUE(answer->failed());
  EXPECT_EQ(answer->whole().status, 400);
  EXPECT_EQ(json::parse(answer->whole().body).at("error").at("param"), "path");
}

TEST_F(CacheOrderTest, WithoutADirectoryThereIsNothingHere) {
  services_.cache_dir.clear();
  const auto refused = make(Kind::kSaveCache, R"({"path":"a.kv"})")->admit(io_handle());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 404);
  EXPECT_NE(refused->body.find("--cache-dir"), std::string::npos);
  EXPECT_FALSE(world_.control.take());
}

TEST_F(CacheOrderTest, ToClearThereIsNothingToSay) {
  services_.cache_dir.clear();
  for (const char* body : {"", "{}", " { } "}) {
    const auto answer = make(Kind::kClearCache, body);
    ASSERT_FALSE(answer->admit(io_handle())) << body;
    const bridge::ControlOrder order = carry_out(bridge::CacheReport{.num_blocks = 5});
    EXPECT_EQ(order.kind, Kind::kClearCache);
    EXPECT_EQ(order.path, "");
    run_posted();
    EXPECT_EQ(answer->whole().body, R"({"object":"cache_report","blocks":5,"bytes":0,"skipped":0})");
  }
  for (const char* body : {R"({"path":"a.kv"})", "[]", "{", "1"}) {
    const auto refused = make(Kind::kClearCache, body)->admit(io_handle());
    ASSERT_TRUE(refused) << body;
    EXPECT_EQ(refused->status, 400);
  }
  EXPECT_FALSE(world_.control.take());
}

TEST_F(CacheOrderTest, ABadNameReachesNobody) {
  const auto refused = make(Kind::kSaveCache, R"({"path":"../a.kv"})")->admit(io_handle());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 400);
  EXPECT_FALSE(world_.control.take());
}

TEST_F(CacheOrderTest, OneOrderAtATime) {
  const auto first = make(Kind::kSaveCache, R"({"path":"a.kv"})");
  ASSERT_FALSE(first->admit(io_handle()));
  const auto second = make(Kind::kLoadCache, R"({"path":"b.kv"})")->admit(io_handle());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status, 503);
  EXPECT_EQ(second->fields.front().name, "Retry-After");
  EXPECT_EQ(carry_out(bridge::CacheReport{}).path, "dir/a.kv");
  const auto third = make(Kind::kLoadCache, R"({"path":"b.kv"})");
  EXPECT_FALSE(third->admit(io_handle()));
}

TEST_F(CacheOrderTest, IsCarriedOutForAClientThatLeft) {
  auto answer = make(Kind::kSaveCache, R"({"path":"a.kv"})");
  ASSERT_FALSE(answer->admit(io_handle()));
  answer.reset();
  carry_out(bridge::CacheReport{});
  run_posted();
  EXPECT_EQ(events_, 1) << "whoever listens there now finds nothing new";
}

TEST_F(CacheOrderTest, BeingCutShortIsTheLastWord) {
  const auto answer = make(Kind::kSaveCache, R"({"path":"a.kv"})");
  ASSERT_FALSE(answer->admit(io_handle()));
  answer->fail(Error{Code::kUnavailable, "going", "", 5});
  EXPECT_TRUE(answer->failed());
  carry_out(bridge::CacheReport{});
  run_posted();
  EXPECT_EQ(answer->whole().status, 503);
}

TEST_F(CacheOrderTest, AQueueThatClosesAnswers) {
  const auto answer = make(Kind::kSaveCache, R"({"path":"a.kv"})");
  ASSERT_FALSE(answer->admit(io_handle()));
  world_.control.close();
  run_posted();
  EXPECT_EQ(answer->whole().status, 503);
  EXPECT_EQ(make(Kind::kSaveCache, R"({"path":"a.kv"})")->admit(io_handle())->status, 503);
}

}  // namespace
}  // namespace quire::api::admin::cache_orders_test
