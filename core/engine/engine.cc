#include "core/engine/engine.h"

#include <utility>

#include "core/base/start_error.h"

namespace quire::engine {

Engine::Live::Live(SeqId id, bridge::Submission&& submission, kv::BlockPool& pool)
    : sequence(id, std::move(submission.request), pool),
      stream(std::move(submission.stream)),
      timeline(stream ? stream->timeline() : nullptr),
      credit(std::move(submission.credit)) {}

Engine::Live::Live(SeqId id, const Live& parent, kv::BlockPool& pool)
    : sequence(id, parent.sequence, pool),
      search(parent.search),
      timeline(parent.timeline),
      first_run(parent.first_run),
      first_token(parent.first_token),
      last_token(parent.last_token) {}

namespace {

kv::PrefixIndexOptions index_options(const EngineOptions& options) {
  kv::PrefixIndexOptions index = options.prefix_index;
  index.keep = options.prefix_caching;
  if (options.scheduler.open_groups) index.tails = false;  // a sequence begins with a group of its own
  return index;
}

schedule::SchedulerOptions scheduler_options(const EngineOptions& options) {
  schedule::SchedulerOptions scheduler = options.scheduler;
  scheduler.poison = options.poison_blocks;
  return scheduler;
}

}  // namespace

Engine::Engine(const EngineOptions& options, const EngineParts& parts)
    : options_(options),
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
      drafter_(parts.drafter),
      depth_(parts.depth) {
  CHECK_LE(options.max_draft_nodes, sample::TokenTree::kMaxNodes);
  CHECK_GE(std::uint64_t{parts.pool.num_blocks()} * parts.pool.block_tokens(), options.max_model_len);
  flights_.reserve(kMostInFlight);
  touched_.reserve(options.scheduler.max_num_seqs);
  hubs_.reserve(options.scheduler.max_num_seqs);
  if (drafter_ == nullptr) return;
  asked_.reserve(options.scheduler.max_num_seqs);
  asking_.reserve(options.scheduler.max_num_seqs);
  candidates_.reserve(options.scheduler.max_num_seqs);
  budgets_.reserve(options.scheduler.max_num_seqs);
  trees_.reserve(options.scheduler.max_num_seqs);
  path_.reserve(sample::TokenTree::kMaxNodes);
  observed_.reserve(options.scheduler.max_num_seqs);
  observed_rows_.reserve(options.scheduler.max_num_batched_tokens);  // spans into these are given out
  lookahead_results_.reserve(options.scheduler.max_num_batched_tokens);
}

Engine::~Engine() = default;

void Engine::report_cache(bridge::CacheFeed& feed) {
  reporter_ = std::make_unique<CacheReporter>(pool_, index_, feed, metrics_);
}

void Engine::pin_prefix(std::vector<TokenId> tokens, CacheRoot root) {
  CHECK(options_.prefix_caching && idle());
  flow::Request request;
  request.prompt = std::move(tokens);
  request.max_tokens = 1;
  request.cache_root = root;
  CHECK(fits(request));
  schedule::Sequence sequence(SeqId(next_seq_++), std::move(request), pool_);
  scheduler_.add(sequence);
  while (!sequence.heard()) {
    runner_.submit(scheduler_.plan());
    const auto choices = runner_.collect();
    sequence.commit_rows(sequence.planned_rows);
    if (choices.empty()) continue;
    if (!choices[0].finite) throw StartError("--pin-prefix: the model gives no finite result for this text");
    sequence.hear();
  }
  sequence.publish_prefix(index_, /*tail=*/true);
  scheduler_.remove(sequence);
  pinned_.push_back(std::move(sequence.table));
  num_pinned_ = pool_.num_held();
  CHECK_GE(std::uint64_t{pool_.num_blocks() - num_pinned_} * pool_.block_tokens(), options_.max_model_len);
}

}  // namespace quire::engine
