// The sequences of the engine, by id: from leaving the admission queue until their last step in flight is collected.
// Owner   the engine. A reference to a Live is valid until forget().
// Thread  engine.
// Fails   add(): null if there is no memory for the sequence; nothing was added.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/engine/drafting.h"
#include "core/engine/live.h"
#include "core/kv/block_pool.h"
#include "core/schedule/scheduler.h"

namespace quire::engine {

class LiveSequences {
 public:
  // log_blocks: a log line with the blocks of every sequence that ends.
  LiveSequences(kv::BlockPool& pool, schedule::Scheduler& scheduler, Drafting& drafting, bool log_blocks)
      : pool_(pool), scheduler_(scheduler), drafting_(drafting), log_blocks_(log_blocks) {}

  SeqId next_id() { return SeqId(next_++); }
  // Not yet in the scheduler: the caller adds it there.
  Live* add(bridge::Submission& submission) REQUIRES(engine_role);
  // A fork of `parent` with the same tokens and blocks; it is in the scheduler, too.
  Live& add_fork(const Live& parent) REQUIRES(engine_role);
  // Removes the sequence from here, the scheduler and the drafter: its blocks return to the pool, and `live` is
  // destroyed. While a step in flight has a row of it, forget() only marks it as leaving and drops its stream; the
  // engine calls forget() again when the last such step is collected. In either case the caller does not use `live`
  // afterwards.
  void forget(Live& live) REQUIRES(engine_role);
  // After the steps in flight were dropped: no row is in flight, and leaving sequences are forgotten.
  void land_all() REQUIRES(engine_role);

  Live& of(SeqId id) { return *live_.at(id); }
  bool empty() const { return live_.empty(); }
  std::size_t size() const { return live_.size(); }
  auto begin() const { return live_.begin(); }
  auto end() const { return live_.end(); }

 private:
  kv::BlockPool& pool_;
  schedule::Scheduler& scheduler_;
  Drafting& drafting_;
  const bool log_blocks_;
  std::uint64_t next_ = 1;
  std::unordered_map<SeqId, std::unique_ptr<Live>> live_;
};

}  // namespace quire::engine
