// The stream hubs that have events since the last flush: each is flushed once, however many of its streams had some.
// Owner   the engine. A hub is owned by its open streams: flush before the last stream of a hub is dropped.
// Thread  engine.
#pragma once

#include <algorithm>
#include <vector>

#include "core/bridge/stream_hub.h"

namespace quire::engine {

class StreamFlush {
 public:
  explicit StreamFlush(std::size_t num_hubs) { hubs_.reserve(num_hubs); }

  void add(bridge::StreamHub& hub) { hubs_.push_back(&hub); }
  void flush() {
    std::sort(hubs_.begin(), hubs_.end());
    hubs_.erase(std::unique(hubs_.begin(), hubs_.end()), hubs_.end());
    for (bridge::StreamHub* hub : hubs_) hub->flush();
    hubs_.clear();
  }

 private:
  std::vector<bridge::StreamHub*> hubs_;
};

}  // namespace quire::engine
