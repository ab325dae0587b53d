#include "api/limits/key_metrics.h"

#include <gtest/gtest.h>

namespace quire::api::keys {
namespace {

TEST(KeyMetrics, ALineForEachKeyAndFigure) {
  KeyEntry limited{.name = "bob", .digest = digest_of("2")};
  limited.limits.max_running = 2;
  KeyEntry heavy{.name = "alice", .digest = digest_of("1")};
  heavy.tenant = "team";
  heavy.weight = 3;
  const KeyTable table({heavy, limited}, nullptr);
  auto ended = table.find("1")->account->take({1, 1, 0}, TimePoint{});
  ended->slots.clear();
  ended->reservation.end(TimePoint{}, 11, 7);
  auto held = table.find("2")->account->take({2, 2, 0}, TimePoint{});
  held->slots.pop_back();
  EXPECT_FALSE(table.find("2")->account->take({1, 1, 0}, TimePoint{}));

  std::string text = "before 1\n";
  append_metrics(text, table);
  EXPECT_EQ(text, R"(before 1
# HELP quire:key_running_sequences Running and waiting sequences of a key.
# TYPE quire:key_running_sequences gauge
quire:key_running_sequences{key="alice"} 0
quire:key_running_sequences{key="bob"} 2
# HELP quire:key_waiting_sequences Waiting sequences of a key.
# TYPE quire:key_waiting_sequences gauge
quire:key_waiting_sequences{key="alice"} 0
quire:key_waiting_sequences{key="bob"} 1
# HELP quire:key_requests_total Requests of a key that were within its limits.
# TYPE quire:key_requests_total counter
quire:key_requests_total{key="alice"} 1
quire:key_requests_total{key="bob"} 1
# HELP quire:key_prompt_tokens_total Prompt tokens of a key's finished requests.
# TYPE quire:key_prompt_tokens_total counter
quire:key_prompt_tokens_total{key="alice"} 11
quire:key_prompt_tokens_total{key="bob"} 0
# HELP quire:key_generation_tokens_total Generated tokens of a key's finished requests.
# TYPE quire:key_generation_tokens_total counter
quire:key_generation_tokens_total{key="alice"} 7
quire:key_generation_tokens_total{key="bob"} 0
# HELP quire:key_weight Weight of a key within its tenant under policy fair.
# TYPE quire:key_weight gauge
quire:key_weight{key="alice",tenant="team"} 3
quire:key_weight{key="bob",tenant="bob"} 1
# HELP quire:key_refused_requests_total Requests of a key that exceeded one of its limits and were answered 429.
# TYPE quire:key_refused_requests_total counter
quire:key_refused_requests_total{key="alice",limit="max_running"} 0
quire:key_refused_requests_total{key="alice",limit="max_queued"} 0
quire:key_refused_requests_total{key="alice",limit="tokens_per_minute"} 0
quire:key_refused_requests_total{key="bob",limit="max_running"} 1
quire:key_refused_requests_total{key="bob",limit="max_queued"} 0
quire:key_refused_requests_total{key="bob",limit="tokens_per_minute"} 0
)");
}

}  // namespace
}  // namespace quire::api::keys
