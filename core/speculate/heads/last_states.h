// The target's hidden state at each sequence's last row, for heads that read nothing else.
// Shape   states [S,E] in the order of their rows in the step; at most S of them.
// Owner   the drafter. Ops and mover outlive it.
// Thread  engine. Allocates only for more sequences than ever before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/backend/ops.h"
#include "core/speculate/drafter.h"
#include "core/speculate/heads/row_mover.h"

namespace quire::speculate {

class LastStates {
 public:
  LastStates(backend::Ops& ops, RowMover& mover, std::uint32_t max_rows, std::uint32_t hidden);

  void observe(const ObservedStep& step);
  // Row in states(); none if the last step did not run the sequence, or if it has more tokens since.
  std::optional<std::uint32_t> row_of(const Asked& asked) const;
  const backend::Buffer& states() const { return *states_; }
  void release(SeqId seq) { last_.erase(seq); }

 private:
  struct Last {
    std::uint64_t step = 0;  // last step that ran it
    std::uint32_t row = 0;
    std::size_t num_tokens = 0;  // after that step
  };

  RowMover& mover_;
  std::unique_ptr<backend::Buffer> states_;
  std::unordered_map<SeqId, Last> last_;
  std::uint64_t step_ = 0;
  std::vector<const Observed*> observed_;
  std::vector<std::uint32_t> picks_;
};

}  // namespace quire::speculate
