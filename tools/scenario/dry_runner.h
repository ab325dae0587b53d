// A runner without a model: accepts every plan, computes nothing, returns a token at once, and counts the work that the
// scheduler gave it. Scenarios count steps, blocks and rows with it quickly, with the same results on every machine.
// Owner   the scenario. Borrows the pool to read its counts.
// Thread  engine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/kv/block_pool.h"
#include "core/model/run/runner.h"

namespace quire::tools {

class DryRunner final : public model::Runner {
 public:
  // Counts of one sequence.
  struct Seen {
    std::uint64_t first_step = 0;  // step of its first rows
    std::uint64_t num_rows = 0;
    std::uint64_t num_recomputed = 0;  // rows of positions that had run before
    std::uint32_t stored = 0;          // tokens with K and V after its last step
    std::uint32_t furthest = 0;        // maximum of `stored` so far
  };

  DryRunner(const kv::BlockPool& pool, std::uint32_t vocab) : pool_(pool), vocab_(vocab) {}

  void submit(const flow::StepPlan& plan) override REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() override REQUIRES(engine_role);
  bool idle() const override { return !in_flight_; }
  bool full() const override { return in_flight_; }

  // ---- for the scenario
  void begin_step(std::uint64_t step) {
    step_ = step;
    held_blocks_ = pool_.num_held();
  }
  // To be called when a sequence has ended: its tokens no longer count as stored.
  void forget(SeqId seq);
  const Seen& seen(SeqId seq) const { return seen_.at(seq); }
  // Blocks held during the last step, before the sequences that ended in it released theirs.
  std::uint32_t held_blocks() const { return held_blocks_; }
  // Tokens with K and V in the blocks of all sequences not forgotten. Wrong after the first preemption.
  std::uint64_t stored_tokens() const { return stored_tokens_; }

 private:
  const kv::BlockPool& pool_;
  const std::uint32_t vocab_;
  std::uint64_t step_ = 0;
  std::uint32_t held_blocks_ = 0;
  std::uint64_t stored_tokens_ = 0;
  std::map<SeqId, Seen> seen_;
  std::vector<flow::StepChoice> choices_;
  bool in_flight_ = false;
};

}  // namespace quire::tools
