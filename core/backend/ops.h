// A device: it makes objects (factory.h), runs steps (step_ops.h), and moves blocks of the KV cache (cache_ops.h).
// Owner   the runner owns the Ops and all objects that they made.
// Thread  start, then engine.
#pragma once

#include <string>

#include "core/backend/cache_ops.h"
#include "core/backend/factory.h"
#include "core/backend/step_ops.h"

namespace quire::backend {

class Ops : public Factory, public StepOps, public CacheOps {
 public:
  // Backend and kernels, as in "cpu/avx512 2 threads", for the log line at start. The part before '/' names the backend
  // in the numeric mode.
  virtual std::string description() const = 0;
};

}  // namespace quire::backend
