// A runner without a model: takes every plan, computes nothing, says a token at once, and keeps count of what the
// scheduler made it do. So a scenario counts steps, blocks and rows in no time, and the same ones on every machine.
// Owner   the scenario. Borrows the pool to look at.
// Thread  engine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/kv/block_pool.h"
#include "core/model/runner.h"

namespace quire::tools {

class DryRunner final : public model::Runner {
 public:
  // What was seen of one sequence.
  struct Seen {
    std::uint64_t first_step = 0;  // in which it ran first
    std::uint64_t num_rows = 0;
    std::uint64_t num_recomputed = 0;  // rows of positions that had been run before
    std::uint32_t stored = 0;          // tokens whose K and V it has after its last step
    std::uint32_t furthest = 0;        // the most it ever had
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
  // It has ended: its tokens are stored no more.
  void forget(SeqId seq);
  const Seen& seen(SeqId seq) const { return seen_.at(seq); }
  // Blocks held while the last step ran, before those that ended in it gave theirs back.
  std::uint32_t held_blocks() const { return held_blocks_; }
  // Tokens whose K and V the blocks hold, of all sequences not forgotten. Says nothing once one was preempted.
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
