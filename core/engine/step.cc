#include <algorithm>

#include "core/base/log.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"

namespace quire::engine {
namespace {

using Phase = bridge::EngineStatus::Phase;

}  // namespace

void Engine::step() {
  now_ = clock_.now();
  status_.beat(now_, /*asleep=*/false);
  status_.enter(Phase::kAdmitting);
  admit_new();
  drop_unwanted();
  status_.enter(Phase::kOrders);
  obey_orders();
  status_.enter(Phase::kDrafting);
  drafting_.propose(scheduler_.running(), live_, prompt_rows().while_streaming);
  const bool submitted = may_plan() && plan_step();
  if (flights_.empty()) return rest();
  if (runner_.full() || !submitted) {
    status_.enter(Phase::kComputing);
    const std::span<const flow::StepChoice> choices = collect();
    const Flight flight = flights_.front();
    flights_.erase(flights_.begin());
    commit(flight, choices);
    if (cache_reporter_) cache_reporter_->report();  // before the events that a client may send its next request after
    status_.enter(Phase::kTelling);
    deliver();
  }
}

// While a step runs, plan another only if its result can change nothing but token ids. Not with a drafter, a pending
// control order or a pending preemption; nor if the running step returns hidden states or accumulated scores, of which
// the runner keeps one step's.
bool Engine::may_plan() {
  if (flights_.empty()) return true;
  if (runner_.full() || flights_.size() == kMostInFlight) return false;
  if (drafting_.enabled() || scheduler_.short_of_room() || task_ || control_.has_order()) return false;
  return std::ranges::none_of(flights_.back().plan->sequences, [](const flow::PlannedSequence& planned) {
    return planned.wants_accumulated_scores || planned.num_pooled > 0;
  });
}

bool Engine::plan_step() {
  status_.enter(Phase::kPlanning);
  const flow::StepPlan& plan = scheduler_.plan(prompt_rows());
  note_preempted();
  end_out_of_memory();
  status_.enter(Phase::kComputing);
  if (!plan.empty()) submit(plan);
  return !plan.empty();
}

// A sequence without memory for its answer has no rows in the plan, and ends at once. Other hypotheses of its beam
// search may have rows: a search ends in the next iteration.
void Engine::end_out_of_memory() {
  for (const schedule::Sequence* sequence : scheduler_.out_of_memory()) {
    log_warn("no_memory", "for a sequence of {} tokens and {} more", sequence->num_tokens(),
             sequence->request().max_tokens);
    Live& live = live_.of(sequence->id());
    if (live.search != nullptr) {
      live.search->failed = true;
      doorbell_.ring();
    } else {
      finish(live, flow::Finish::kFailed);
    }
  }
  if (!scheduler_.out_of_memory().empty()) flush_.flush();
}

// The oldest step's results. If the device is faster than min_step_time, they are collected when that time is over;
// the doorbell may ring meanwhile, and is answered in the next iteration.
std::span<const flow::StepChoice> Engine::collect() {
  const TimePoint until = std::max(flights_.front().submitted_at, collected_at_) + options_.min_step_time;
  while (options_.min_step_time > Duration::zero() && clock_.now() < until) doorbell_.wait_until(until);
  return runner_.collect();
}

void Engine::admit_new() {
  while (std::optional<bridge::Submission> submission = admission_.pop()) {
    const bool good = fits(submission->request, bounds_) && has_output_buffers(*submission, runner_.hidden_width());
    if (!good) submission->request.rules.reset();  // a sequence would apply them
    const bool searches = good && submission->request.beam.has_value();
    std::unique_ptr<Search> search;
    if (searches) {
      search = std::make_unique<Search>(*submission);
      submission->request.sampling.num_top =
          Beam::num_candidates(*submission->request.beam, submission->request.stop_tokens.size());
    }
    const auto more_streams = std::move(submission->more_streams);  // of a request that is refused
    Live* const made = live_.add(*submission);
    if (made == nullptr) {
      refuse(search ? search->streams : std::vector{submission->stream});
      continue;
    }
    Live& live = *made;
    scheduler_.add(live.sequence);
    if (searches) searches_.begin(live, std::move(search));
    live.timeline->begin(live.sequence.request().arrival, live.sequence.num_tokens());
    if (!good) {
      refuse(more_streams);
      finish(live, flow::Finish::kFailed);
    }
  }
}

void Engine::refuse(std::span<const std::shared_ptr<bridge::TokenStream>> streams) {
  for (const auto& stream : streams) {
    reporter_.note_stream_end(*stream, flow::Finish::kFailed, now_);
    stream->push({-1, flow::Finish::kFailed});
    stream->hub().flush();
  }
}

// Ends sequences whose client has left, has not read for stall_timeout, or whose deadline has passed; pauses those
// whose stream is full.
void Engine::drop_unwanted() {
  dropped_.clear();
  bool left = false;
  for (const auto& [id, live] : live_) {
    if (!live->stream) continue;  // a hypothesis, or a leaving sequence
    schedule::Sequence& sequence = live->sequence;
    if (live->stream->cancelled()) {
      dropped_.push_back({id, flow::Finish::kCancelled});
      left = true;
      continue;
    }
    if (sequence.request().deadline && now_ >= *sequence.request().deadline) {
      dropped_.push_back({id, flow::Finish::kLate});
      continue;
    }
    const bool was_paused = sequence.paused;
    sequence.paused = !live->stream->can_take_token() || (sequence.progress.num_awaited() > 0 &&
                                                          !live->stream->can_take(1 + sequence.progress.num_awaited()));
    if (!sequence.paused) continue;
    if (!was_paused) live->paused_since = now_;
    if (now_ - live->paused_since < options_.stall_timeout) continue;
    dropped_.push_back({id, flow::Finish::kCancelled});
    left = true;
  }
  for (const auto& [id, why] : dropped_) {
    Live& live = live_.of(id);
    if (live.stream->cancelled()) {
      const std::uint64_t in_flight =
          live.sequence.progress.num_in_flight() > 0 ? 1 : 0;  // until then it keeps its blocks
      reporter_.note_disconnect(live.stream->steps_since_cancelled() + in_flight);
    }
    finish(live, why);
  }
  if (!searches_.empty()) searches_.advance(now_);
  if (left) reporter_.note_disconnects_freed(clock_.now() - now_);
  if (!dropped_.empty()) flush_.flush();
}

void Engine::submit(const flow::StepPlan& plan) {
  for (schedule::Sequence* sequence : scheduler_.admitted()) {
    Live& live = live_.of(sequence->id());
    if (live.first_run != TimePoint{}) continue;  // back from a preemption
    live.first_run = now_;
    live.credit.give_back();
    reporter_.note_start(live);
    drafting_.admit(live);
  }
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const flow::PlannedSequence& planned = plan.sequences[i];
    scheduler_.planned()[i]->progress.launch(planned.num_rows - planned.num_nodes, planned.samples);
  }
  drafting_.track_blocks(plan.block_ops);
  // Drafting took time: the step begins now.
  flights_.push_back({&plan, scheduler_.planned(), drafting_.enabled() ? clock_.now() : now_});
  runner_.submit(plan);
  reporter_.note_submitted(plan);
  reporter_.publish(scheduler_, pool_, num_pinned_);
}

void Engine::note_preempted() {
  for (const schedule::Scheduler::Preempted& one : scheduler_.preempted()) {
    live_.of(one.sequence->id()).timeline->note_preemption(now_, one.swapped);
    drafting_.release(one.sequence->id());
  }
}

schedule::PromptRows Engine::prompt_rows() const {
  static constexpr double kFewRows = 16.0;  // below this a step costs a pass over the weights, whatever its rows
  static constexpr std::uint32_t kFirstRows = 128;  // until a row's time is known
  const double row_s = admission_.load_estimate().rates().row_s;
  const auto rows_in = [row_s](Duration time) {
    if (time <= Duration::zero()) return ~0u;
    if (row_s <= 0.0) return kFirstRows;
    return static_cast<std::uint32_t>(std::clamp(std::chrono::duration<double>(time).count() / row_s, kFewRows, 1e6));
  };
  return {rows_in(options_.max_step_time), rows_in(options_.max_prompt_step_time)};
}

// Saves, loads or clears the prefix cache between steps, a time slice an iteration, so that streams go on.
void Engine::obey_orders() {
  if (!runner_.idle() || !scheduler_.settled()) return;
  if (!task_) {
    std::optional<bridge::ControlOrder> order = control_.take();
    if (!order) return;
    order_ = std::move(*order);
    task_ = make_cache_task(order_, {runner_, pool_, index_, options_.numeric_mode, options_.vocab});
  }
  static constexpr Duration kSlice = std::chrono::milliseconds(20);
  const TimePoint until = clock_.now() + kSlice;
  while (!task_->done() && clock_.now() < until) task_->step();
  if (!task_->done()) return;
  if (cache_reporter_ && order_.kind == bridge::ControlOrder::Kind::kClearCache) cache_reporter_->say_all();
  if (cache_reporter_) cache_reporter_->report();  // before the answer that a client may send its next request after
  const Result<bridge::CacheReport> report = task_->report();
  task_.reset();
  control_.finish();
  order_.done(report);
  order_ = {};
}

// Nothing can run: no sequence, or all are paused. Sleeps until the doorbell rings, or a stall timeout or a deadline is
// due.
void Engine::rest() {
  TimePoint wake_at = searches_.next_due();
  for (const auto& [id, live] : live_) {
    wake_at = std::min(wake_at, live->sequence.request().deadline.value_or(TimePoint::max()));
    if (live->stream && live->sequence.paused) wake_at = std::min(wake_at, live->paused_since + options_.stall_timeout);
  }
  if (cache_reporter_) cache_reporter_->report();
  reporter_.publish(scheduler_, pool_, num_pinned_);
  flush_.flush();
  if (task_) return;
  if (idle()) {
    CHECK_EQ(pool_.num_held(), num_pinned_);  // every block was given back
    pool_.check_invariants();
  }
  status_.beat(clock_.now(), /*asleep=*/true);
  doorbell_.wait_until(wake_at);
  status_.beat(clock_.now(), /*asleep=*/false);
}

}  // namespace quire::engine
