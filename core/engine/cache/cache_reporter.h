// Reports changes of the prefix cache to subscribers of KV events: one batch per iteration in which it has changed. An
// entry is there for them while its block of the first group is: a full group's, if the model has one. In a model
// without one an entry may go and come back with its id, and may be there without its parent.
// The first batch reports the whole cache, after a kCleared. So does the first batch after one that was lost because
// the feed was full: a later batch corrects a subscriber that has missed a batch number.
// Owner   the engine. Borrows index, feed and metrics.
// Thread  engine; never waits.
// Source  the idea of vLLM's event publisher; reporting the whole cache anew instead of waiting for the queue is ours.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/thread_role.h"
#include "core/bridge/cache_feed.h"
#include "core/kv/prefix_index.h"
#include "core/observe/metrics.h"

namespace quire::engine {

class CacheReporter final : public kv::PrefixIndex::Listener {
 public:
  // Becomes the listener of `index`.
  CacheReporter(kv::PrefixIndex& index, bridge::CacheFeed& feed, observe::Metrics& metrics);

  void on_stored(const kv::PrefixIndex::Entry& entry, std::span<const TokenId> tokens) override;
  void on_removed(kv::EntryId entry) override;

  // The next batch reports the whole cache.
  void say_all();
  // Sends the changes since the last call as a batch; they are lost if the feed is full.
  void report() REQUIRES(engine_role);

 private:
  void add_all();
  void lose();

  const kv::PrefixIndex& index_;
  bridge::CacheFeed& feed_;
  observe::Metrics& metrics_;
  bridge::CacheFeed::Batch batch_;
  std::uint64_t next_number_ = 0;
  bool says_all_ = true;  // the next batch reports the whole cache: single changes are not recorded
};

}  // namespace quire::engine
