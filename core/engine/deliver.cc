#include <utility>

#include "core/engine/engine.h"

namespace quire::engine {

// Every stream gets its tokens; sequences that end are removed, so that their blocks are back before the next plan.
void Engine::deliver() {
  for (Live* live : touched_) {
    for (const Emitted& emitted : live->earlier) live->stream->push(emitted.event, emitted.top);
    if (!live->earlier.empty()) flush_.add(live->stream->hub());
    if (!live->has_event) continue;
    if (live->event.finish != flow::Finish::kNone) {
      finish(*live, live->event.finish);
      continue;
    }
    live->stream->push(live->event, live->top);
    flush_.add(live->stream->hub());
  }
  touched_.clear();
  flush_.flush();
}

// Emits the end, publishes the sequence's blocks and forgets it. `live` is gone afterwards.
void Engine::finish(Live& live, flow::Finish finish) {
  schedule::Sequence& sequence = live.sequence;
  reporter_.note_end(live, finish, now_, static_cast<std::uint32_t>(scheduler_.running().size()));
  if (flow::has_token(finish)) {
    live.stream->push(live.event, live.top);
  } else {
    live.stream->push({-1, finish});
  }
  flush_.add(live.stream->hub());
  if (!flow::is_fault(finish) && sequence.state == schedule::State::kRunning) {
    sequence.prefix.publish(index_, /*partial=*/true);
  }
  // The hub is owned by its open streams: if the session has dropped this one already, flush before it is gone.
  const std::shared_ptr<bridge::TokenStream> stream = live.stream;
  live_.forget(live);
  if (stream.use_count() == 1) flush_.flush();
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
    admit_new();  // waits for a client that took credits just before the queue closed
    for (const auto& [id, live] : live_) live->credit.give_back();
  }
  try {
    while (!runner_.idle()) runner_.collect();  // dropped: a device that still works ends its steps
  } catch (const std::exception&) {             // the failure that stopped the engine was reported before
  }
  flights_.clear();
  live_.land_all();
  searches_.end_all(flow::Finish::kFailed, now_);
  while (!live_.empty()) finish(*live_.begin()->second, flow::Finish::kFailed);
  flush_.flush();
  reporter_.publish(scheduler_, pool_, num_pinned_);
}

}  // namespace quire::engine
