// Engine: beam searches, from the first hypothesis to what their clients are told.
#include "core/engine/search.h"

#include <algorithm>
#include <utility>

#include "core/engine/engine.h"

namespace quire::engine {

void Engine::begin_search(Live& root, std::unique_ptr<Search> search) {
  root.search = search.get();
  root.timeline = search->streams.front()->timeline();
  search->hypotheses.push_back(root.sequence.id());
  search->offers.resize(1);
  searches_.push_back(std::move(search));
}

// One hypothesis has spoken; it waits for the others.
void Engine::hear_offer(Live& live, const flow::StepChoice& choice) {
  Search& search = *live.search;
  if (!choice.finite) {
    if (!search.failed) metrics_.corrupted_requests.add();
    search.failed = true;
    return;
  }
  const auto at = std::ranges::find(search.hypotheses, live.sequence.id());
  CHECK(at != search.hypotheses.end());
  search.offers[static_cast<std::size_t>(at - search.hypotheses.begin())].assign(choice.top.begin(), choice.top.end());
  live.sequence.parked = true;
  ++search.num_spoken;
  count_token(live);
}

// Once a step, after everybody has spoken, and once before it.
void Engine::advance_searches() {
  for (std::size_t i = 0; i < searches_.size();) {
    Search& search = *searches_[i];
    if (search.failed) {
      end_search(search, flow::Finish::kFailed);
    } else if (search.unwanted()) {
      end_search(search, flow::Finish::kCancelled);
    } else if (is_late(search.deadline)) {
      end_search(search, flow::Finish::kLate);
    } else if (!search.over) {
      if (search.num_spoken == search.hypotheses.size()) advance(search);
    }
    if (search.over) tell_best(search);
    if (std::ranges::all_of(search.streams, [](const auto& stream) { return stream == nullptr; })) {
      searches_.erase(searches_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// The next round: every hypothesis that goes on does so in the sequence of its parent, or in a fork of it. Who does not go on
// leaves first, so that forks find a place; forks are made before any of them gets its new token.
void Engine::advance(Search& search) {
  search.streams.front()->timeline()->note_token(now_);
  const auto steps = search.beam.advance(search.offers);
  const std::vector<SeqId> parents = std::exchange(search.hypotheses, {});
  std::vector<bool> goes_on(parents.size(), false);
  for (const Beam::Step& step : steps) goes_on[step.parent] = true;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (!goes_on[i]) forget(live_of(parents[i]));
  }
  for (const Beam::Step& step : steps) {
    SeqId id = parents[step.parent];
    if (!goes_on[step.parent]) {  // another one goes on in its parent's place
      Live& parent = live_of(id);
      id = SeqId(next_seq_++);
      const auto [at, inserted] = live_.emplace(id, std::make_unique<Live>(id, parent, pool_));
      CHECK(inserted);
      scheduler_.add_fork(at->second->sequence, parent.sequence);
    }
    goes_on[step.parent] = false;
    search.hypotheses.push_back(id);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    schedule::Sequence& sequence = live_of(search.hypotheses[i]).sequence;
    sequence.append(steps[i].token);
    sequence.parked = false;
  }
  search.offers.assign(steps.size(), {});
  search.num_spoken = 0;
  search.over = steps.empty();
  search.stalled_since = now_;
}

void Engine::tell_best(Search& search) {
  bool told = false;
  for (std::size_t i = 0; i < search.streams.size(); ++i) {
    auto& stream = search.streams[i];
    if (!stream) continue;
    if (i >= search.beam.best().size()) {  // so few continuations that there are no more answers
      count_end(*stream, flow::Finish::kFailed);
      stream->push({-1, flow::Finish::kFailed});
      hubs_.push_back(&stream->hub());
      flush_streams();
      stream.reset();
      continue;
    }
    const Hypothesis& hypothesis = search.beam.best()[i];
    while (stream && !stream->cancelled() && stream->can_take_token()) {
      const std::size_t next = search.num_told[i]++;
      const bool last = next + 1 == hypothesis.tokens.size();
      const flow::Finish finish = last ? hypothesis.finish : flow::Finish::kNone;
      if (last) count_end(*stream, finish);
      stream->push({hypothesis.tokens[next], finish, hypothesis.logprobs[next]});
      hubs_.push_back(&stream->hub());
      told = true;
      if (!last) continue;
      metrics_.e2e_request_latency_s.observe(std::chrono::duration<double>(now_ - search.arrival).count());
      metrics_.request_prompt_tokens.observe(static_cast<double>(search.num_prompt_tokens));
      metrics_.request_generation_tokens.observe(static_cast<double>(hypothesis.tokens.size()));
      flush_streams();  // the hub is held by its open streams
      stream.reset();
    }
  }
  if (told) search.stalled_since = now_;
  if (now_ - search.stalled_since >= options_.stall_timeout) end_search(search, flow::Finish::kCancelled);
}

// All its streams end here, its sequences go, and it tells nothing more.
void Engine::end_search(Search& search, flow::Finish finish) {
  for (const SeqId id : std::exchange(search.hypotheses, {})) forget(live_of(id));
  for (auto& stream : search.streams) {
    if (!stream) continue;
    count_end(*stream, finish);
    stream->push({-1, finish});
    hubs_.push_back(&stream->hub());
    flush_streams();
    stream.reset();
  }
  search.over = true;
}

}  // namespace quire::engine
