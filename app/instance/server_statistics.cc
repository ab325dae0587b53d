#include "app/instance/server_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/json.h"

namespace quire::app {
namespace {

// One line of the Prometheus text: name{labels} value.
struct Sample {
  std::string_view labels;
  std::string_view value;
};

// The first sample of `name` whose labels contain `label`, spelled as in the text: state="kept".
std::optional<Sample> find(std::string_view text, std::string_view name, std::string_view label = {}) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != '{') continue;
    const std::size_t end = line.rfind("} ");
    if (end == line.npos) continue;
    const Sample sample{line.substr(name.size() + 1, end - name.size() - 1), line.substr(end + 2)};
    if (sample.labels.find(label) != sample.labels.npos) return sample;
  }
  return std::nullopt;
}

// A count, which Prometheus' text may write as 1e+06; 0 if the series is missing.
std::uint64_t number(std::string_view text, std::string_view name, std::string_view label = {}) {
  constexpr double kMost = 9007199254740992;  // 2^53
  const std::optional<Sample> sample = find(text, name, label);
  double value = 0;
  if (sample) std::from_chars(sample->value.data(), sample->value.data() + sample->value.size(), value);
  return value >= 0 && value <= kMost ? static_cast<std::uint64_t>(value) : 0;
}

// The value of `key` in labels like key="value",…: up to the next quote that is not escaped.
std::string label_of(std::string_view labels, std::string_view key) {
  const std::string opening = fmt::format("{}=\"", key);
  const std::size_t at = labels.find(opening);
  if (at == labels.npos) return "";
  std::string out;
  for (std::size_t i = at + opening.size(); i < labels.size() && labels[i] != '"'; ++i) {
    if (labels[i] == '\\' && i + 1 < labels.size()) ++i;
    out += labels[i];
  }
  return out;
}

// "75.0 %"; "-" if `whole` is 0.
std::string share_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::optional<ServerStatistics> read_statistics(std::string_view metrics) {
  const std::optional<Sample> build = find(metrics, "quire:build_info");
  if (!build) return std::nullopt;
  ServerStatistics seen;
  seen.model = label_of(build->labels, "model_name");
  seen.version = label_of(build->labels, "version");
  if (const auto shape = find(metrics, "vllm:cache_config_info")) {
    const std::string tokens = label_of(shape->labels, "block_size");
    std::from_chars(tokens.data(), tokens.data() + tokens.size(), seen.block_tokens);
  }
  seen.running = number(metrics, "vllm:num_requests_running");
  seen.waiting = number(metrics, "vllm:num_requests_waiting");
  seen.blocks_empty = number(metrics, "quire:kv_blocks", R"(state="empty")");
  seen.blocks_kept = number(metrics, "quire:kv_blocks", R"(state="kept")");
  seen.blocks_held = number(metrics, "quire:kv_blocks", R"(state="held")");
  seen.blocks_pinned = number(metrics, "quire:kv_blocks_pinned");
  seen.blocks_saved = number(metrics, "quire:kv_blocks_saved_by_sharing");
  seen.block_hits = number(metrics, "quire:kv_block_hits_total");
  seen.block_misses = number(metrics, "quire:kv_block_misses_total");
  seen.blocks_freed = number(metrics, "quire:kv_blocks_freed_total");
  seen.block_evictions = number(metrics, "quire:kv_block_evictions_total");
  seen.block_copies = number(metrics, "quire:kv_block_copies_total");
  seen.tokens_queried = number(metrics, "vllm:prefix_cache_queries_total");
  seen.tokens_found = number(metrics, "vllm:prefix_cache_hits_total");
  seen.preempted_by_recompute = number(metrics, "quire:preemptions_total", R"(mode="recompute")");
  seen.preempted_by_swap = number(metrics, "quire:preemptions_total", R"(mode="swap")");
  seen.overtakes = number(metrics, "quire:queue_overtakes_total");
  return seen;
}

std::string statistics_text(const ServerStatistics& seen) {
  std::string out =
      fmt::format("{}, quire {}: {} sequences run, {} wait\n\n", seen.model, seen.version, seen.running, seen.waiting);
  const auto row = [&out](std::string_view what, std::uint64_t value, std::string_view more = {}) {
    out += fmt::format("  {:<22} {:>14}{}{}\n", what, value, more.empty() ? "" : "  ", more);
  };
  out += fmt::format("KV blocks of {} tokens, now\n", seen.block_tokens);
  row("empty", seen.blocks_empty);
  row("kept", seen.blocks_kept, "free, with content that the prefix cache can still use");
  row("held", seen.blocks_held, fmt::format("pinned {}", seen.blocks_pinned));
  row("saved by sharing", seen.blocks_saved);
  out += "\nsince the server started\n";
  row("block hits", seen.block_hits, share_text(seen.block_hits, seen.block_hits + seen.block_misses));
  row("block misses", seen.block_misses);
  row("prompt tokens found", seen.tokens_found,
      fmt::format("{} of {}", share_text(seen.tokens_found, seen.tokens_queried), seen.tokens_queried));
  row("blocks freed", seen.blocks_freed);
  row("blocks evicted", seen.block_evictions);
  row("blocks copied", seen.block_copies, "before a write, because they were shared");
  row("preempted, recomputed", seen.preempted_by_recompute);
  row("preempted, swapped", seen.preempted_by_swap);
  row("overtaken in the queue", seen.overtakes);
  return out;
}

std::string statistics_json(const ServerStatistics& seen) {
  const std::uint64_t looked_up = seen.block_hits + seen.block_misses;
  const json::Object out = {
      {"model", seen.model},
      {"version", seen.version},
      {"block_tokens", seen.block_tokens},
      {"running", seen.running},
      {"waiting", seen.waiting},
      {"blocks", json::Object{{"empty", seen.blocks_empty}, {"kept", seen.blocks_kept}, {"held", seen.blocks_held}}},
      {"blocks_pinned", seen.blocks_pinned},
      {"blocks_saved_by_sharing", seen.blocks_saved},
      {"block_hits", seen.block_hits},
      {"block_misses", seen.block_misses},
      {"block_hit_rate", looked_up == 0 ? 0.0 : static_cast<double>(seen.block_hits) / static_cast<double>(looked_up)},
      {"blocks_freed", seen.blocks_freed},
      {"block_evictions", seen.block_evictions},
      {"block_copies", seen.block_copies},
      {"prompt_tokens_queried", seen.tokens_queried},
      {"prompt_tokens_found", seen.tokens_found},
      {"preemptions", json::Object{{"recompute", seen.preempted_by_recompute}, {"swap", seen.preempted_by_swap}}},
      {"overtakes", seen.overtakes}};
  return json::serialize(out) + "\n";
}

}  // namespace quire::app
