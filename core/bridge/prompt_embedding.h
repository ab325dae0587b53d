// What the model made of a whole prompt: the hidden states behind its final norm, added up over the rows that are pooled.
// Shape   E sums in f64, row after row in position order: neither chunks nor preemptions move a rounding. One row where
//         the last is taken.
// Owner   made by whoever opens the stream, in full; the TokenStream holds it.
// Thread  as PromptScores.
// Fails   nothing: where a row is not finite, neither is its sum, for f64 holds the sum of any finite f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"

namespace quire::bridge {

struct PromptEmbedding {
  explicit PromptEmbedding(std::size_t width) : sums(width) {}

  // Of the next `rows.size() / E` positions.
  void add(std::span<const float> rows) {
    CHECK_EQ(rows.size() % sums.size(), 0u);
    for (std::size_t first = 0; first < rows.size(); first += sums.size()) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += double{rows[first + i]};
      ++num_rows;
    }
  }
  bool finite() const {
    return std::all_of(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); });
  }

  std::vector<double> sums;  // [E]
  std::uint32_t num_rows = 0;
};

}  // namespace quire::bridge
