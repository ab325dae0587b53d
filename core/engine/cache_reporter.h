// Tells whoever follows the prefix cache from outside what becomes of it: a batch a turn in which something did.
// The first batch says the whole cache, after a kCleared. So does the first one after a batch that was lost because
// nobody had taken those before it: whoever misses a number is put right by what comes later, too.
// Owner   the engine. Borrows the index and the feed.
// Thread  engine; never waits.
// Source  vLLM's event publisher as an idea; saying all of it anew instead of waiting for the queue is ours.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/thread_role.h"
#include "core/bridge/cache_feed.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/observe/metrics.h"

namespace quire::engine {

class CacheReporter final : public kv::PrefixIndex::Listener {
 public:
  // It listens to `index` from now on.
  CacheReporter(const kv::BlockPool& pool, kv::PrefixIndex& index, bridge::CacheFeed& feed, observe::Metrics& metrics);

  void on_stored(const kv::PrefixIndex::Entry& entry, std::span<const TokenId> tokens) override;
  void on_removed(kv::EntryId entry) override;

  // The next batch says the whole cache.
  void say_all();
  // What happened since the last call goes out, or is lost.
  void report() REQUIRES(engine_role);

 private:
  void add_all();
  void lose();

  const kv::BlockPool& pool_;
  const kv::PrefixIndex& index_;
  bridge::CacheFeed& feed_;
  observe::Metrics& metrics_;
  bridge::CacheFeed::Batch batch_;
  std::uint64_t next_number_ = 0;
  bool says_all_ = true;  // then single changes need no mention
};

}  // namespace quire::engine
