// The model that a scenario takes the time of, and engines on it.
// Owner   the scenario. A TimedModel outlives its engines.
// Thread  engine.
// Fails   StartError: a model that is too short, or whatever loading refuses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/model/decoder_runner.h"
#include "tools/random_model.h"
#include "tools/scenario/mix.h"
#include "tools/scenario/rig.h"
#include "tools/scenario/scenario.h"

namespace quire::tools {

using app::LoadedModel;

struct TimedModel {
  std::unique_ptr<RandomModel> random;  // holds the bytes of its weights
  LoadedModel loaded;
  std::uint32_t block_tokens = 0;

  std::uint32_t vocab() const { return loaded.config.vocab; }
};

// The model asked for. Where that is the one inside the binary and it is too short, random weights in a larger model's
// shape: what they say makes no sense, how long it takes is the same.
TimedModel timed_model(const ScenarioSetup& setup, std::uint32_t min_length);

struct TimedOptions {
  std::uint32_t max_num_seqs = 1;
  std::uint32_t max_num_batched_tokens = 512;
  std::uint32_t length = 0;  // of the longest sequence
  bool prefix_caching = false;
};

// A fresh engine with a cold cache; room for all that may run at once.
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
