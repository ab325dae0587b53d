#include "core/engine/engine.h"

#include <algorithm>
#include <utility>

#include "core/base/kv_constants.h"
#include "core/base/start_error.h"
#include "core/kv/cache_group.h"

namespace quire::engine {

namespace {

kv::PrefixIndexOptions index_options(const EngineOptions& options) {
  kv::PrefixIndexOptions index = options.prefix_index;
  index.keep = options.prefix_caching;
  if (options.scheduler.residual_groups) index.partial_blocks = false;  // a sequence begins with a group of its own
  return index;
}

schedule::SchedulerOptions scheduler_options(const EngineOptions& options) {
  schedule::SchedulerOptions scheduler = options.scheduler;
  scheduler.poison = options.poison_blocks;
  return scheduler;
}

// Most blocks of a sequence of maximum length.
std::uint32_t most_blocks(const EngineOptions& options, const kv::BlockPool& pool) {
  std::uint32_t most = 0;
  for (const kv::CacheGroup& group : pool.groups()) {
    most += group.most_blocks(options.max_model_len, options.scheduler.max_num_batched_tokens,
                              std::max(kGroupTokens, pool.block_tokens()), pool.block_tokens());
  }
  return most;
}

}  // namespace

Engine::Engine(const EngineOptions& options, const EngineParts& parts)
    : options_(options),
      bounds_{options.vocab, options.max_model_len, options.scheduler.max_num_seqs, !kv::all_full(parts.pool.groups())},
      runner_(parts.runner),
      pool_(parts.pool),
      admission_(parts.admission),
      control_(parts.control),
      doorbell_(parts.doorbell),
      status_(parts.status),
      metrics_(parts.metrics),
      clock_(parts.clock),
      index_(parts.pool, index_options(options)),
      scheduler_(scheduler_options(options), parts.pool, index_),
      reporter_(parts.metrics, parts.admission.load_estimate()),
      drafting_({options.max_draft_nodes, options.vocab, options.scheduler.max_num_seqs,
                 options.scheduler.max_num_batched_tokens},
                parts.drafter, parts.depth, parts.runner, parts.metrics, parts.clock),
      live_(parts.pool, scheduler_, drafting_, options.log_blocks),
      flush_(options.scheduler.max_num_seqs),
      searches_(live_, reporter_, flush_, options.stall_timeout) {
  CHECK_GE(parts.pool.num_blocks(), most_blocks(options_, parts.pool));
  flights_.reserve(kMostInFlight);
  touched_.reserve(options.scheduler.max_num_seqs);
  reporter_.publish(scheduler_, pool_, num_pinned_);  // before the first step: a ready server may be scraped at once
}

Engine::~Engine() = default;

void Engine::report_cache(bridge::CacheFeed& feed) {
  cache_reporter_ = std::make_unique<CacheReporter>(index_, feed, metrics_);
}

void Engine::pin_prefix(std::vector<TokenId> tokens, CacheNamespace cache_namespace) {
  CHECK(options_.prefix_caching && idle());
  flow::Request request;
  request.prompt = std::move(tokens);
  request.max_tokens = 1;
  request.cache_namespace = cache_namespace;
  CHECK(fits(request, bounds_));
  schedule::Sequence sequence(live_.next_id(), std::move(request), pool_);
  scheduler_.add(sequence);
  while (!sequence.queue.has_output) {
    runner_.submit(scheduler_.plan());
    const auto choices = runner_.collect();
    sequence.progress.commit(sequence.planned_rows);
    if (choices.empty()) continue;
    if (!choices[0].finite) throw StartError("--pin-prefix: the model gives no finite result for this text");
    sequence.note_output();
  }
  sequence.prefix.publish(index_, /*partial=*/true);
  sequence.prefix.drop_restore_points(index_, sequence.prefix.num_finite());  // its end alone is pinned
  scheduler_.remove(sequence);
  pinned_.push_back(std::move(sequence.table));
  num_pinned_ = pool_.num_held();
  reporter_.publish(scheduler_, pool_, num_pinned_);
  CHECK_GE(pool_.num_blocks() - num_pinned_, most_blocks(options_, pool_));
}

}  // namespace quire::engine
