#include <algorithm>
#include <new>

#include "core/base/log.h"
#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"

namespace quire::engine {
namespace {

using Phase = bridge::EngineStatus::Phase;

bool can_apply(const sample::Rules& rules, TokenId vocab) {
  const std::vector<TokenId>& allowed = rules.allowed;
  const bool allowed_fit =
      allowed.empty() || (std::ranges::is_sorted(allowed) && allowed.front() >= 0 && allowed.back() < vocab);
  return allowed_fit && rules.repetition_penalty > 0.0f &&
         std::ranges::none_of(rules.bad_words, [](const auto& word) { return word.empty(); });
}

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
  draft();
  const bool submitted = may_plan() && plan_step();
  if (flights_.empty()) return rest();
  if (runner_.full() || !submitted) {
    status_.enter(Phase::kComputing);
    const std::span<const flow::StepChoice> choices = collect();
    const Flight flight = flights_.front();
    flights_.erase(flights_.begin());
    commit(flight, choices);
    if (reporter_) reporter_->report();  // before the last words that a client may go on from
    status_.enter(Phase::kTelling);
    deliver();
  }
}

// With a step in flight the next is planned only where what it brings can do no more to the plan than fill in tokens: a
// drafter, an order and who has to be sent back want to know first, and of hidden states and accumulated scores the
// runner keeps one step's.
bool Engine::may_plan() {
  if (flights_.empty()) return true;
  if (runner_.full() || flights_.size() == kMostInFlight) return false;
  if (drafter_ != nullptr || scheduler_.short_of_room() || task_ || control_.has_order()) return false;
  return std::ranges::none_of(flights_.back().plan->sequences, [](const flow::PlannedSequence& planned) {
    return planned.wants_accumulated_scores || planned.num_pooled > 0;
  });
}

bool Engine::plan_step() {
  status_.enter(Phase::kPlanning);
  const flow::StepPlan& plan = scheduler_.plan(prompt_rows());
  note_preempted();
  end_roomless();
  status_.enter(Phase::kComputing);
  if (!plan.empty()) submit(plan);
  return !plan.empty();
}

// A sequence for whose answer there is no memory has no part in the plan, and ends at once. Other hypotheses of its
// search may have a part: a search ends in the next turn.
void Engine::end_roomless() {
  for (const schedule::Sequence* sequence : scheduler_.roomless()) {
    log_warn("no_memory", "for a sequence of {} tokens and {} more", sequence->num_tokens(),
             sequence->request().max_tokens);
    Live& live = live_of(sequence->id());
    if (live.search != nullptr) {
      live.search->failed = true;
      doorbell_.ring();
    } else {
      finish(live, flow::Finish::kFailed);
    }
  }
  if (!scheduler_.roomless().empty()) flush_streams();
}

// The oldest step's choices. Where the device is quicker than min_step_time, as if it took so long: whoever rings
// meanwhile is looked after in the next turn, as always.
std::span<const flow::StepChoice> Engine::collect() {
  const TimePoint until = std::max(flights_.front().submitted_at, collected_at_) + options_.min_step_time;
  while (options_.min_step_time > Duration::zero() && clock_.now() < until) doorbell_.wait_until(until);
  return runner_.collect();
}

void Engine::admit_new() {
  while (std::optional<bridge::Submission> submission = admission_.pop()) {
    const SeqId id(next_seq_++);
    // api/ has checked it; a request that got past it ends here, alone, before any kernel reads it.
    const bool good = fits(submission->request) && can_tell(*submission);
    if (!good) submission->request.rules.reset();  // nothing is made of what cannot be applied
    const bool searches = good && submission->request.beam.has_value();
    std::unique_ptr<Search> search;
    if (searches) {
      search = std::make_unique<Search>(*submission);
      submission->request.sampling.num_top =
          Beam::num_candidates(*submission->request.beam, submission->request.stop_tokens.size());
    }
    const auto more_streams = std::move(submission->more_streams);  // of a request that is refused
    Live* const made = make_live(id, *submission);
    if (made == nullptr) {
      refuse(search ? search->streams : std::vector{submission->stream});
      continue;
    }
    Live& live = *made;
    scheduler_.add(live.sequence);
    if (searches) begin_search(live, std::move(search));
    live.timeline->begin(live.sequence.request().arrival, live.sequence.num_tokens());
    if (!good) {
      for (const auto& stream : more_streams) {
        stream->push({-1, flow::Finish::kFailed});
        stream->hub().flush();
      }
      finish(live, flow::Finish::kFailed);
    }
  }
}

// Null: there is not so much memory.
Engine::Live* Engine::make_live(SeqId id, bridge::Submission& submission) try {
  const auto [at, inserted] = live_.try_emplace(id);
  CHECK(inserted);
  at->second = std::make_unique<Live>(id, std::move(submission), pool_);
  return at->second.get();
} catch (const std::bad_alloc&) {
  live_.erase(id);
  return nullptr;
}

void Engine::refuse(std::span<const std::shared_ptr<bridge::TokenStream>> streams) {
  for (const auto& stream : streams) {
    count_end(*stream, flow::Finish::kFailed);
    stream->push({-1, flow::Finish::kFailed});
    stream->hub().flush();
  }
}

bool Engine::fits(const flow::Request& request) const {
  const auto vocab = static_cast<TokenId>(options_.vocab);
  const bool ids_fit = std::all_of(request.prompt.begin(), request.prompt.end(),
                                   [vocab](TokenId token) { return token >= 0 && token < vocab; });
  const bool top_fits = request.sampling.num_top <= sample::kMaxTop;
  const bool rules_fit = !request.rules || can_apply(*request.rules, vocab);
  const bool length_fits = !request.prompt.empty() &&
                           (request.max_tokens >= 1 || request.scores_prompt || request.embeds()) &&
                           request.prompt.size() + request.max_tokens <= options_.max_model_len;
  const flow::KvPolicy& policy = request.kv_policy;
  const bool policy_fits =
      policy.kind == flow::KvPolicy::Kind::kFull ||
      (!request.scores_prompt && options_.scheduler.window == 0 && policy.sinks >= schedule::kGroupTokens &&
       policy.sinks % schedule::kGroupTokens == 0 && policy.window >= schedule::kSpanTokens &&
       policy.window % schedule::kSpanTokens == 0 && policy.budget % schedule::kGroupTokens == 0);
  const auto num_candidates = [&] { return Beam::num_candidates(*request.beam, request.stop_tokens.size()); };
  const bool beam_fits =
      !request.beam ||
      (!request.rules && !request.grammar && !request.scores_prompt && request.beam->num_best >= 1 &&
       request.beam->num_best <= request.beam->width && request.beam->width <= options_.scheduler.max_num_seqs &&
       num_candidates() <= std::min(options_.vocab, sample::kMaxTop));
  const bool pooling_fits =
      !request.embeds() || (request.max_tokens == 0 && !request.scores_prompt && !request.rules && !request.grammar &&
                            !request.beam && policy.kind == flow::KvPolicy::Kind::kFull);
  return ids_fit && top_fits && rules_fit && length_fits && policy_fits && beam_fits && pooling_fits;
}

bool Engine::can_tell(const bridge::Submission& submission) const {
  const flow::Request& request = submission.request;
  if (request.embeds()) {
    const bridge::PromptEmbedding* const embedding = submission.stream->embedding_to_write();
    return embedding != nullptr && !embedding->sums.empty() && embedding->sums.size() == runner_.hidden_width();
  }
  if (!request.scores_prompt) return true;
  const bridge::PromptScores* const scores = submission.stream->scores_to_write();
  return scores != nullptr && scores->logprobs.size() + 1 == request.prompt.size() &&
         scores->num_top >= request.sampling.num_top;
}

// Who is waited for no more: its client left, does not read, or wanted it by now.
void Engine::drop_unwanted() {
  dropped_.clear();
  bool left = false;
  for (const auto& [id, live] : live_) {
    if (!live->stream) continue;  // a hypothesis, or it is leaving
    schedule::Sequence& sequence = live->sequence;
    if (live->stream->cancelled()) {
      dropped_.push_back({id, flow::Finish::kCancelled});
      left = true;
      continue;
    }
    if (is_late(sequence.request().deadline)) {
      dropped_.push_back({id, flow::Finish::kLate});
      continue;
    }
    const bool was_parked = sequence.parked;
    sequence.parked = !live->stream->can_take_token() ||
                      (sequence.num_awaited() > 0 && !live->stream->can_take(1 + sequence.num_awaited()));
    if (!sequence.parked) continue;
    if (!was_parked) live->parked_since = now_;
    if (now_ - live->parked_since < options_.stall_timeout) continue;
    dropped_.push_back({id, flow::Finish::kCancelled});
    left = true;
  }
  for (const auto& [id, why] : dropped_) {
    Live& live = live_of(id);
    if (live.stream->cancelled()) {
      const std::uint64_t in_flight = live.sequence.num_in_flight() > 0 ? 1 : 0;  // it holds its blocks as long
      metrics_.disconnect_to_free_steps.observe(static_cast<double>(live.stream->steps_since_cancelled() + in_flight));
    }
    finish(live, why);
  }
  if (!searches_.empty()) advance_searches();
  if (left) metrics_.disconnect_to_free_s.observe(std::chrono::duration<double>(clock_.now() - now_).count());
  if (!dropped_.empty()) flush_streams();
}

void Engine::submit(const flow::StepPlan& plan) {
  for (schedule::Sequence* sequence : scheduler_.admitted()) {
    Live& live = live_of(sequence->id());
    if (live.first_run != TimePoint{}) continue;  // back from a preemption
    live.first_run = now_;
    live.credit.give_back();
    admission_.pace().note_prompt(sequence->num_tokens(), sequence->computed());
    if (!sequence->request().needs_every_row()) metrics_.prefix_cache_queries.add(sequence->num_tokens());
    metrics_.prefix_cache_hits.add(sequence->computed());
    live.num_cached = sequence->computed();
    live.timeline->note_start(now_, sequence->computed(), sequence->waited_for);
    if (drafter_ != nullptr) follow_or_not(live);
    metrics_.request_queue_time_s.observe(std::chrono::duration<double>(now_ - sequence->request().arrival).count());
  }
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const flow::PlannedSequence& planned = plan.sequences[i];
    scheduler_.planned()[i]->launch(planned.num_rows - planned.num_nodes, planned.speaks);
  }
  if (drafter_ != nullptr && !plan.block_ops.empty()) drafter_->follow(plan.block_ops);
  // Drafting has taken time, too.
  flights_.push_back({&plan, scheduler_.planned(), drafter_ != nullptr ? clock_.now() : now_});
  runner_.submit(plan);
  metrics_.iteration_tokens.observe(static_cast<double>(plan.tokens.size()));
  publish_gauges();
}

void Engine::note_preempted() {
  for (const schedule::Scheduler::Preempted& one : scheduler_.preempted()) {
    live_of(one.sequence->id()).timeline->note_preemption(now_, one.swapped);
    if (drafter_ != nullptr) drafter_->release(one.sequence->id(), /*ended=*/false);
  }
}

schedule::PromptRows Engine::prompt_rows() const {
  static constexpr double kFewRows = 16.0;  // below this a step costs a pass over the weights, whatever its rows
  static constexpr std::uint32_t kFirstRows = 128;  // until a row's time is known
  const double row_s = admission_.pace().rates().row_s;
  const auto rows_in = [row_s](Duration time) {
    if (time <= Duration::zero()) return ~0u;
    if (row_s <= 0.0) return kFirstRows;
    return static_cast<std::uint32_t>(std::clamp(std::chrono::duration<double>(time).count() / row_s, kFewRows, 1e6));
  };
  return {rows_in(options_.max_step_time), rows_in(options_.max_prompt_step_time)};
}

// Saves, loads or clears the prefix cache between steps, a slice a turn, so that streams go on.
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
  if (reporter_ && order_.kind == bridge::ControlOrder::Kind::kClearCache) reporter_->say_all();
  if (reporter_) reporter_->report();  // before the answer that a client may go on from
  const Result<bridge::CacheReport> report = task_->report();
  task_.reset();
  control_.finish();
  order_.done(report);
  order_ = {};
}

// Nothing can run: no sequence, or every client is behind with reading. Sleeps until rung or until a stall or a
// deadline is due.
void Engine::rest() {
  TimePoint wake_at = TimePoint::max();
  for (const auto& [id, live] : live_) {
    wake_at = std::min(wake_at, live->sequence.request().deadline.value_or(TimePoint::max()));
    if (live->stream && live->sequence.parked) wake_at = std::min(wake_at, live->parked_since + options_.stall_timeout);
  }
  for (const auto& search : searches_) {
    wake_at = std::min(wake_at, search->deadline.value_or(TimePoint::max()));
    if (search->over) wake_at = std::min(wake_at, search->stalled_since + options_.stall_timeout);
  }
  if (reporter_) reporter_->report();
  publish_gauges();
  flush_streams();
  if (task_) return;
  if (idle()) {
    CHECK_EQ(pool_.num_held(), num_pinned_);  // whatever ran, every block has come back
    pool_.check_invariants();
  }
  status_.beat(clock_.now(), /*asleep=*/true);
  doorbell_.wait_until(wake_at);
  status_.beat(clock_.now(), /*asleep=*/false);
}

}  // namespace quire::engine
