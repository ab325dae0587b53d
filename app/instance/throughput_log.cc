#include "app/instance/throughput_log.h"

#include <chrono>
#include <cmath>

namespace quire::app {
namespace {

double tenths(double value) { return std::round(value * 10) / 10; }

}  // namespace

ThroughputSample sample_of(const observe::Metrics& metrics) {
  return {.prompt_tokens = metrics.prompt_tokens.value(),
          .completion_tokens = metrics.generation_tokens.value(),
          .tokens_queried = metrics.prefix_cache_queries.value(),
          .tokens_found = metrics.prefix_cache_hits.value(),
          .drafted = metrics.spec_draft_tokens.value(),
          .accepted = metrics.spec_accepted_tokens.value(),
          .running = metrics.requests_running.value(),
          .waiting = metrics.requests_waiting.value(),
          .kv_cache_usage = metrics.kv_cache_usage.value()};
}

std::optional<LogFields> throughput_fields(const ThroughputSample& before, const ThroughputSample& now, Duration took) {
  const std::uint64_t prompt_tokens = now.prompt_tokens - before.prompt_tokens;
  const std::uint64_t completion_tokens = now.completion_tokens - before.completion_tokens;
  if (prompt_tokens + completion_tokens == 0 && now.running + now.waiting == 0) return std::nullopt;
  const double seconds = std::chrono::duration<double>(took).count();
  LogFields fields = {{"prompt_tokens_per_s", tenths(static_cast<double>(prompt_tokens) / seconds)},
                      {"completion_tokens_per_s", tenths(static_cast<double>(completion_tokens) / seconds)},
                      {"running", now.running},
                      {"waiting", now.waiting},
                      {"kv_cache_percent", tenths(100 * now.kv_cache_usage)}};
  const auto add_share = [&fields](std::string_view key, std::uint64_t part, std::uint64_t whole) {
    if (whole != 0) fields.emplace_back(key, tenths(100 * static_cast<double>(part) / static_cast<double>(whole)));
  };
  add_share("prefix_hit_percent", now.tokens_found - before.tokens_found, now.tokens_queried - before.tokens_queried);
  add_share("accepted_draft_percent", now.accepted - before.accepted, now.drafted - before.drafted);
  return fields;
}

ThroughputLog::ThroughputLog(const observe::Metrics& metrics, Duration interval)
    : metrics_(metrics), interval_(interval), thread_([this] { run(); }) {}

ThroughputLog::~ThroughputLog() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void ThroughputLog::run() {
  ThroughputSample before = sample_of(metrics_);
  TimePoint sampled = SteadyClock().now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval_, [this] { return has_ended_; })) {
    const ThroughputSample sample = sample_of(metrics_);
    const TimePoint now = SteadyClock().now();
    if (const auto fields = throughput_fields(before, sample, now - sampled)) log_info("throughput", *fields);
    before = sample;
    sampled = now;
  }
}

}  // namespace quire::app
