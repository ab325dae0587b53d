// Control orders to the engine: save, load or clear the prefix cache. An order's `done` receives its result.
// Shape   at most one order waiting or under way; another one is rejected.
// Owner   app; outlives the engine and the sessions.
// Thread  give(), close(): any. take(), finish(), has_order(): engine. `done` runs on the engine thread, or on the
//         thread that calls close(); it must not block (an asio::post).
// Fails   give(): kUnavailable while an order waits or is under way, and once closed. Nothing changed.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/bridge/doorbell.h"

namespace quire::bridge {

struct CacheReport {
  std::uint64_t num_blocks = 0;  // blocks saved; or loaded into the cache; or evicted by clearing
  std::uint64_t num_bytes = 0;   // of the file
  // Loading: blocks of the file that found no empty block, whose parent is not cached, or that were cached already.
  // Saving: blocks that were evicted or changed meanwhile.
  std::uint64_t num_skipped = 0;
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
  // Takes the waiting order, if any; it is under way until finish().
  std::optional<ControlOrder> take();
  void finish();
  bool has_order() const;  // true: an order waits
  // From now on give() fails; a waiting order is answered with kUnavailable.
  void close();

 private:
  Doorbell& doorbell_;
  mutable std::mutex mutex_;  // guards all members below
  std::optional<ControlOrder> waiting_;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace quire::bridge
