#include <algorithm>

#include "core/bridge/stream_hub.h"
#include "core/engine/engine.h"

namespace quire::engine {

// Every stream hears of its token; whoever is done leaves, and its blocks are back before the next plan.
void Engine::deliver() {
  for (Live* live : touched_) {
    if (!live->has_event) continue;
    if (live->event.finish != flow::Finish::kNone) {
      finish(*live, live->event.finish);
      continue;
    }
    live->stream->push(live->event);
    hubs_.push_back(&live->stream->hub());
  }
  touched_.clear();
  flush_streams();
}

// Says the end, gives everything back, forgets the sequence. `live` is gone afterwards.
void Engine::finish(Live& live, flow::Finish finish) {
  const schedule::Sequence& sequence = live.sequence;
  const auto seconds = [](Duration duration) { return std::chrono::duration<double>(duration).count(); };
  switch (finish) {
    case flow::Finish::kStop:
      metrics_.success_stop.add();
      break;
    case flow::Finish::kLength:
      metrics_.success_length.add();
      break;
    case flow::Finish::kCancelled:
      (live.stream->satisfied() ? metrics_.success_stop : metrics_.success_abort).add();
      break;
    case flow::Finish::kNone:
    case flow::Finish::kFailed:
      metrics_.success_error.add();
      break;
  }
  metrics_.e2e_request_latency_s.observe(seconds(now_ - sequence.request().arrival));
  metrics_.request_prompt_tokens.observe(static_cast<double>(sequence.request().prompt.size()));
  metrics_.request_generation_tokens.observe(sequence.num_generated());
  if (live.first_token != TimePoint{}) metrics_.request_decode_time_s.observe(seconds(now_ - live.first_token));

  live.stream->push(flow::has_token(finish) ? live.event : flow::TokenEvent{-1, finish});
  hubs_.push_back(&live.stream->hub());
  scheduler_.remove(live.sequence);
  // The stream may outlive us in its session; the hub it names in hubs_ is held by every open stream, so wake it first.
  const std::shared_ptr<bridge::TokenStream> stream = live.stream;
  live_.erase(sequence.id());  // ~BlockTable: the blocks are back
  if (stream.use_count() == 1) flush_streams();
}

void Engine::flush_streams() {
  std::sort(hubs_.begin(), hubs_.end());
  hubs_.erase(std::unique(hubs_.begin(), hubs_.end()), hubs_.end());
  for (bridge::StreamHub* hub : hubs_) hub->flush();
  hubs_.clear();
}

void Engine::publish_gauges() {
  const auto running = static_cast<double>(scheduler_.running().size());
  metrics_.requests_running.set(running);
  metrics_.requests_waiting.set(scheduler_.num_waiting());
  metrics_.kv_cache_usage.set(static_cast<double>(pool_.num_held()) / pool_.num_blocks());
  metrics_.preemptions.add(scheduler_.num_preemptions() - preemptions_seen_);
  preemptions_seen_ = scheduler_.num_preemptions();
}

void Engine::abandon() {
  now_ = clock_.now();
  admission_.close();
  while (admission_.waiting_sequences() > 0) {
    admit_new();  // waits for whoever took credits just before the queue closed
    for (const auto& [id, live] : live_) live->credit.give_back();
  }
  while (!live_.empty()) finish(*live_.begin()->second, flow::Finish::kFailed);
  flush_streams();
  publish_gauges();
}

}  // namespace quire::engine
