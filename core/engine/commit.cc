#include <algorithm>
#include <utility>

#include "core/engine/engine.h"

namespace quire::engine {

// What the device computed becomes permanent: rows count as stored, chosen tokens are appended.
void Engine::commit(const Flight& flight, std::span<const flow::StepChoice> choices) {
  now_ = clock_.now();
  metrics_.engine_steps.add();
  doorbell_.note_step();
  began_at_ = std::max(flight.submitted_at, std::exchange(collected_at_, now_));
  learn_step_time(flight, now_ - began_at_);
  if (drafter_ != nullptr) note_draft_step(flight, now_ - began_at_);
  touched_.clear();
  observed_.clear();
  observed_rows_.clear();
  lookahead_results_.clear();
  std::size_t next_choice = 0;
  for (std::size_t i = 0; i < flight.sequences.size(); ++i) {
    schedule::Sequence& sequence = *flight.sequences[i];
    const flow::PlannedSequence& planned = flight.plan->sequences[i];
    sequence.land(planned.num_rows - planned.num_nodes, planned.speaks);
    const std::size_t num_choices = planned.given.size() + (planned.speaks ? 1 + planned.num_nodes : 0);
    if (!sequence.leaving) {
      commit_sequence(flight, i, choices.subspan(next_choice, num_choices));
    } else if (sequence.num_in_flight() == 0) {
      forget(live_of(sequence.id()));
    }
    next_choice += num_choices;
  }
  CHECK_EQ(next_choice, choices.size());
  if (num_gaps_ > 0) admission_.pace().note_gap(std::exchange(gap_seconds_, 0.0) / std::exchange(num_gaps_, 0));
  if (drafter_ != nullptr) observe(flight);
  if (!searches_.empty()) advance_searches();
#ifdef NDEBUG
  if (options_.check_blocks)
#endif
    pool_.check_invariants();
}

void Engine::commit_sequence(const Flight& flight, std::size_t i, std::span<const flow::StepChoice> choices) {
  schedule::Sequence& sequence = *flight.sequences[i];
  const flow::PlannedSequence& planned = flight.plan->sequences[i];
  const std::uint32_t num_plain = planned.num_rows - planned.num_nodes;
  Live& live = live_of(sequence.id());
  if (!planned.decodes) live.timeline->note_chunk(began_at_, now_, num_plain);
  sequence.commit_rows(num_plain);
  count_prompt(live);
  if (planned.wants_accumulated_scores) sequence.add_accumulated_scores(runner_.accumulated_scores(i));
  live.has_event = false;
  live.earlier.clear();
  live.top = {};
  if (live.stream) touched_.push_back(&live);
  commit_scores(live, choices.first(planned.given.size()));
  if (planned.num_pooled > 0) commit_pooled(live, runner_.pooled(i));
  if (!planned.speaks) {
    path_.clear();
    note_observed(live, planned, {});
    return;
  }
  const flow::StepChoice& choice = choices[planned.given.size()];
  const auto nodes = choices.subspan(planned.given.size() + 1);
  CHECK_EQ(choice.seq, sequence.id());
  if (live.has_event) return;  // its prompt was not finite
  if (live.search != nullptr) {
    if (choice.finite) hear(sequence);
    return hear_offer(live, choice);
  }
  commit_choice(live, choice);
  walk_draft(live, nodes);
  // A row that is not finite spoils every later one that sees it: where the last is finite, so is all that it stands
  // on.
  if (!flow::is_fault(live.event.finish)) hear(sequence);
  if (options_.jump_ahead && live.event.finish == flow::Finish::kNone && live.top.empty()) jump_ahead(live);
  note_observed(live, planned, nodes);
}

// The time of one row in a step of many, smoothed: what prompts are cut by while streams run.
void Engine::learn_step_time(const Flight& flight, Duration step_time) {
  const double seconds = std::chrono::duration<double>(step_time).count();
  metrics_.step_time_s.observe(seconds);
  const std::size_t rows = flight.plan->tokens.size();
  if (rows >= 16) admission_.pace().note_row(seconds / static_cast<double>(rows));
}

// Rows of its prompt, or before tokens that were forced, in order: what they say of the token after each.
void Engine::commit_scores(Live& live, std::span<const flow::StepChoice> scores) {
  for (const flow::StepChoice& score : scores) {
    CHECK_EQ(score.seq, live.sequence.id());
    if (!score.finite) return fail(live);
    if (live.sequence.num_pending() > 0) {
      const float logprob = live.sequence.request().sampling.logprob ? score.logprob : 0.0f;
      live.earlier.push_back({{live.sequence.tell(), flow::Finish::kNone, logprob}});
      metrics_.jumped_tokens.add();
      live.timeline->note_token(now_);
      count_token(live);
      continue;
    }
    bridge::PromptScores& told = *live.stream->scores_to_write();
    const std::size_t i = live.sequence.num_scored();
    told.logprobs[i] = score.logprob;
    told.ranks[i] = score.rank;
    const auto top = told.top.subspan(i * told.num_top, told.num_top);
    const auto rest = std::ranges::copy(score.top, top.begin()).out;
    std::fill(rest, top.end(), flow::Candidate{});  // the vocabulary has no more
    live.sequence.commit_score();
  }
}

// Rows of its prompt, in order. With the last of them the embedding is there.
void Engine::commit_pooled(Live& live, std::span<const float> rows) {
  bridge::PromptEmbedding& told = *live.stream->embedding_to_write();
  const std::uint32_t before = told.num_rows;
  told.add(rows);
  live.sequence.commit_pooled(told.num_rows - before);
  if (live.sequence.remaining() > 0) return;
  if (!told.finite()) return fail(live);
  hear(live.sequence);
  live.has_event = true;
  live.event = {-1, flow::Finish::kScored};
}

// What it has computed is sound, and whoever begins alike may have it.
void Engine::hear(schedule::Sequence& sequence) {
  const bool first = !sequence.heard();  // whoever waits for this prompt wants all of it
  sequence.hear();
  sequence.publish_prefix(index_, /*tail=*/first);
  if (options_.scheduler.window != 0) sequence.drop_behind(options_.scheduler.window);
}

// Contained: this request ends, nobody else notices.
void Engine::fail(Live& live) {
  const bool forbidden = live.sequence.request().max_tokens > 0 && live.sequence.forbids_all(options_.vocab);
  if (!forbidden) metrics_.corrupted_requests.add();
  live.has_event = true;
  live.event = {-1, forbidden ? flow::Finish::kNoToken : flow::Finish::kFailed};
}

void Engine::commit_choice(Live& live, const flow::StepChoice& choice) {
  if (!choice.finite) return fail(live);
  live.has_event = true;
  if (live.sequence.request().max_tokens == 0) {  // the prompt was all; nobody asked for this token
    live.event = {-1, flow::Finish::kScored};
    return;
  }
  live.event = {choice.token, live.sequence.append(choice.token), choice.logprob};
  live.top = choice.top;
  live.timeline->note_token(now_);
  count_token(live);
}

// What must follow is appended at once and run in one step, with the choice behind it. It is told with that step, when
// its row has turned out to be finite; as far as the stream has room for all of them.
void Engine::jump_ahead(Live& live) {
  static constexpr std::uint32_t kMostAhead = 16;
  schedule::Sequence& sequence = live.sequence;
  const auto num_told = static_cast<std::uint32_t>(live.earlier.size()) + 1;
  while (sequence.num_pending() < kMostAhead && live.stream->can_take(num_told + sequence.num_pending() + 2)) {
    const TokenId token = sequence.forced();
    if (token < 0) return;
    sequence.append_pending(token);
  }
}

// Once all of it is computed.
void Engine::count_prompt(Live& live) {
  const schedule::Sequence& sequence = live.sequence;
  const std::size_t num_tokens = sequence.request().prompt.size();
  if (live.prompt_counted || sequence.num_generated() > 0 || sequence.computed() < num_tokens) return;
  live.prompt_counted = true;
  metrics_.prompt_tokens.add(num_tokens);
  metrics_.prompt_tokens_cached.add(live.num_cached);
}

void Engine::count_token(Live& live) {
  metrics_.generation_tokens.add();
  const auto seconds_since = [this](TimePoint then) { return std::chrono::duration<double>(now_ - then).count(); };
  if (live.first_token == TimePoint{}) {
    live.first_token = now_;
    metrics_.time_to_first_token_s.observe(seconds_since(live.sequence.request().arrival));
    metrics_.request_prefill_time_s.observe(seconds_since(live.first_run));
  } else {
    metrics_.inter_token_latency_s.observe(seconds_since(live.last_token));
    gap_seconds_ += seconds_since(live.last_token);
    ++num_gaps_;
  }
  live.last_token = now_;
}

}  // namespace quire::engine
