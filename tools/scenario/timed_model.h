// The model whose time a scenario measures, and engines that run it.
// Owner   the scenario. A TimedModel outlives its engines.
// Thread  engine.
// Fails   StartError: a model that is too short, or a failure to load it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/model/loaded_model.h"
#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/model/run/decoder_runner.h"
#include "tools/common/mix.h"
#include "tools/common/random_model.h"
#include "tools/scenario/rig.h"
#include "tools/scenario/scenario.h"

namespace quire::tools {

using app::LoadedModel;

struct TimedModel {
  std::unique_ptr<RandomModel> random;  // owns the bytes of its weights
  LoadedModel loaded;
  std::uint32_t block_tokens = 0;

  std::uint32_t vocab() const { return loaded.config.vocab; }
};

// The configured model. If that is the embedded one and it is too short, random weights in a larger model's shape: the
// output is meaningless, the time is the same.
TimedModel timed_model(const ScenarioSetup& setup, std::uint32_t min_length);

struct TimedOptions {
  std::uint32_t max_num_seqs = 1;
  std::uint32_t max_num_batched_tokens = 512;
  std::uint32_t length = 0;  // of the longest sequence
  bool prefix_caching = false;
};

// A new engine with a cold cache and room for max_num_seqs sequences of full length.
class TimedEngine {
 public:
  TimedEngine(TimedModel& model, const TimedOptions& options);

  std::vector<Outcome> run(std::span<const Job> jobs) REQUIRES(engine_role) { return rig_.run(jobs); }

 private:
  SteadyClock clock_;
  model::DecoderRunner runner_;
  kv::BlockPool pool_;
  Rig rig_;
};

}  // namespace quire::tools
