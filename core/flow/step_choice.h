// Result of one logits row in a step, with its sequence. Plain data, which the device returns instead of logits.
// Owner   the runner; `top` is valid until its next submit(). If the row was not finite, the request must end with an
//         error.
#pragma once

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

struct StepChoice : sample::Choice {
  SeqId seq;
};

}  // namespace quire::flow
