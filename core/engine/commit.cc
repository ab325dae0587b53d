#include "core/engine/engine.h"

namespace quire::engine {

// What the device computed becomes permanent: rows count as stored, chosen tokens are appended.
void Engine::commit(std::span<const flow::StepChoice> choices) {
  now_ = clock_.now();
  metrics_.engine_steps.add();
  learn_row_time(now_ - submitted_at_);
  touched_.clear();
  std::size_t next_choice = 0;
  for (schedule::Sequence* sequence : scheduler_.planned()) {
    Live& live = live_of(sequence->id());
    const bool speaks = sequence->planned_rows == sequence->remaining();
    if (sequence->num_generated() == 0) metrics_.prompt_tokens.add(sequence->planned_rows);
    sequence->commit_rows(sequence->planned_rows);
    live.has_event = false;
    touched_.push_back(&live);
    if (!speaks) continue;
    commit_choice(live, choices[next_choice]);
    // A row that is not finite has spoilt every later one: where the last is finite, what is stored is sound.
    if (options_.prefix_caching && choices[next_choice].finite) sequence->publish_prefix(index_);
    ++next_choice;
  }
  CHECK_EQ(next_choice, choices.size());
#ifndef NDEBUG
  pool_.check_invariants();
#endif
}

// The time of one row in a step of many, smoothed: what prompts are cut by while streams run.
void Engine::learn_row_time(Duration step_time) {
  const double seconds = std::chrono::duration<double>(step_time).count();
  metrics_.step_time_s.observe(seconds);
  std::uint32_t rows = 0;
  for (const schedule::Sequence* sequence : scheduler_.planned()) rows += sequence->planned_rows;
  if (rows < 16) return;
  const double row = seconds / rows;
  row_seconds_ = row_seconds_ == 0.0 ? row : 0.75 * row_seconds_ + 0.25 * row;
}

void Engine::commit_choice(Live& live, const flow::StepChoice& choice) {
  CHECK_EQ(choice.seq, live.sequence.id());
  live.has_event = true;
  if (!choice.finite) {  // contained: this request ends, nobody else notices
    metrics_.corrupted_requests.add();
    live.event = {-1, flow::Finish::kFailed};
    return;
  }
  live.event = {choice.token, live.sequence.append(choice.token)};
  metrics_.generation_tokens.add();
  const auto seconds_since = [this](TimePoint then) { return std::chrono::duration<double>(now_ - then).count(); };
  if (live.first_token == TimePoint{}) {
    live.first_token = now_;
    metrics_.time_to_first_token_s.observe(seconds_since(live.sequence.request().arrival));
    metrics_.request_prefill_time_s.observe(seconds_since(live.first_run));
  } else {
    metrics_.inter_token_latency_s.observe(seconds_since(live.last_token));
  }
  live.last_token = now_;
}

}  // namespace quire::engine
