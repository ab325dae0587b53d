#include "core/speculate/heads/last_states.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::speculate {

LastStates::LastStates(backend::Ops& ops, RowMover& mover, std::uint32_t max_rows, std::uint32_t hidden)
    : mover_(mover), states_(ops.make_buffer(max_rows, hidden)) {
  last_.reserve(max_rows);
}

void LastStates::observe(const ObservedStep& step) {
  ++step_;
  observed_.clear();
  picks_.clear();
  for (const Observed& observed : step.sequences) {
    if (!observed.rows.empty() && !observed.done) observed_.push_back(&observed);
  }
  if (observed_.empty()) return;
  CHECK(step.states != nullptr);
  std::ranges::sort(observed_, {}, [](const Observed* observed) { return observed->rows.back(); });
  for (const Observed* observed : observed_) {
    const auto row = static_cast<std::uint32_t>(picks_.size());
    if (row == states_->max_rows()) break;
    last_[observed->seq] = {step_, row, observed->first_position + observed->rows.size() + 1};
    picks_.push_back(observed->rows.back());
  }
  mover_.pick(*step.states, picks_, *states_);
}

std::optional<std::uint32_t> LastStates::row_of(const Asked& asked) const {
  const auto found = last_.find(asked.seq);
  if (found == last_.end()) return std::nullopt;
  if (found->second.step != step_ || found->second.num_tokens != asked.tokens.size()) return std::nullopt;
  return found->second.row;
}

}  // namespace quire::speculate
