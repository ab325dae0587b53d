// The engine: takes admitted requests, runs them step by step on a Runner, and tells each stream its tokens.
// CONTRACT.md in this directory says owner, thread and invariants of every noun here.
// Owner   app. Borrows everything in EngineParts; all of it outlives the engine.
// Thread  engine; abandon() and step() alike.
// Fails   a fault contained to one request ends that request; anything else is our bug (CHECK) or the device's
// (exception).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/engine_status.h"
#include "core/flow/step_choice.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/model/runner.h"
#include "core/observe/metrics.h"
#include "core/schedule/scheduler.h"

namespace quire::engine {

struct EngineOptions {
  schedule::SchedulerOptions scheduler;
  std::uint32_t vocab = 0;          // logits width: a prompt id at or above it is refused
  std::uint32_t max_model_len = 0;  // prompt + max_tokens never exceed it
  bool prefix_caching = true;
  bool check_blocks = false;   // the pool's invariants, every step (debug builds always)
  bool poison_blocks = false;  // blocks nobody holds or keeps are filled with NaN
  bool log_blocks = false;     // a line for every sequence that ends: its tokens and blocks
  kv::PrefixIndexOptions prefix_index{};
  Duration stall_timeout = std::chrono::seconds(30);  // a client that reads nothing for so long is dropped
  // Prompts are cut so that a step is expected to take no longer than this, from the measured time of a row: while streams
  // run, and else (a step is also how long a cancel may wait, and what liveness is judged by). Zero: only the budget cuts.
  Duration max_step_time = std::chrono::milliseconds(100);
  Duration max_prompt_step_time = std::chrono::seconds(1);
};

struct EngineParts {
  model::Runner& runner;
  kv::BlockPool& pool;
  bridge::AdmissionQueue& admission;
  bridge::Doorbell& doorbell;
  bridge::EngineStatus& status;
  observe::Metrics& metrics;
  const Clock& clock;
};

class Engine {
 public:
  Engine(const EngineOptions& options, const EngineParts& parts);
  ~Engine();

  // One turn. Sleeps on the doorbell when there is nothing to do.
  void step() REQUIRES(engine_role);
  // Ends every sequence with kFailed: the engine stops.
  void abandon() REQUIRES(engine_role);

  bool idle() const { return live_.empty(); }
  std::uint32_t num_live() const { return static_cast<std::uint32_t>(live_.size()); }

 private:
  // A sequence and who waits for it.
  struct Live {
    Live(SeqId id, bridge::Submission&& submission, kv::BlockPool& pool);
    schedule::Sequence sequence;
    std::shared_ptr<bridge::TokenStream> stream;
    bridge::Credit credit;  // of the waiting line, until the first run
    TimePoint first_run{};
    TimePoint first_token{};
    TimePoint last_token{};
    TimePoint parked_since{};
    flow::TokenEvent event;  // of the step being committed
    bool has_event = false;
  };

  // step.cc
  void admit_new() REQUIRES(engine_role);
  void drop_cancelled() REQUIRES(engine_role);
  void submit(const flow::StepPlan& plan) REQUIRES(engine_role);
  void rest() REQUIRES(engine_role);
  schedule::PromptRows prompt_rows() const;
  // commit.cc
  void commit(std::span<const flow::StepChoice> choices) REQUIRES(engine_role);
  void learn_row_time(Duration step_time) REQUIRES(engine_role);
  void commit_choice(Live& live, const flow::StepChoice& choice) REQUIRES(engine_role);
  // deliver.cc
  void deliver() REQUIRES(engine_role);
  void finish(Live& live, flow::Finish finish) REQUIRES(engine_role);
  void flush_streams() REQUIRES(engine_role);
  void publish_gauges() REQUIRES(engine_role);

  Live& live_of(SeqId id) { return *live_.at(id); }

  const EngineOptions options_;
  model::Runner& runner_;
  kv::BlockPool& pool_;
  bridge::AdmissionQueue& admission_;
  bridge::Doorbell& doorbell_;
  bridge::EngineStatus& status_;
  observe::Metrics& metrics_;
  const Clock& clock_;
  kv::PrefixIndex index_;
  schedule::Scheduler scheduler_;

  std::unordered_map<SeqId, std::unique_ptr<Live>> live_;
  std::vector<Live*> touched_;            // sequences with rows in the step being committed
  std::vector<bridge::StreamHub*> hubs_;  // whose streams got news since the last flush
  std::vector<SeqId> dropped_;            // scratch of drop_cancelled()
  std::uint64_t next_seq_ = 1;
  std::uint64_t preemptions_seen_ = 0;
  TimePoint now_{};  // read once a turn
  TimePoint submitted_at_{};
  double row_seconds_ = 0.0;  // of steps with many rows, learned while serving; 0: not known yet
};

}  // namespace quire::engine
