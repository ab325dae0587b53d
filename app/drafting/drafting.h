// The drafter of --speculative-config, with the models and heads that it needs.
//   before the target's runner exists: its captures, and the scratch blocks after the pool's · after it: the drafter
// Owner   Instance. The target's ops and decoder outlive this object; it, and the cache given to complete(), outlive
//         the drafter.
// Thread  one, while starting; afterwards the drafter and depth() belong to the engine thread.
// Fails   StartError for anything that a model, head or file lacks, before anything is served.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/model/loaded_model.h"
#include "app/model/memory_plan.h"
#include "core/model/decoder.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"
#include "core/speculate/heads/head_rows.h"
#include "core/speculate/models/model_drafter.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

class Drafting {
 public:
  // `numeric_mode`: measured step costs are stored beside the packed weights for this mode and this machine.
  Drafting(const speculate::SpeculativeConfig& speculation, const Config& config, const LoadedModel& target,
           const MemoryPlan& plan, const std::string& numeric_mode);

  // For the target's runner.
  model::Captures captures() const;
  std::uint32_t num_scratch_blocks() const { return num_scratch_blocks_; }
  // Logits rows of a step for drafts, besides one for every sequence.
  std::uint32_t num_logit_rows() const;
  // Makes the drafter, now that the target's cache exists: some methods draft with it. Null: no drafting. Call once.
  std::unique_ptr<speculate::Drafter> complete(backend::KvCache& cache);

  speculate::DepthControl* depth() { return depth_.get(); }
  // Stores the measured step costs for the next start, if there is a drafter and packed weights are cached. To be
  // called after the engine has stopped.
  void keep_costs() const;
  // The drafters with weights from files, one by one: those may belong to another model or be read wrongly. Valid as
  // long as the drafter.
  std::span<speculate::Drafter* const> loaded() const { return loaded_; }

 private:
  speculate::StepCosts first_costs(const speculate::StepPrior& prior) const;
  struct DraftModel {
    std::unique_ptr<model::ModelFiles> files;
    std::unique_ptr<model::Decoder> decoder;
  };

  std::unique_ptr<speculate::Drafter> make_drafter(speculate::Method method);
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
  std::string costs_file_{};  // empty: costs are not stored
  std::string costs_key_{};
  std::uint32_t num_scratch_blocks_ = 0;
  std::vector<DraftModel> models_;
  std::unique_ptr<speculate::Drafter> drafter_;  // until complete()
  std::vector<speculate::Drafter*> loaded_;      // part of drafter_, and after complete() of the drafter returned
  std::unique_ptr<speculate::DepthControl> depth_;
};

}  // namespace quire::app
