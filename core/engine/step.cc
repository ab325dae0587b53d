#include <algorithm>

#include "core/engine/engine.h"

namespace quire::engine {

void Engine::step() {
  now_ = clock_.now();
  status_.beat(now_, /*asleep=*/false);
  admit_new();
  drop_cancelled();
  const flow::StepPlan& plan = scheduler_.plan(prompt_rows());
  if (!plan.empty()) submit(plan);
  if (runner_.idle()) return rest();
  if (runner_.full() || plan.empty()) {
    commit(runner_.collect());
    deliver();
  }
}

void Engine::admit_new() {
  while (std::optional<bridge::Submission> submission = admission_.pop()) {
    const SeqId id(next_seq_++);
    const auto [at, inserted] = live_.emplace(id, std::make_unique<Live>(id, std::move(*submission), pool_));
    CHECK(inserted);
    Live& live = *at->second;
    const flow::Request& request = live.sequence.request();
    const auto vocab = static_cast<TokenId>(options_.vocab);
    const bool ids_fit = std::all_of(request.prompt.begin(), request.prompt.end(),
                                     [vocab](TokenId token) { return token >= 0 && token < vocab; });
    const bool length_fits = !request.prompt.empty() && request.max_tokens >= 1 &&
                             request.prompt.size() + request.max_tokens <= options_.max_model_len;
    scheduler_.add(live.sequence);
    // api/ has checked both; a request that got past it ends here, alone, before any kernel reads it.
    if (!ids_fit || !length_fits) finish(live, flow::Finish::kFailed);
  }
}

void Engine::drop_cancelled() {
  dropped_.clear();
  for (const auto& [id, live] : live_) {
    schedule::Sequence& sequence = live->sequence;
    if (live->stream->cancelled()) {
      dropped_.push_back(id);
      continue;
    }
    const bool was_parked = sequence.parked;
    sequence.parked = !live->stream->can_take_token();
    if (!sequence.parked) continue;
    if (!was_parked) live->parked_since = now_;
    if (now_ - live->parked_since >= options_.stall_timeout) dropped_.push_back(id);
  }
  for (const SeqId id : dropped_) finish(live_of(id), flow::Finish::kCancelled);
  if (!dropped_.empty()) {
    metrics_.disconnect_to_free_s.observe(std::chrono::duration<double>(clock_.now() - now_).count());
    flush_streams();
  }
}

void Engine::submit(const flow::StepPlan& plan) {
  std::uint32_t num_started = 0;
  for (schedule::Sequence* sequence : scheduler_.admitted()) {
    Live& live = live_of(sequence->id());
    if (live.first_run != TimePoint{}) continue;  // back from a preemption
    live.first_run = now_;
    live.credit.give_back();
    ++num_started;
    metrics_.prefix_cache_queries.add(sequence->num_tokens());
    metrics_.prefix_cache_hits.add(sequence->computed());
    live.stream->set_cached_tokens(sequence->computed());
    metrics_.request_queue_time_s.observe(std::chrono::duration<double>(now_ - sequence->request().arrival).count());
  }
  if (num_started > 0) admission_.note_started(now_, num_started);
  submitted_at_ = now_;
  runner_.submit(plan);
  metrics_.iteration_tokens.observe(static_cast<double>(plan.tokens.size()));
  publish_gauges();
}

schedule::PromptRows Engine::prompt_rows() const {
  static constexpr double kFewRows = 16.0;  // below this a step costs a pass over the weights, whatever its rows
  static constexpr std::uint32_t kFirstRows = 128;  // until a row's time is known
  const auto rows_in = [this](Duration time) {
    if (time <= Duration::zero()) return ~0u;
    if (row_seconds_ <= 0.0) return kFirstRows;
    return static_cast<std::uint32_t>(
        std::clamp(std::chrono::duration<double>(time).count() / row_seconds_, kFewRows, 1e6));
  };
  return {rows_in(options_.max_step_time), rows_in(options_.max_prompt_step_time)};
}

// Nothing can run: no sequence, or every client is behind with reading. Sleeps until rung or until a stall is due.
void Engine::rest() {
  TimePoint wake_at = TimePoint::max();
  for (const auto& [id, live] : live_) {
    if (live->sequence.parked) wake_at = std::min(wake_at, live->parked_since + options_.stall_timeout);
  }
  if (live_.empty()) {
    CHECK_EQ(pool_.num_held(), 0u);  // whatever ran, every block has come back
    pool_.check_invariants();
  }
  publish_gauges();
  flush_streams();
  status_.beat(clock_.now(), /*asleep=*/true);
  doorbell_.wait_until(wake_at);
  status_.beat(clock_.now(), /*asleep=*/false);
}

}  // namespace quire::engine
