#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"

namespace quire::engine {
namespace {

bridge::Timeline::End end_of(flow::Finish finish, bool satisfied) {
  using End = bridge::Timeline::End;
  if (flow::is_fault(finish)) return End::kFailed;
  if (finish == flow::Finish::kLate) return End::kLate;
  if (finish == flow::Finish::kCancelled) return satisfied ? End::kStop : End::kAborted;
  return finish == flow::Finish::kLength || finish == flow::Finish::kScored ? End::kLength : End::kStop;
}

}  // namespace

// Every stream hears of its token; whoever is done leaves, and its blocks are back before the next plan.
void Engine::deliver() {
  for (Live* live : touched_) {
    for (const Told& told : live->earlier) live->stream->push(told.event, told.top);
    if (!live->earlier.empty()) hubs_.push_back(&live->stream->hub());
    if (!live->has_event) continue;
    if (live->event.finish != flow::Finish::kNone) {
      finish(*live, live->event.finish);
      continue;
    }
    live->stream->push(live->event, live->top);
    hubs_.push_back(&live->stream->hub());
  }
  touched_.clear();
  flush_streams();
}

void Engine::count_request(const Live& live) {
  const schedule::Sequence& sequence = live.sequence;
  const auto seconds = [this](TimePoint then) { return std::chrono::duration<double>(now_ - then).count(); };
  const std::uint32_t num_told = sequence.num_generated() - sequence.num_pending();
  metrics_.request_time_per_output_token_s.observe(num_told > 1 ? seconds(live.first_token) / (num_told - 1) : 0.0);
  if (live.first_run != TimePoint{}) metrics_.request_inference_time_s.observe(seconds(live.first_run));
  const auto num_tokens = static_cast<std::uint32_t>(sequence.request().prompt.size());
  metrics_.request_computed_tokens.observe(num_tokens - std::min(live.num_cached, num_tokens));
  if (sequence.request().max_tokens > 0) metrics_.request_max_tokens.observe(sequence.request().max_tokens);
  metrics_.request_preemptions.observe(static_cast<double>(live.timeline->preemptions().num()));
}

// Says the end, gives everything back, forgets the sequence. `live` is gone afterwards.
void Engine::finish(Live& live, flow::Finish finish) {
  schedule::Sequence& sequence = live.sequence;
  const auto seconds = [](Duration duration) { return std::chrono::duration<double>(duration).count(); };
  count_end(*live.stream, finish);
  count_slos(live, finish);
  note_pace(live, finish);
  metrics_.e2e_request_latency_s.observe(seconds(now_ - sequence.request().arrival));
  metrics_.request_prompt_tokens.observe(static_cast<double>(sequence.request().prompt.size()));
  metrics_.request_generation_tokens.observe(sequence.num_generated() - sequence.num_pending());
  if (live.first_token != TimePoint{}) metrics_.request_decode_time_s.observe(seconds(now_ - live.first_token));
  count_request(live);

  if (flow::has_token(finish)) {
    live.stream->push(live.event, live.top);
  } else {
    live.stream->push({-1, finish});
  }
  hubs_.push_back(&live.stream->hub());
  if (!flow::is_fault(finish) && sequence.state == schedule::State::kRunning) {
    sequence.publish_prefix(index_, /*tail=*/true);
  }
  // The stream may outlive us in its session; the hub it names in hubs_ is held by every open stream, so wake it first.
  const std::shared_ptr<bridge::TokenStream> stream = live.stream;
  forget(live);
  if (stream.use_count() == 1) flush_streams();
}

// Where a step in flight has a row of it still, that happens when the step is collected: until then nobody hears of it,
// but it holds its blocks and what the step borrows.
void Engine::forget(Live& live) {
  schedule::Sequence& sequence = live.sequence;
  if (sequence.num_in_flight() > 0) {
    sequence.leaving = true;
    live.stream.reset();
    live.search = nullptr;
    return;
  }
  if (options_.log_blocks) {
    const auto shared = std::ranges::count_if(
        sequence.table.blocks(), [this](BlockId block) { return block != kv::kNoBlock && pool_.holders(block) > 1; });
    log_info("sequence_blocks", "seq={} tokens={} computed={} blocks={} shared={} held={} kept={}", sequence.id().value,
             sequence.num_tokens(), sequence.computed(), sequence.table.size(), shared, pool_.num_held(),
             pool_.num_kept());
  }
  if (drafter_ != nullptr) drafter_->release(sequence.id(), /*ended=*/true);
  if (depth_ != nullptr) depth_->forget(sequence.id());
  scheduler_.remove(live.sequence);
  live_.erase(sequence.id());  // ~BlockTable: the blocks are back
}

void Engine::count_end(const bridge::TokenStream& stream, flow::Finish finish) {
  const bool satisfied = stream.satisfied();
  stream.timeline()->note_end(now_, end_of(finish, satisfied));
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

// What was asked of its time, and whether it was so. Whoever left before it was due asks no more.
void Engine::count_slos(const Live& live, flow::Finish finish) {
  const flow::Request& request = live.sequence.request();
  const bool whole = finish != flow::Finish::kLate && !flow::is_fault(finish);
  if (finish == flow::Finish::kCancelled && !live.stream->satisfied()) return;
  const auto count = [this](observe::Metrics::Slo slo, bool kept) {
    metrics_.slos[slo][kept ? observe::Metrics::kKept : observe::Metrics::kMissed].add();
  };
  if (request.deadline) count(observe::Metrics::kDeadline, whole && now_ <= *request.deadline);
  if (request.first_token_by) {
    const bool spoke = live.first_token != TimePoint{};
    const TimePoint first = spoke ? live.first_token : now_;  // whose answer has no tokens is told all at once
    count(observe::Metrics::kFirstToken, (spoke || whole) && first <= *request.first_token_by);
  }
  if (request.token_time) {
    const std::uint32_t gaps = live.sequence.num_generated() - std::min(live.sequence.num_generated(), 1u);
    count(observe::Metrics::kTokenTime, whole && live.last_token - live.first_token <= *request.token_time * gaps);
  }
}

// A place is free again: how long that took, and how long answers are.
void Engine::note_pace(const Live& live, flow::Finish finish) {
  if (live.first_run == TimePoint{}) return;
  const auto running = static_cast<std::uint32_t>(scheduler_.running().size());
  admission_.pace().note_end(now_ - live.first_run, running);
  const bool said_all = flow::has_token(finish) || (finish == flow::Finish::kCancelled && live.stream->satisfied());
  if (said_all) admission_.pace().note_answer(live.sequence.num_generated());
}

void Engine::flush_streams() {
  std::sort(hubs_.begin(), hubs_.end());
  hubs_.erase(std::unique(hubs_.begin(), hubs_.end()), hubs_.end());
  for (bridge::StreamHub* hub : hubs_) hub->flush();
  hubs_.clear();
}

void Engine::publish_gauges() {
  metrics_.requests_running.set(static_cast<double>(scheduler_.running().size()));
  metrics_.requests_waiting.set(static_cast<double>(scheduler_.num_waiting()));
  metrics_.kv_cache_usage.set(static_cast<double>(pool_.num_held()) / pool_.num_blocks());
  metrics_.kv_blocks_empty.set(pool_.num_empty());
  metrics_.kv_blocks_kept.set(pool_.num_kept());
  metrics_.kv_blocks_held.set(pool_.num_held());
  metrics_.kv_blocks_pinned.set(num_pinned_);
  metrics_.kv_blocks_saved.set(static_cast<double>(pool_.num_saved()));
  // Counters that are counted where it happens, on this thread: told as what is new since the last time.
  const auto tell = [](observe::Counter& counter, std::uint64_t total) { counter.add(total - counter.value()); };
  const schedule::SchedulerCounts& counts = scheduler_.counts();
  tell(metrics_.preemptions, scheduler_.num_preemptions());
  tell(metrics_.preemptions_by_recompute, counts.recomputed);
  tell(metrics_.preemptions_by_swap, counts.swapped);
  tell(metrics_.kv_block_hits, counts.block_hits);
  tell(metrics_.kv_block_misses, counts.block_misses);
  tell(metrics_.kv_block_copies, counts.block_copies);
  tell(metrics_.kv_blocks_freed, pool_.num_given_back());
  tell(metrics_.kv_block_evictions, pool_.num_evicted());
  tell(metrics_.overtakes, scheduler_.num_overtakes());
}

// What is in flight is waited for, as far as the device still does it, and nobody hears of it.
void Engine::drop_flights() {
  try {
    while (!runner_.idle()) runner_.collect();
  } catch (const std::exception&) {  // the one that it failed with has been told
  }
  flights_.clear();
  for (auto at = live_.begin(); at != live_.end();) {
    Live& live = *(at++)->second;
    live.sequence.land_all();
    if (live.sequence.leaving) forget(live);
  }
}

void Engine::abandon() {
  now_ = clock_.now();
  admission_.close();
  control_.close();
  task_.reset();
  if (order_.done) {
    control_.finish();
    std::exchange(order_, {}).done(Error{Code::kUnavailable, "the server is shutting down", "", 0});
  }
  while (admission_.waiting_sequences() > 0) {
    admit_new();  // waits for whoever took credits just before the queue closed
    for (const auto& [id, live] : live_) live->credit.give_back();
  }
  drop_flights();
  for (const auto& search : searches_) end_search(*search, flow::Finish::kFailed);
  searches_.clear();
  while (!live_.empty()) finish(*live_.begin()->second, flow::Finish::kFailed);
  flush_streams();
  publish_gauges();
}

}  // namespace quire::engine
