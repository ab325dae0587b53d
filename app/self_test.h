// Before anything is served: does what was loaded to guess know this model? A line of the log for each, a warning where it guesses
// no better than something that was read wrongly, and a gauge.
// A head that is not sure of itself is asked again with the states it may have been meant to take: the warning says which fit better.
// Thread  engine's, before it turns: nobody holds a block. The target runs in a small cache of its own, gone afterwards.
// Fails   never: a bad drafter costs time alone, so the server starts.
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
  observe::Metrics& metrics;  // of several drafters the one that agrees least
};

void self_test(std::span<speculate::Drafter* const> drafters, const SelfTestParts& parts) REQUIRES(engine_role);

}  // namespace quire::app
