// The rows of one sequence, by how far they are: computed, in a step in flight, or still to be planned; and of the
// prompt's rows those whose results were taken.
// Shape   rows [0, computed()) have K and V; the next num_in_flight() rows are in steps; next_position() is the first
//         one that is in none. A sampled token that is not known yet is awaited: one for each step in flight that
//         samples.
// Owner   a Sequence.
// Thread  engine.
// Fails   never.
#pragma once

#include <cstdint>

#include "core/base/thread_role.h"

namespace quire::schedule {

class RowProgress {
 public:
  std::uint32_t computed() const { return computed_; }
  // Number of rows in the steps in flight.
  std::uint32_t num_in_flight() const { return num_in_flight_; }
  // Number of tokens that these steps sample: they follow the sequence's tokens and are not known yet.
  std::uint32_t num_awaited() const { return num_awaited_; }
  std::uint32_t next_position() const { return computed_ + num_in_flight_; }  // position of the next row to plan
  // Number of first rows of the prompt that are scored, or pooled.
  std::uint32_t num_scored() const { return num_scored_; }

  // A submitted step runs the next `rows` rows; with `samples` the last of them samples a token.
  void launch(std::uint32_t rows, bool samples) REQUIRES(engine_role) {
    num_in_flight_ += rows;
    num_awaited_ += samples ? 1 : 0;
  }
  // The oldest of the steps in flight is collected; the results are committed next. Same arguments as launch() had.
  void land(std::uint32_t rows, bool samples) REQUIRES(engine_role) {
    num_in_flight_ -= rows;
    num_awaited_ -= samples ? 1 : 0;
  }
  // The results of all steps in flight are lost (device failure).
  void land_all() REQUIRES(engine_role) { num_in_flight_ = num_awaited_ = 0; }
  // K and V of `rows` more tokens are stored.
  void commit(std::uint32_t rows) REQUIRES(engine_role) { computed_ += rows; }
  // The scores of `rows` more rows are emitted, or their hidden states are pooled: they are not wanted again.
  void commit_scored(std::uint32_t rows) REQUIRES(engine_role) { num_scored_ += rows; }
  // The K and V of all rows but the first `num_rows` are lost. Their results stay taken.
  void rewind(std::uint32_t num_rows) REQUIRES(engine_role) { computed_ = num_rows; }

 private:
  std::uint32_t computed_ = 0;
  std::uint32_t num_in_flight_ = 0;
  std::uint32_t num_awaited_ = 0;
  std::uint32_t num_scored_ = 0;
};

}  // namespace quire::schedule
