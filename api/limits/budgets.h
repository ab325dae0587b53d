// Memory budgets for request bodies and answers, of all callers together and of each.
// Owner   app; outlives the Server.
// Thread  any.
#pragma once

#include <cstddef>

#include "core/concurrent/byte_budget.h"

namespace quire::api {

struct Budgets {
  explicit Budgets(std::size_t body_bytes, std::size_t answer_bytes = std::size_t{512} << 20)
      : bodies(body_bytes), answers(answer_bytes) {}

  concurrent::ByteBudget bodies;   // from their receipt until they are parsed and tokenised
  concurrent::ByteBudget answers;  // parts of long answers that are not streamed, until their clients have read them
};

}  // namespace quire::api
