// A running model: KV cache sized, runner made, engine thread turning. What serve and generate share.
//   files → config → tokenizer, defaults, pinned prefixes → KV plan → ops → decoder → runner → engine thread:
//   what is cheap to refuse first. On a device with memory of its own the plan is made again behind the decoder, of what a step
//   leaves.
// Owner   the command. Streams and servers are gone before it is.
// Thread  the constructor and start(), stop(): main. What queue(), doorbell(), status(), control() and metrics() give:
//         as its card says.
// Fails   StartError from the constructor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/drafting.h"
#include "app/loaded_model.h"
#include "app/memory_plan.h"
#include "app/pinned_prefixes.h"
#include "core/base/clock.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/cache_feed.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/engine/engine.h"
#include "core/engine/engine_thread.h"
#include "core/kv/block_pool.h"
#include "core/model/decoder_runner.h"
#include "core/observe/metrics.h"
#include "core/speculate/speculative_config.h"
#include "core/text/tokenizer.h"

namespace quire::app {

class Instance {
 public:
  explicit Instance(const Config& config);
  // Of these files, whatever `config` calls the model.
  Instance(const Config& config, ModelSource source);

  // What becomes of the prefix cache, for a publisher to take; at most `max_batches` wait for it. Before start().
  bridge::CacheFeed& feed_cache(std::size_t max_batches);
  // Tests what was loaded to guess, computes the pinned prefixes, then lets the engine turn. `on_failure` runs on the engine thread, once, when the
  // device fails.
  void start(std::function<void()> on_failure);
  // Ends what still runs, joins, and keeps what steps were found to cost for the next start.
  void stop();

  bridge::AdmissionQueue& queue() { return queue_; }
  bridge::Doorbell& doorbell() { return doorbell_; }
  bridge::EngineStatus& status() { return status_; }
  bridge::ControlQueue& control() { return control_; }
  observe::Metrics& metrics() { return metrics_; }

  const model::Config& model() const { return loaded_.config; }
  std::uint32_t max_model_len() const { return plan_.max_model_len; }
  // What the API calls the model; the first name is its own.
  const std::vector<std::string>& names() const { return names_; }
  std::shared_ptr<const text::Tokenizer> tokenizer() const { return tokenizer_; }
  const std::vector<TokenId>& eos() const { return generation_.eos; }
  // From generation_config.json, or plain sampling.
  const sample::Params& defaults() const { return defaults_; }
  float repetition_penalty() const { return takes_defaults_ ? generation_.repetition_penalty.value_or(1.0f) : 1.0f; }
  std::optional<std::uint32_t> max_new_tokens() const {
    return takes_defaults_ ? generation_.max_new_tokens : std::nullopt;
  }
  std::string defaults_text() const;  // "temperature 0.6, top_p 0.9": of generation_config.json; empty: none
  const std::string& numeric_mode() const { return numeric_mode_; }
  const speculate::SpeculativeConfig& speculation() const { return speculation_; }
  // Model, numeric mode and KV cache, a line each, and one of speculation where there is some; then what was lowered.
  std::vector<std::string> description() const;

 private:
  Instance(const Config& config, ReadModel read);
  LoadedModel pack(const Config& config, ReadModel read);
  engine::EngineOptions options_of_engine(const Config& config) const;
  engine::EngineParts parts_of_engine();
  void test_drafters() REQUIRES(engine_role);
  void compute_pinned() REQUIRES(engine_role);

  std::vector<std::string> names_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  model::GenerationDefaults generation_;
  sample::Params defaults_;
  bool takes_defaults_;
  speculate::SpeculativeConfig speculation_;
  MemoryRequest request_;
  std::vector<PinnedPrefix> pinned_;
  MemoryPlan plan_;  // on a device with memory of its own settled by pack()
  LoadedModel loaded_;
  std::string numeric_mode_;
  Drafting drafting_;
  SteadyClock clock_;
  bridge::Doorbell doorbell_;
  bridge::EngineStatus status_;
  bridge::ControlQueue control_{doorbell_};
  bridge::AdmissionQueue queue_;
  observe::Metrics metrics_;
  model::DecoderRunner runner_;
  std::unique_ptr<speculate::Drafter> drafter_;  // over the runner's cache, it may be: gone before that
  kv::BlockPool pool_;
  std::unique_ptr<bridge::CacheFeed> cache_feed_;  // null: nobody follows the prefix cache
  engine::Engine engine_;
  std::unique_ptr<engine::EngineThread> thread_;
};

}  // namespace quire::app
