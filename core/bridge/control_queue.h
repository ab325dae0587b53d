// Orders to the engine that are no requests: save the prefix cache, load it, clear it. One at a time; who asks hears
// how it ended.
// Shape   at most one order waiting or under way; another one is refused.
// Owner   app; outlives the engine and the sessions.
// Thread  give(): any. take(), finish(), has_order(): engine. `done` runs on the engine thread and must not block (an asio::post).
// Fails   give(): kUnavailable when an order is under way, or once closed. Nothing changed.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/bridge/doorbell.h"

namespace quire::bridge {

struct CacheReport {
  std::uint64_t num_blocks = 0;   // written; read and now in the cache; or emptied
  std::uint64_t num_bytes = 0;    // of the file
  std::uint64_t num_skipped = 0;  // blocks of the file that found no room, or were there already
};

struct ControlOrder {
  enum class Kind : std::uint8_t { kSaveCache, kLoadCache, kClearCache };
  Kind kind = Kind::kSaveCache;
  std::string path;  // of the file
  std::function<void(Result<CacheReport>)> done;
};

class ControlQueue {
 public:
  explicit ControlQueue(Doorbell& doorbell) : doorbell_(doorbell) {}

  Result<Done> give(ControlOrder order);
  // The order that waits, if any; it is under way until finish().
  std::optional<ControlOrder> take();
  void finish();
  bool has_order() const;  // that waits
  // From now on give() refuses; an order that waits is answered kUnavailable.
  void close();

 private:
  Doorbell& doorbell_;
  mutable std::mutex mutex_;  // guards all below
  std::optional<ControlOrder> waiting_;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace quire::bridge
