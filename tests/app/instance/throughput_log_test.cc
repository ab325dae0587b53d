#include "app/instance/throughput_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/observe/metrics.h"

namespace quire::app::throughput_log_test {
namespace {

using namespace std::chrono_literals;

// "key=text …"; "-": no line.
std::string line(const ThroughputSample& before, const ThroughputSample& now, Duration took) {
  const auto fields = throughput_fields(before, now, took);
  if (!fields) return "-";
  std::string out;
  for (const LogField& field : *fields) out += std::string(field.key()) + "=" + std::string(field.text()) + " ";
  return out;
}

TEST(ThroughputFields, AreRatesOfTheTimeBetweenTwoSamples) {
  const ThroughputSample before{
      .prompt_tokens = 100, .completion_tokens = 50, .tokens_queried = 90, .tokens_found = 90};
  const ThroughputSample now{.prompt_tokens = 400,
                             .completion_tokens = 75,
                             .tokens_queried = 390,
                             .tokens_found = 190,
                             .drafted = 8,
                             .accepted = 6,
                             .running = 3,
                             .waiting = 2,
                             .kv_cache_usage = 0.12345};
  EXPECT_EQ(line(before, now, 2s),
            "prompt_tokens_per_s=150 completion_tokens_per_s=12.5 running=3 waiting=2 kv_cache_percent=12.3 "
            "prefix_hit_percent=33.3 accepted_draft_percent=75 ");
}

TEST(ThroughputFields, LeaveOutSharesOfNothing) {
  EXPECT_EQ(line({}, {.completion_tokens = 10}, 10s),
            "prompt_tokens_per_s=0 completion_tokens_per_s=1 running=0 waiting=0 kv_cache_percent=0 ");
}

TEST(ThroughputFields, AreNoneOfAnIdleServer) {
  const ThroughputSample idle{.prompt_tokens = 100, .completion_tokens = 50, .kv_cache_usage = 0.5};
  EXPECT_EQ(line(idle, idle, 10s), "-");
  ThroughputSample stuck = idle;
  stuck.waiting = 1;
  EXPECT_NE(line(idle, stuck, 10s), "-") << "a request that does not get on is shown";
}

TEST(ThroughputSample, IsOfTheMetrics) {
  observe::Metrics metrics({});
  metrics.prompt_tokens.add(1);
  metrics.generation_tokens.add(2);
  metrics.prefix_cache_queries.add(3);
  metrics.prefix_cache_hits.add(4);
  metrics.spec_draft_tokens.add(5);
  metrics.spec_accepted_tokens.add(6);
  metrics.requests_running.set(7);
  metrics.requests_waiting.set(8);
  metrics.kv_cache_usage.set(0.9);
  EXPECT_EQ(line({}, sample_of(metrics), 1s),
            "prompt_tokens_per_s=1 completion_tokens_per_s=2 running=7 waiting=8 kv_cache_percent=90 "
            "prefix_hit_percent=133.3 accepted_draft_percent=120 ");
}

TEST(ThroughputLog, EndsAtOnceHoweverLongItsInterval) {
  const observe::Metrics metrics({});
  const TimePoint begun = SteadyClock().now();
  { const ThroughputLog log(metrics, 1h); }
  EXPECT_LT(SteadyClock().now() - begun, 1min);
}

}  // namespace
}  // namespace quire::app::throughput_log_test
