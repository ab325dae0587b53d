// A running model: KV cache planned, runner made, engine thread running. serve and generate share it.
//   files → config → tokenizer, defaults, pinned prefixes → KV plan → ops → decoder → runner → engine thread:
//   problems that are cheap to find come first. On a device with its own memory, the plan is made again after the
//   decoder, from the memory that a full step leaves.
// Owner   the command. Streams and servers are destroyed before it.
// Thread  the constructor, start() and stop(): main. The objects returned by queue(), doorbell(), status(), control()
//         and metrics(): as their cards say.
// Fails   StartError from the constructor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/services/model_names.h"
#include "app/config/config.h"
#include "app/drafting/drafting.h"
#include "app/instance/pinned_prefixes.h"
#include "app/model/loaded_model.h"
#include "app/model/memory_plan.h"
#include "core/base/clock.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/cache_feed.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/engine/engine.h"
#include "core/engine/engine_thread.h"
#include "core/kv/block_pool.h"
#include "core/model/run/decoder_runner.h"
#include "core/observe/metrics.h"
#include "core/speculate/speculative_config.h"
#include "core/text/tokenizer.h"

namespace quire::app {

class Instance {
 public:
  // on_packing: pack_model().
  explicit Instance(const Config& config, const OnPacking& on_packing = nullptr);
  // Uses these files instead of config.model.
  Instance(const Config& config, ModelSource source);

  // Starts recording prefix-cache changes for a publisher; at most `max_batches` wait in the feed. Before start().
  bridge::CacheFeed& feed_cache(std::size_t max_batches);
  // Runs the drafters' self-test, computes the pinned prefixes, then starts the engine thread. `on_failure` runs on
  // that thread, once, if the device fails.
  void start(std::function<void()> on_failure);
  // Ends running sequences, joins the thread, and stores measured step costs for the next start.
  void stop();

  bridge::AdmissionQueue& queue() { return queue_; }
  bridge::Doorbell& doorbell() { return doorbell_; }
  bridge::EngineStatus& status() { return status_; }
  bridge::ControlQueue& control() { return control_; }
  observe::Metrics& metrics() { return metrics_; }

  const model::ModelSpec& model() const { return loaded_.config; }
  std::uint32_t max_model_len() const { return plan_.max_model_len; }
  // Names of the model in the API.
  const api::ModelNames& names() const { return names_; }
  std::shared_ptr<const text::Tokenizer> tokenizer() const { return tokenizer_; }
  const std::vector<TokenId>& eos() const { return generation_.eos; }
  // Sampling defaults from generation_config.json, or plain sampling.
  const sample::Params& defaults() const { return defaults_; }
  float repetition_penalty() const { return takes_defaults_ ? generation_.repetition_penalty.value_or(1.0f) : 1.0f; }
  std::optional<std::uint32_t> max_new_tokens() const {
    return takes_defaults_ ? generation_.max_new_tokens : std::nullopt;
  }
  std::string defaults_text() const;  // "temperature 0.6, top_p 0.9", from generation_config.json; empty: none
  const std::string& numeric_mode() const { return numeric_mode_; }
  const speculate::SpeculativeConfig& speculation() const { return speculation_; }
  // Lines for the operator: model, weights, numeric mode, KV cache, speculation and memory if any, and what was
  // lowered.
  std::vector<std::string> description() const;

 private:
  Instance(const Config& config, ReadModel read, const OnPacking& on_packing);
  LoadedModel pack(const Config& config, ReadModel read, const OnPacking& on_packing);
  engine::EngineOptions options_of_engine(const Config& config) const;
  engine::EngineParts parts_of_engine();
  void test_drafters() REQUIRES(engine_role);
  void compute_pinned() REQUIRES(engine_role);

  api::ModelNames names_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  model::GenerationDefaults generation_;
  sample::Params defaults_;
  bool takes_defaults_;
  speculate::SpeculativeConfig speculation_;
  MemoryRequest request_;
  std::vector<PinnedPrefix> pinned_;
  // Made again by pack() on a device with its own memory.
  MemoryPlan plan_;
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
  std::unique_ptr<speculate::Drafter> drafter_;  // may use the runner's cache: destroyed before the runner
  kv::BlockPool pool_;
  std::unique_ptr<bridge::CacheFeed> cache_feed_;  // null: no publisher
  engine::Engine engine_;
  std::unique_ptr<engine::EngineThread> thread_;
};

}  // namespace quire::app
