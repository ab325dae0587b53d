// What one speaking sequence said in a step. Plain data; what the device sends back instead of logits.
#pragma once

#include "core/base/ids.h"

namespace quire::flow {

struct StepChoice {
  SeqId seq;
  TokenId token = -1;
  bool finite = true;  // false: the row's logits held a NaN or +inf; the token means nothing and the request must end
                       // with an error
};

}  // namespace quire::flow
