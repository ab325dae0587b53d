#include "core/engine/engine.h"

#include <utility>

namespace quire::engine {

Engine::Live::Live(SeqId id, bridge::Submission&& submission, kv::BlockPool& pool)
    : sequence(id, std::move(submission.request), pool),
      stream(std::move(submission.stream)),
      credit(std::move(submission.credit)) {}

Engine::Engine(const EngineOptions& options, const EngineParts& parts)
    : options_(options),
      runner_(parts.runner),
      pool_(parts.pool),
      admission_(parts.admission),
      doorbell_(parts.doorbell),
      status_(parts.status),
      metrics_(parts.metrics),
      clock_(parts.clock),
      index_(parts.pool, options.prefix_index),
      scheduler_(options.scheduler, parts.pool, options.prefix_caching ? &index_ : nullptr) {
  CHECK_GE(std::uint64_t{parts.pool.num_blocks()} * parts.pool.block_tokens(), options.max_model_len);
  touched_.reserve(options.scheduler.max_num_seqs);
  hubs_.reserve(options.scheduler.max_num_seqs);
}

Engine::~Engine() = default;

}  // namespace quire::engine
