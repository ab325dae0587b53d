// A Rig with a DryRunner and a clock that advances by step, for scenarios that count steps.
// Owner   the scenario.
// Thread  engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/common/mix.h"
#include "tools/scenario/dry_runner.h"
#include "tools/scenario/rig.h"

namespace quire::tools {

struct StepRigOptions {
  std::uint32_t num_blocks = 0;
  std::uint32_t block_tokens = 16;
  bool prefix_caching = false;
  schedule::SchedulerOptions scheduler{};
};

// State of a step while it ran.
struct StepState {
  std::uint64_t step = 0;
  std::uint32_t held_blocks = 0;
  std::uint64_t stored_tokens = 0;  // see DryRunner::stored_tokens(): only without preemptions
  std::uint32_t running = 0;
  std::size_t done = 0;  // jobs that have ended, in this step or before
};

// Result of a job, in steps.
struct StepOutcome {
  std::uint64_t arrival_step = 0;
  std::uint64_t first_step = 0;  // step of its first rows
  std::uint64_t finished_step = 0;
  std::uint64_t num_rows = 0;
  std::uint64_t num_recomputed = 0;
  std::uint32_t num_tokens = 0;
  std::uint32_t cached_tokens = 0;

  std::uint64_t waited_steps() const { return first_step - arrival_step; }
  std::uint64_t finish_steps() const { return finished_step - arrival_step + 1; }  // the last step counts
};

class StepRig {
 public:
  static constexpr std::uint32_t kVocab = 32768;

  explicit StepRig(const StepRigOptions& options);

  // Every job must sample max_tokens tokens; fewer are our bug (CHECK).
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
