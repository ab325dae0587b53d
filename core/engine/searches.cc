#include "core/engine/searches.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace quire::engine {

void Searches::begin(Live& first, std::unique_ptr<Search> search) {
  first.search = search.get();
  first.timeline = search->streams.front()->timeline();
  search->hypotheses.push_back(first.sequence.id());
  search->offers.resize(1);
  searches_.push_back(std::move(search));
}

void Searches::take_offer(Live& live, const flow::StepChoice& choice, TimePoint now) {
  Search& search = *live.search;
  if (!choice.finite) {
    if (!search.failed) reporter_.note_corrupted();
    search.failed = true;
    return;
  }
  const auto at = std::ranges::find(search.hypotheses, live.sequence.id());
  CHECK(at != search.hypotheses.end());
  search.offers[static_cast<std::size_t>(at - search.hypotheses.begin())].assign(choice.top.begin(), choice.top.end());
  live.sequence.paused = true;
  ++search.num_offers;
  reporter_.note_token(live, now);
}

void Searches::advance(TimePoint now) {
  for (std::size_t i = 0; i < searches_.size();) {
    Search& search = *searches_[i];
    if (search.failed) {
      end(search, flow::Finish::kFailed, now);
    } else if (search.unwanted()) {
      end(search, flow::Finish::kCancelled, now);
    } else if (search.deadline && now >= *search.deadline) {
      end(search, flow::Finish::kLate, now);
    } else if (!search.over) {
      if (search.num_offers == search.hypotheses.size()) begin_round(search, now);
    }
    if (search.over) emit_best(search, now);
    if (std::ranges::all_of(search.streams, [](const auto& stream) { return stream == nullptr; })) {
      searches_.erase(searches_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// Every hypothesis that goes on does so in its parent's sequence, or in a fork of it. Those that end leave first, so
// that forks find running slots; forks are made before any sequence gets its new token.
void Searches::begin_round(Search& search, TimePoint now) {
  search.streams.front()->timeline()->note_token(now);
  const auto steps = search.beam.advance(search.offers);
  const std::vector<SeqId> parents = std::exchange(search.hypotheses, {});
  std::vector<bool> goes_on(parents.size(), false);
  for (const Beam::Continuation& step : steps) goes_on[step.parent] = true;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (!goes_on[i]) live_.forget(live_.of(parents[i]));
  }
  for (const Beam::Continuation& step : steps) {
    SeqId id = parents[step.parent];
    const bool parent_is_taken = !goes_on[step.parent];  // by an earlier step of the same parent
    if (parent_is_taken) id = live_.add_fork(live_.of(id)).sequence.id();
    goes_on[step.parent] = false;
    search.hypotheses.push_back(id);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    schedule::Sequence& sequence = live_.of(search.hypotheses[i]).sequence;
    sequence.append(steps[i].token);
    sequence.paused = false;
  }
  search.offers.assign(steps.size(), {});
  search.num_offers = 0;
  search.over = steps.empty();
  search.stalled_since = now;
}

void Searches::emit_best(Search& search, TimePoint now) {
  bool emitted = false;
  for (std::size_t i = 0; i < search.streams.size(); ++i) {
    auto& stream = search.streams[i];
    if (!stream) continue;
    if (i >= search.beam.best().size()) {  // the search found fewer answers than streams
      reporter_.note_stream_end(*stream, flow::Finish::kFailed, now);
      stream->push({-1, flow::Finish::kFailed});
      flush_.add(stream->hub());
      flush_.flush();
      stream.reset();
      continue;
    }
    const Hypothesis& hypothesis = search.beam.best()[i];
    while (stream && !stream->cancelled() && stream->can_take_token()) {
      const std::size_t next = search.num_emitted[i]++;
      const bool last = next + 1 == hypothesis.tokens.size();
      const flow::Finish finish = last ? hypothesis.finish : flow::Finish::kNone;
      if (last) reporter_.note_stream_end(*stream, finish, now);
      stream->push({hypothesis.tokens[next], finish, hypothesis.logprobs[next]});
      flush_.add(stream->hub());
      emitted = true;
      if (!last) continue;
      reporter_.note_search_answer(search, hypothesis.tokens.size(), now);
      flush_.flush();  // the hub is owned by its open streams
      stream.reset();
    }
  }
  if (emitted) search.stalled_since = now;
  if (now - search.stalled_since >= stall_timeout_) end(search, flow::Finish::kCancelled, now);
}

// Ends all streams and sequences of the search; nothing more is emitted.
void Searches::end(Search& search, flow::Finish finish, TimePoint now) {
  for (const SeqId id : std::exchange(search.hypotheses, {})) live_.forget(live_.of(id));
  for (auto& stream : search.streams) {
    if (!stream) continue;
    reporter_.note_stream_end(*stream, finish, now);
    stream->push({-1, finish});
    flush_.add(stream->hub());
    flush_.flush();
    stream.reset();
  }
  search.over = true;
}

void Searches::end_all(flow::Finish finish, TimePoint now) {
  for (const auto& search : searches_) end(*search, finish, now);
  searches_.clear();
}

TimePoint Searches::next_due() const {
  TimePoint due = TimePoint::max();
  for (const auto& search : searches_) {
    due = std::min(due, search->deadline.value_or(TimePoint::max()));
    if (search->over) due = std::min(due, search->stalled_since + stall_timeout_);
  }
  return due;
}

}  // namespace quire::engine
