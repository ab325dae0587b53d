// Budgets of the server's memory for bodies and answers: for all callers together, and for each.
// Owner   app; outlives the Server. Thread  any.
#pragma once

#include <cstddef>

#include "core/bridge/byte_budget.h"

namespace quire::api {

struct Budgets {
  explicit Budgets(std::size_t body_bytes, std::size_t answer_bytes = std::size_t{512} << 20)
      : bodies(body_bytes), answers(answer_bytes) {}

  bridge::ByteBudget bodies;   // on their way in, until they are parsed and tokenised
  bridge::ByteBudget answers;  // written whole, until their clients have read them
};

}  // namespace quire::api
