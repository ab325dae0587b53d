// Who guesses, made of what --speculative-config says, with the models and heads it needs.
//   before the target's runner: its captures and the blocks behind the pool's · after it: the drafter
// Owner   Instance. The target's ops and decoder outlive it; it and the cache given to complete() outlive the drafter.
// Thread  one, while starting; then the drafter and depth() are the engine's.
// Fails   StartError: whatever a model, head or file lacks, before anything is served.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/loaded_model.h"
#include "app/memory_plan.h"
#include "core/model/decoder.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"
#include "core/speculate/heads/head_rows.h"
#include "core/speculate/models/model_drafter.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

class Drafting {
 public:
  // `numeric_mode`: what a step costs is kept beside the packed weights for this one, on this machine.
  Drafting(const speculate::SpeculativeConfig& speculation, const Config& config, const LoadedModel& target,
           const MemoryPlan& plan, const std::string& numeric_mode);

  // For the target's runner.
  model::Captures captures() const;
  std::uint32_t num_scratch_blocks() const { return num_scratch_blocks_; }
  // Of drafts, in a step, besides a row for every sequence.
  std::uint32_t num_logit_rows() const;
  // The target's cache is there: who drafts with the target itself is made. Null: nobody guesses. Once.
  std::unique_ptr<speculate::Drafter> complete(backend::KvCache& cache);

  speculate::DepthControl* depth() { return depth_.get(); }
  // What steps cost, for the next start. Where weights are not kept packed, and nobody guesses, nothing is. While the engine rests
  // for good.
  void keep_costs() const;
  // Those that came out of files, each by itself: what can be of another model, or read wrongly. As long as the drafter.
  std::span<speculate::Drafter* const> loaded() const { return loaded_; }

 private:
  speculate::StepCosts first_costs(const speculate::StepPrior& prior) const;
  struct DraftModel {
    std::unique_ptr<model::ModelFiles> files;
    std::unique_ptr<model::Decoder> decoder;
  };

  std::unique_ptr<speculate::Drafter> make_guesser(speculate::Method method);
  std::unique_ptr<speculate::Drafter> make_model_drafter(const std::string& path);
  std::unique_ptr<speculate::Drafter> make_head();
  std::unique_ptr<speculate::Drafter> make_medusa();
  std::unique_ptr<speculate::Drafter> make_hydra();

  const speculate::SpeculativeConfig speculation_;
  const Config config_;
  const LoadedModel& target_;
  speculate::ModelDraftLimits limits_;
  speculate::RunnerLimits head_limits_;
  std::uint32_t max_model_len_ = 0;
  std::string costs_file_{};  // empty: costs are not kept
  std::string costs_key_{};
  std::uint32_t num_scratch_blocks_ = 0;
  std::vector<DraftModel> models_;
  std::unique_ptr<speculate::Drafter> drafter_;  // until complete()
  std::vector<speculate::Drafter*> loaded_;      // in drafter_, and then wherever that is
  std::unique_ptr<speculate::DepthControl> depth_;
};

}  // namespace quire::app
