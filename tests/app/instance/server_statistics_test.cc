#include "app/instance/server_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "core/observe/metrics.h"

namespace quire::app::server_statistics_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

observe::MetricsInfo info() {
  observe::MetricsInfo info;
  info.model_name = R"(a "model"} 7)";
  info.version = "1.2.3";
  info.numeric_mode = "cpu";
  info.block_size = 32;
  info.num_blocks = 100;
  return info;
}

void fill(observe::Metrics& metrics) {
  metrics.requests_running.set(1);
  metrics.requests_waiting.set(2);
  metrics.kv_blocks_empty.set(3);
  metrics.kv_blocks_kept.set(4);
  metrics.kv_blocks_held.set(5);
  metrics.kv_blocks_pinned.set(6);
  metrics.kv_blocks_saved.set(7);
  metrics.kv_block_hits.add(30);
  metrics.kv_block_misses.add(10);
  metrics.kv_blocks_freed.add(8);
  metrics.kv_block_evictions.add(9);
  metrics.kv_block_copies.add(11);
  metrics.prefix_cache_queries.add(1000);
  metrics.prefix_cache_hits.add(125);
  metrics.preemptions_by_recompute.add(12);
  metrics.preemptions_by_swap.add(13);
  metrics.overtakes.add(1234567890123);
}

TEST(ServerStatistics, AreWhatTheMetricsSay) {
  observe::Metrics metrics(info());
  fill(metrics);
  const auto seen = read_statistics(metrics.render());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->model, R"(a "model"} 7)");
  EXPECT_EQ(seen->version, "1.2.3");
  EXPECT_EQ(seen->block_tokens, 32);
  EXPECT_EQ(seen->running, 1);
  EXPECT_EQ(seen->waiting, 2);
  EXPECT_EQ(seen->blocks_empty, 3);
  EXPECT_EQ(seen->blocks_kept, 4);
  EXPECT_EQ(seen->blocks_held, 5);
  EXPECT_EQ(seen->blocks_pinned, 6);
  EXPECT_EQ(seen->blocks_saved, 7);
  EXPECT_EQ(seen->block_hits, 30);
  EXPECT_EQ(seen->block_misses, 10);
  EXPECT_EQ(seen->blocks_freed, 8);
  EXPECT_EQ(seen->block_evictions, 9);
  EXPECT_EQ(seen->block_copies, 11);
  EXPECT_EQ(seen->tokens_queried, 1000);
  EXPECT_EQ(seen->tokens_found, 125);
  EXPECT_EQ(seen->preempted_by_recompute, 12);
  EXPECT_EQ(seen->preempted_by_swap, 13);
  EXPECT_EQ(seen->overtakes, 1234567890123);
}

TEST(ServerStatistics, CountsAreReadHoweverPrometheusWritesThem) {
  const auto hits = [](const std::string& value) {
    return read_statistics("quire:build_info{version=\"1\"} 1\nquire:kv_block_hits_total{engine=\"0\"} " + value + "\n")
        ->block_hits;
  };
  EXPECT_EQ(hits("1e+06"), 1000000u);
  EXPECT_EQ(hits("12"), 12u);
  EXPECT_EQ(hits("NaN"), 0u);
  EXPECT_EQ(hits("-1"), 0u);
  EXPECT_EQ(hits("+Inf"), 0u);
}

TEST(ServerStatistics, AreNotReadFromAnotherServersText) {
  EXPECT_FALSE(read_statistics(""));
  EXPECT_FALSE(read_statistics("<html>It works!</html>\n"));
  EXPECT_FALSE(read_statistics("vllm:num_requests_running{model_name=\"m\"} 1\n"));
  EXPECT_FALSE(read_statistics("# HELP quire:build_info Version.\nquire:build_info_more{version=\"1\"} 1\n"));
  EXPECT_TRUE(read_statistics("quire:build_info{version=\"1\"} 1"));
}

TEST(ServerStatistics, ArePrintedWithTheirShares) {
  observe::Metrics metrics(info());
  const auto fresh = read_statistics(metrics.render());
  ASSERT_TRUE(fresh);
  EXPECT_THAT(statistics_text(*fresh), ContainsRegex("block hits +0  -"));
  fill(metrics);
  const std::string text = statistics_text(*read_statistics(metrics.render()));
  EXPECT_THAT(text, HasSubstr("KV blocks of 32 tokens"));
  EXPECT_THAT(text, ContainsRegex("block hits +30  75.0 %"));
  EXPECT_THAT(text, ContainsRegex("prompt tokens found +125  12.5 % of 1000"));
  EXPECT_THAT(text, ContainsRegex("held +5  pinned 6"));
  EXPECT_THAT(text, ContainsRegex("overtaken in the queue +1234567890123"));
}

TEST(ServerStatistics, AreJsonToo) {
  observe::Metrics metrics(info());
  const auto rate = [](const std::string& json) {
    return boost::json::parse(json).as_object().at("block_hit_rate").as_double();
  };
  EXPECT_EQ(rate(statistics_json(*read_statistics(metrics.render()))), 0.0);
  fill(metrics);
  const std::string json = statistics_json(*read_statistics(metrics.render()));
  EXPECT_EQ(rate(json), 0.75);
  EXPECT_EQ(boost::json::parse(json).at("blocks").at("kept").as_int64(), 4);
  EXPECT_EQ(boost::json::parse(json).at("preemptions").at("swap").as_int64(), 13);
  EXPECT_THAT(json, HasSubstr(R"("overtakes":1234567890123)"));
  EXPECT_THAT(json, HasSubstr(R"("block_hit_rate":0.75)"));
}

}  // namespace
}  // namespace quire::app::server_statistics_test
