// Saving the prefix cache to a file, or loading it, in small steps between the engine's own; and clearing it, in one.
//   file    header · entries, each behind its parent · end.  Every part carries a hash of its bytes; numbers are little
//           endian.
//   header  magic, version, tokens a block, bytes a block, numeric mode: a cache is good for exactly those.
// Saving writes .NAME.part and renames it when all is written; entries that are evicted meanwhile are left out. Loading
// fills empty blocks only, evicts nothing, and ends with what came before the first fault of a file. Clearing empties
// what nobody holds.
// Owner   the engine.
// Thread  engine, between steps: the runner is idle.
// Fails   report(): kInvalidArgument where the file is not one, is damaged, or is of another model or numeric mode;
//         kInternal where the disk fails. What was loaded before stays: each entry was checked on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/thread_role.h"
#include "core/bridge/control_queue.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/model/runner.h"

namespace quire::engine {

class CacheTask {
 public:
  virtual ~CacheTask() = default;
  // One block's worth of work.
  virtual void step() REQUIRES(engine_role) = 0;
  virtual bool done() const = 0;
  // Once done.
  virtual Result<bridge::CacheReport> report() const = 0;
};

struct CacheParts {
  model::Runner& runner;
  kv::BlockPool& pool;
  kv::PrefixIndex& index;
  const std::string& numeric_mode;
  std::uint32_t vocab = 0;
};

std::unique_ptr<CacheTask> make_cache_task(const bridge::ControlOrder& order, const CacheParts& parts)
    REQUIRES(engine_role);

}  // namespace quire::engine
