#include <algorithm>
#include <utility>

#include "core/engine/engine.h"

namespace quire::engine {
namespace {

// Appends the tokens that the grammar forces: they run in the next step, together with the row that samples the token
// after them, and are emitted with that step, once the row before each has turned out to be finite. As many as the
// stream has room for.
void jump_ahead(Live& live) REQUIRES(engine_role) {
  static constexpr std::uint32_t kMostAhead = 16;
  schedule::Sequence& sequence = live.sequence;
  const auto num_emitted = static_cast<std::uint32_t>(live.earlier.size()) + 1;
  while (sequence.num_pending() < kMostAhead && live.stream->can_take(num_emitted + sequence.num_pending() + 2)) {
    const TokenId token = sequence.rules.forced();
    if (token < 0) return;
    sequence.append_pending(token);
  }
}

}  // namespace

// Makes a step's results permanent: its rows count as stored, sampled tokens are appended.
void Engine::commit(const Flight& flight, std::span<const flow::StepChoice> choices) {
  now_ = clock_.now();
  doorbell_.note_step();
  began_at_ = std::max(flight.submitted_at, std::exchange(collected_at_, now_));
  reporter_.note_step(*flight.plan, now_ - began_at_);
  drafting_.begin_commit(flight, now_ - began_at_);
  touched_.clear();
  std::size_t next_choice = 0;
  for (std::size_t i = 0; i < flight.sequences.size(); ++i) {
    schedule::Sequence& sequence = *flight.sequences[i];
    const flow::PlannedSequence& planned = flight.plan->sequences[i];
    sequence.progress.land(planned.num_rows - planned.num_nodes, planned.samples);
    const std::size_t num_choices = planned.given.size() + (planned.samples ? 1 + planned.num_nodes : 0);
    if (!sequence.leaving) {
      commit_sequence(flight, i, choices.subspan(next_choice, num_choices));
    } else if (sequence.progress.num_in_flight() == 0) {
      live_.forget(live_.of(sequence.id()));
    }
    next_choice += num_choices;
  }
  CHECK_EQ(next_choice, choices.size());
  reporter_.end_commit();
  drafting_.observe(flight, touched_);
  if (!searches_.empty()) searches_.advance(now_);
#ifdef NDEBUG
  if (options_.check_blocks)
#endif
    pool_.check_invariants();
}

void Engine::commit_sequence(const Flight& flight, std::size_t i, std::span<const flow::StepChoice> choices) {
  schedule::Sequence& sequence = *flight.sequences[i];
  const flow::PlannedSequence& planned = flight.plan->sequences[i];
  const std::uint32_t num_plain = planned.num_rows - planned.num_nodes;
  Live& live = live_.of(sequence.id());
  if (!planned.decodes) live.timeline->note_chunk(began_at_, now_, num_plain);
  sequence.progress.commit(num_plain);
  reporter_.note_prompt(live);
  if (planned.wants_accumulated_scores) sequence.retention.add_accumulated_scores(runner_.accumulated_scores(i));
  live.has_event = false;
  live.earlier.clear();
  live.top = {};
  if (live.stream) touched_.push_back(&live);
  commit_scores(live, choices.first(planned.given.size()));
  if (planned.num_pooled > 0) commit_pooled(live, runner_.pooled(i));
  if (!planned.samples) {
    drafting_.note_prompt_rows(live, planned);
    return;
  }
  const flow::StepChoice& choice = choices[planned.given.size()];
  const auto nodes = choices.subspan(planned.given.size() + 1);
  CHECK_EQ(choice.seq, sequence.id());
  if (live.has_event) return;  // a row of its prompt was not finite
  if (live.search != nullptr) {
    if (choice.finite) note_output(sequence);
    return searches_.take_offer(live, choice, now_);
  }
  commit_choice(live, choice);
  drafting_.verify(live, nodes,
                   [this](Live& one, const flow::StepChoice& next) REQUIRES(engine_role) { commit_choice(one, next); });
  // A row that is not finite makes every later row that attends to it not finite: if the last row is finite, so are all
  // before it.
  if (!flow::is_fault(live.event.finish)) note_output(sequence);
  if (options_.jump_ahead && live.event.finish == flow::Finish::kNone && live.top.empty()) jump_ahead(live);
  drafting_.note_observed(live, planned, nodes);
}

// Rows of the prompt, or before pending tokens, in order: the score of the token after each.
void Engine::commit_scores(Live& live, std::span<const flow::StepChoice> scores) {
  for (const flow::StepChoice& score : scores) {
    CHECK_EQ(score.seq, live.sequence.id());
    if (!score.finite) return fail(live);
    if (live.sequence.num_pending() > 0) {
      const float logprob = live.sequence.request().sampling.logprob ? score.logprob : 0.0f;
      live.earlier.push_back({{live.sequence.take_pending(), flow::Finish::kNone, logprob}});
      reporter_.note_jumped_token();
      live.timeline->note_token(now_);
      reporter_.note_token(live, now_);
      continue;
    }
    bridge::PromptScores& scored = *live.stream->scores_to_write();
    const std::size_t i = live.sequence.progress.num_scored();
    scored.logprobs[i] = score.logprob;
    scored.ranks[i] = score.rank;
    const auto top = scored.top.subspan(i * scored.num_top, scored.num_top);
    const auto rest = std::ranges::copy(score.top, top.begin()).out;
    std::fill(rest, top.end(), flow::Candidate{});  // the vocabulary has no more
    live.sequence.progress.commit_scored(1);
  }
}

// Rows of the prompt, in order. The last one completes the embedding.
void Engine::commit_pooled(Live& live, std::span<const float> rows) {
  bridge::PromptEmbedding& embedding = *live.stream->embedding_to_write();
  const std::uint32_t before = embedding.num_rows;
  embedding.add(rows);
  live.sequence.progress.commit_scored(embedding.num_rows - before);
  if (live.sequence.remaining() > 0) return;
  if (!embedding.finite()) return fail(live);
  note_output(live.sequence);
  live.has_event = true;
  live.event = {-1, flow::Finish::kScored};
}

// All that the sequence has computed is finite: the prefix cache may have it.
void Engine::note_output(schedule::Sequence& sequence) {
  const bool first = !sequence.queue.has_output;  // sequences that wait for this prompt want its partial block, too
  sequence.note_output();
  sequence.prefix.publish(index_, /*partial=*/first);
  sequence.prefix.drop_behind(index_, sequence.prefix.num_finite());
}

// Ends this request alone.
void Engine::fail(Live& live) {
  const bool forbidden = live.sequence.request().max_tokens > 0 && live.sequence.rules.forbids_all(options_.vocab);
  if (!forbidden) reporter_.note_corrupted();
  live.has_event = true;
  live.event = {-1, forbidden ? flow::Finish::kNoToken : flow::Finish::kFailed};
}

void Engine::commit_choice(Live& live, const flow::StepChoice& choice) {
  if (!choice.finite) return fail(live);
  live.has_event = true;
  if (live.sequence.request().max_tokens == 0) {  // the prompt was all that was asked for
    live.event = {-1, flow::Finish::kScored};
    return;
  }
  live.event = {choice.token, live.sequence.append(choice.token), choice.logprob};
  live.top = choice.top;
  live.timeline->note_token(now_);
  reporter_.note_token(live, now_);
}

}  // namespace quire::engine
