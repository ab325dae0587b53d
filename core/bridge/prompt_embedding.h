// Embedding of a prompt: the hidden states after the model's final norm, summed over the rows that are pooled (all, or
// the last one).
// Shape   E sums in f64. Rows are added in order of position, so that chunks and preemptions change no rounding.
// Owner   allocated at its full size by api/sequences; owned by the TokenStream.
// Thread  as PromptScores.
// Fails   nothing. A row that is not finite makes its sum not finite; sums of finite f32 values cannot overflow an f64.
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

  // Adds the hidden states of the next rows.size() / E positions.
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
