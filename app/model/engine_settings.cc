#include "app/model/engine_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"

namespace quire::app {
namespace {

schedule::Policy policy_of(std::string_view name) {
  using enum schedule::Policy;
  if (name == "fcfs") return kFcfs;
  if (name == "priority") return kPriority;
  if (name == "deadline") return kDeadline;
  if (name == "fair") return kFair;
  CHECK(name == "cache");
  return kCache;
}

schedule::Victim victim_of(std::string_view name) {
  using enum schedule::Victim;
  if (name == "newest") return kNewest;
  if (name == "longest") return kLongest;
  CHECK(name == "lowest-priority");
  return kLowestPriority;
}

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

model::KvGroups kv_groups(const Config& config, const model::ModelSpec& model) {
  const bool cuts = !speculate::drafts_with_target(speculation_of(config).method);
  return cuts ? model::cut_into_groups(model) : model::one_group(model);
}

std::vector<kv::CacheGroup> cache_groups(const model::KvGroups& groups) {
  std::vector<kv::CacheGroup> out;
  for (const std::uint32_t window : groups.windows) {
    out.push_back(window == 0 ? kv::CacheGroup{} : kv::CacheGroup{kv::CacheGroup::Kind::kWindow, window});
  }
  return out;
}

void set_model_options(backend::KvType kv_type, schedule::SchedulerOptions& options) {
  options.residual_groups = kv_type == backend::KvType::kInt4;
}

speculate::SpeculativeConfig speculation_of(const Config& config) {
  if (config.speculative_config.empty()) return {};
  speculate::SpeculativeConfig speculation = speculate::parse_speculative_config(config.speculative_config).value();
  for (std::string& model : speculation.models) {
    if (const auto found = config.draft_snapshots.find(model); found != config.draft_snapshots.end()) {
      model = found->second;
    }
  }
  return speculation;
}

engine::EngineOptions engine_options(const Config& config, const model::ModelSpec& model, const MemoryPlan& plan,
                                     backend::KvType kv_type, const std::string& numeric_mode) {
  engine::EngineOptions options;
  options.numeric_mode = numeric_mode;
  // The order of a saved block's bytes depends on the number of ranks if groups have layers of different sizes.
  if (!kv_groups(config, model).shape(config.block_size, 0, kv_type).groups_are_alike()) {
    options.numeric_mode += fmt::format(" blocks={}-rank", config.tensor_parallel_size);
  }
  set_model_options(kv_type, options.scheduler);
  options.scheduler.max_num_seqs = config.max_num_seqs;
  options.scheduler.max_num_batched_tokens = config.max_num_batched_tokens;
  options.scheduler.policy = policy_of(config.scheduling_policy);
  options.scheduler.victim = victim_of(config.preemption_victim);
  options.scheduler.max_overtakes = config.max_overtakes;
  options.scheduler.num_swap_blocks = plan.num_swap_blocks;
  options.vocab = model.vocab;
  options.max_model_len = plan.max_model_len;
  options.prefix_caching = config.prefix_caching == "on";
  options.check_blocks = has(config.kv_debug, "check");
  options.poison_blocks = has(config.kv_debug, "poison");
  options.log_blocks = has(config.kv_debug, "log");
  options.stall_timeout = config.stall_timeout;
  options.min_step_time = config.min_step_time;
  std::random_device device;  // random, so that nobody outside can find prompts that share a hash bucket
  options.prefix_index.hash_key = std::uint64_t{device()} << 32 | device();
  return options;
}

}  // namespace quire::app
