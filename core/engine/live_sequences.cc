#include "core/engine/live_sequences.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/log.h"

namespace quire::engine {

Live* LiveSequences::add(bridge::Submission& submission) {
  const SeqId id = next_id();
  try {
    const auto [at, inserted] = live_.try_emplace(id);
    CHECK(inserted);
    at->second = std::make_unique<Live>(id, std::move(submission), pool_);
    return at->second.get();
  } catch (const std::bad_alloc&) {
    live_.erase(id);
    return nullptr;
  }
}

Live& LiveSequences::add_fork(const Live& parent) {
  const SeqId id = next_id();
  const auto [at, inserted] = live_.emplace(id, std::make_unique<Live>(id, parent, pool_));
  CHECK(inserted);
  scheduler_.add_fork(at->second->sequence, parent.sequence);
  return *at->second;
}

void LiveSequences::forget(Live& live) {
  schedule::Sequence& sequence = live.sequence;
  if (sequence.progress.num_in_flight() > 0) {
    sequence.leaving = true;
    live.stream.reset();
    live.search = nullptr;
    return;
  }
  if (log_blocks_) {
    std::uint32_t shared = 0;
    for (std::uint32_t group = 0; group < sequence.table.num_groups(); ++group) {
      for (const BlockId block : sequence.table.blocks(group)) shared += block != kNoBlock && pool_.holders(block) > 1;
    }
    log_info("sequence_blocks", {{"seq", sequence.id().value},
                                 {"tokens", sequence.num_tokens()},
                                 {"computed", sequence.progress.computed()},
                                 {"blocks", sequence.table.num_held()},
                                 {"shared", shared},
                                 {"held", pool_.num_held()},
                                 {"kept", pool_.num_cached_blocks()}});
  }
  drafting_.forget(sequence.id());
  scheduler_.remove(sequence);
  live_.erase(sequence.id());  // ~BlockTable: the blocks are back
}

void LiveSequences::land_all() {
  for (auto at = live_.begin(); at != live_.end();) {
    Live& live = *(at++)->second;
    live.sequence.progress.land_all();
    if (live.sequence.leaving) forget(live);
  }
}

}  // namespace quire::engine
