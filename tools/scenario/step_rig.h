// A rig with a dry runner and a clock that a step moves: what scenarios that count steps run on.
// Owner   the scenario.
// Thread  engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/scenario/dry_runner.h"
#include "tools/scenario/mix.h"
#include "tools/scenario/rig.h"

namespace quire::tools {

struct StepRigOptions {
  std::uint32_t num_blocks = 0;
  std::uint32_t block_tokens = 16;
  bool prefix_caching = false;
  schedule::SchedulerOptions scheduler{};
};

// What a step looked like while it ran.
struct StepState {
  std::uint64_t step = 0;
  std::uint32_t held_blocks = 0;
  std::uint64_t stored_tokens = 0;  // as DryRunner's: without preemptions
  std::uint32_t running = 0;
  std::size_t done = 0;  // jobs that have ended, this step's included
};

// What became of a job, in steps.
struct StepOutcome {
  std::uint64_t arrival_step = 0;
  std::uint64_t first_step = 0;  // in which it ran first
  std::uint64_t finished_step = 0;
  std::uint64_t num_rows = 0;
  std::uint64_t num_recomputed = 0;
  std::uint32_t num_tokens = 0;
  std::uint32_t cached_tokens = 0;

  std::uint64_t waited_steps() const { return first_step - arrival_step; }
  std::uint64_t finish_steps() const { return finished_step - arrival_step + 1; }  // a step takes one
};

class StepRig {
 public:
  static constexpr std::uint32_t kVocab = 32768;

  explicit StepRig(const StepRigOptions& options);

  // Every job says all its tokens; one that does not is our bug (CHECK).
  std::vector<StepOutcome> run(std::span<const Job> jobs, const std::function<void(const StepState&)>& after_step = {})
      REQUIRES(engine_role);

  std::uint64_t num_steps() const { return num_steps_; }
  std::uint64_t num_preemptions() { return rig_.metrics().preemptions.value(); }

 private:
  FakeClock clock_;
  kv::BlockPool pool_;
  DryRunner runner_;
  Rig rig_;
  std::uint64_t num_steps_ = 0;
};

}  // namespace quire::tools
