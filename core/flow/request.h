// What api/ hands to the engine for one sequence: validated, tokenised, final. Plain data.
// Owner   moved through the admission queue; then the Sequence holds it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

struct Request {
  TimePoint arrival;              // when its bytes were there: latencies count from here
  std::vector<TokenId> prompt;    // [1 .. max_model_len-1] ids, each in [0, logits width)
  std::uint32_t max_tokens = 16;  // >= 1; prompt + max_tokens <= max_model_len
  sample::Params sampling;
  std::vector<TokenId> stop_tokens;  // a choice in here ends the sequence (EOS list; empty with ignore_eos)
};

}  // namespace quire::flow
