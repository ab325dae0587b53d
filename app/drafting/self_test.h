// Startup test of drafters with weights: whether they fit the served model. Each gets a line in the log, a warning if
// its drafts are no better than those of a head that was read wrongly, and a gauge in the metrics.
// A head below Agreement::kSure is tested again with other hidden states that it may have been trained on; the warning
// names those that fit better.
// Thread  engine's role, before the engine runs, while no sequence holds a block. The target runs in a small KV cache
//         of its own, which is freed afterwards.
// Fails   never: a bad drafter costs only time, so the server starts.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/ops.h"
#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/model/decoder.h"
#include "core/observe/metrics.h"
#include "core/speculate/drafter.h"
#include "core/text/tokenizer.h"

namespace quire::app {

struct SelfTestParts {
  backend::Ops& ops;
  const model::Decoder& target;
  backend::KvType kv_dtype = backend::KvType::kF32;
  std::uint32_t block_tokens = 0;
  std::uint32_t max_rows = 0;  // of a step
  const text::Tokenizer& tokenizer;
  std::uint32_t max_model_len = 0;
  const Clock& clock;
  observe::Metrics& metrics;  // spec_agreement: of several drafters, the lowest
};

void self_test(std::span<speculate::Drafter* const> drafters, const SelfTestParts& parts) REQUIRES(engine_role);

}  // namespace quire::app
