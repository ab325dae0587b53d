// A control order under way: saves the prefix cache to a file or loads it, in small steps between the engine's own, or
// clears it in one step.
//   file    header · entries, each after its parent · end. A hash of its bytes follows each part; numbers are little
//           endian.
//   header  magic, version, tokens per block, bytes per block, numeric mode, groups of layers: a file is valid for
//           exactly these.
//   entry   its tokens, and its blocks by group. One without blocks is there for those behind it.
// Saving writes .NAME.part and renames it at the end; entries that are evicted meanwhile are left out. Loading fills
// empty blocks only, evicts nothing, and stops at the first fault of the file. Clearing evicts all cached blocks.
// Owner   the engine.
// Thread  engine, between steps: the runner is idle.
// Fails   report(): kInvalidArgument if the file is no saved cache, is damaged, or differs in version, model, numeric
//         mode, groups or block size; kNotFound if it does not exist; kInternal if it cannot be opened or written.
//         Entries that were loaded before a fault stay: each was checked on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/thread_role.h"
#include "core/bridge/control_queue.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/model/run/runner.h"

namespace quire::engine {

class CacheTask {
 public:
  virtual ~CacheTask() = default;
  // Does the work of one entry; clearing: all of it.
  virtual void step() REQUIRES(engine_role) = 0;
  virtual bool done() const = 0;
  // Valid once done().
  virtual Result<bridge::CacheReport> report() const = 0;
};

// The parts of the engine that a task borrows.
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
