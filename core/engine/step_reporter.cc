#include "core/engine/step_reporter.h"

#include <algorithm>
#include <utility>

namespace quire::engine {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

bridge::Timeline::End end_of(flow::Finish finish, bool satisfied) {
  using End = bridge::Timeline::End;
  if (flow::is_fault(finish)) return End::kFailed;
  if (finish == flow::Finish::kLate) return End::kLate;
  if (finish == flow::Finish::kCancelled) return satisfied ? End::kStop : End::kAborted;
  return finish == flow::Finish::kLength || finish == flow::Finish::kScored ? End::kLength : End::kStop;
}

}  // namespace

void StepReporter::note_submitted(const flow::StepPlan& plan) {
  metrics_.iteration_tokens.observe(static_cast<double>(plan.tokens.size()));
}

// The time of one row in a step of many rows is smoothed: prompts are cut by it while streams run.
void StepReporter::note_step(const flow::StepPlan& plan, Duration step_time) {
  static constexpr std::size_t kManyRows = 16;
  metrics_.engine_steps.add();
  metrics_.step_time_s.observe(seconds(step_time));
  const std::size_t rows = plan.tokens.size();
  if (rows >= kManyRows) load_estimate_.note_row(seconds(step_time) / static_cast<double>(rows));
}

void StepReporter::end_commit() {
  if (num_gaps_ > 0) load_estimate_.note_gap(std::exchange(gap_seconds_, 0.0) / std::exchange(num_gaps_, 0));
}

void StepReporter::publish(const schedule::Scheduler& scheduler, const kv::BlockPool& pool, std::uint32_t num_pinned) {
  metrics_.requests_running.set(static_cast<double>(scheduler.running().size()));
  metrics_.requests_waiting.set(static_cast<double>(scheduler.num_waiting()));
  metrics_.kv_cache_usage.set(static_cast<double>(pool.num_held()) / pool.num_blocks());
  metrics_.kv_blocks_empty.set(pool.num_empty());
  metrics_.kv_blocks_kept.set(pool.num_cached_blocks());
  metrics_.kv_blocks_held.set(pool.num_held());
  metrics_.kv_blocks_pinned.set(num_pinned);
  metrics_.kv_blocks_saved.set(static_cast<double>(pool.num_saved()));
  const auto raise = [](observe::Counter& counter, std::uint64_t total) { counter.add(total - counter.value()); };
  const schedule::SchedulerCounts& counts = scheduler.counts();
  raise(metrics_.preemptions, scheduler.num_preemptions());
  raise(metrics_.preemptions_by_recompute, counts.recomputed);
  raise(metrics_.preemptions_by_swap, counts.swapped);
  raise(metrics_.kv_block_hits, counts.block_hits);
  raise(metrics_.kv_block_misses, counts.block_misses);
  raise(metrics_.kv_block_copies, counts.block_copies);
  raise(metrics_.kv_blocks_freed, pool.num_given_back());
  raise(metrics_.kv_block_evictions, pool.num_evicted());
  raise(metrics_.overtakes, scheduler.num_overtakes());
}

void StepReporter::note_start(Live& live) {
  const schedule::Sequence& sequence = live.sequence;
  load_estimate_.note_prompt(sequence.num_tokens(), sequence.progress.computed());
  if (!sequence.request().needs_every_row()) metrics_.prefix_cache_queries.add(sequence.num_tokens());
  metrics_.prefix_cache_hits.add(sequence.progress.computed());
  live.num_cached = sequence.progress.computed();
  live.timeline->note_start(live.first_run, sequence.progress.computed(), sequence.queue.waited_for);
  metrics_.request_queue_time_s.observe(seconds(live.first_run - sequence.request().arrival));
}

void StepReporter::note_prompt(Live& live) {
  const schedule::Sequence& sequence = live.sequence;
  const std::size_t num_tokens = sequence.request().prompt.size();
  if (live.prompt_counted || sequence.num_generated() > 0 || sequence.progress.computed() < num_tokens) return;
  live.prompt_counted = true;
  metrics_.prompt_tokens.add(num_tokens);
  metrics_.prompt_tokens_cached.add(live.num_cached);
}

void StepReporter::note_token(Live& live, TimePoint now) {
  metrics_.generation_tokens.add();
  if (live.first_token == TimePoint{}) {
    live.first_token = now;
    metrics_.time_to_first_token_s.observe(seconds(now - live.sequence.request().arrival));
    metrics_.request_prefill_time_s.observe(seconds(now - live.first_run));
  } else {
    metrics_.inter_token_latency_s.observe(seconds(now - live.last_token));
    gap_seconds_ += seconds(now - live.last_token);
    ++num_gaps_;
  }
  live.last_token = now;
}

void StepReporter::note_disconnect(std::uint64_t steps) {
  metrics_.disconnect_to_free_steps.observe(static_cast<double>(steps));
}

void StepReporter::note_disconnects_freed(Duration duration) {
  metrics_.disconnect_to_free_s.observe(seconds(duration));
}

void StepReporter::note_end(const Live& live, flow::Finish finish, TimePoint now, std::uint32_t running) {
  const schedule::Sequence& sequence = live.sequence;
  note_stream_end(*live.stream, finish, now);
  count_slos(live, finish, now);
  note_load(live, finish, now, running);
  metrics_.e2e_request_latency_s.observe(seconds(now - sequence.request().arrival));
  metrics_.request_prompt_tokens.observe(static_cast<double>(sequence.request().prompt.size()));
  metrics_.request_generation_tokens.observe(sequence.num_generated() - sequence.num_pending());
  if (live.first_token != TimePoint{}) metrics_.request_decode_time_s.observe(seconds(now - live.first_token));
  count_request(live, now);
}

void StepReporter::note_stream_end(const bridge::TokenStream& stream, flow::Finish finish, TimePoint now) {
  const bool satisfied = stream.satisfied();
  stream.timeline()->note_end(now, end_of(finish, satisfied));
  switch (finish) {
    case flow::Finish::kStop:
    case flow::Finish::kComplete:
      return metrics_.success_stop.add();
    case flow::Finish::kLength:
    case flow::Finish::kScored:
      return metrics_.success_length.add();
    case flow::Finish::kCancelled:
      return (satisfied ? metrics_.success_stop : metrics_.success_abort).add();
    case flow::Finish::kLate:
      return metrics_.success_abort.add();
    case flow::Finish::kNone:
    case flow::Finish::kNoToken:
    case flow::Finish::kFailed:
      return metrics_.success_error.add();
  }
}

void StepReporter::note_search_answer(const Search& search, std::size_t num_tokens, TimePoint now) {
  metrics_.e2e_request_latency_s.observe(seconds(now - search.arrival));
  metrics_.request_prompt_tokens.observe(static_cast<double>(search.num_prompt_tokens));
  metrics_.request_generation_tokens.observe(static_cast<double>(num_tokens));
}

// Counts each latency objective of the request as met or missed. A client that left before it was due asks no more.
void StepReporter::count_slos(const Live& live, flow::Finish finish, TimePoint now) {
  const flow::Request& request = live.sequence.request();
  const bool whole = finish != flow::Finish::kLate && !flow::is_fault(finish);
  if (finish == flow::Finish::kCancelled && !live.stream->satisfied()) return;
  const auto count = [this](observe::Metrics::Slo slo, bool kept) {
    metrics_.slos[slo][kept ? observe::Metrics::kKept : observe::Metrics::kMissed].add();
  };
  if (request.deadline) count(observe::Metrics::kDeadline, whole && now <= *request.deadline);
  if (request.first_token_by) {
    const bool has_token = live.first_token != TimePoint{};
    const TimePoint first = has_token ? live.first_token : now;  // an answer without tokens comes at its end
    count(observe::Metrics::kFirstToken, (has_token || whole) && first <= *request.first_token_by);
  }
  if (request.token_time) {
    const std::uint32_t gaps = live.sequence.num_generated() - std::min(live.sequence.num_generated(), 1u);
    count(observe::Metrics::kTokenTime, whole && live.last_token - live.first_token <= *request.token_time * gaps);
  }
}

// A running slot is free again: the load estimate learns how long it was taken, and how long answers are.
void StepReporter::note_load(const Live& live, flow::Finish finish, TimePoint now, std::uint32_t running) {
  if (live.first_run == TimePoint{}) return;
  load_estimate_.note_end(now - live.first_run, running);
  const bool is_whole = flow::has_token(finish) || (finish == flow::Finish::kCancelled && live.stream->satisfied());
  if (is_whole) load_estimate_.note_answer(live.sequence.num_generated());
}

void StepReporter::count_request(const Live& live, TimePoint now) {
  const schedule::Sequence& sequence = live.sequence;
  const std::uint32_t num_emitted = sequence.num_generated() - sequence.num_pending();
  metrics_.request_time_per_output_token_s.observe(num_emitted > 1 ? seconds(now - live.first_token) / (num_emitted - 1)
                                                                   : 0.0);
  if (live.first_run != TimePoint{}) metrics_.request_inference_time_s.observe(seconds(now - live.first_run));
  const auto num_tokens = static_cast<std::uint32_t>(sequence.request().prompt.size());
  metrics_.request_computed_tokens.observe(num_tokens - std::min(live.num_cached, num_tokens));
  if (sequence.request().max_tokens > 0) metrics_.request_max_tokens.observe(sequence.request().max_tokens);
  metrics_.request_preemptions.observe(static_cast<double>(live.timeline->preemptions().num()));
}

}  // namespace quire::engine
