// The engine: takes admitted requests, runs them step by step on a Runner, and pushes each stream its tokens.
// CONTRACT.md in this directory, and the header cards it names, state owner, thread and invariants of every noun here.
//   step(): admit → drop → orders → drafts → plan → submit → collect → commit → deliver
// Owner   app. The engine borrows everything in EngineParts; all of it outlives the engine.
// Thread  engine; abandon() and step() alike.
// Fails   a fault of one request ends that request; anything else is a bug (CHECK) or the device's (exception).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/cache_feed.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/engine_status.h"
#include "core/engine/cache/cache_reporter.h"
#include "core/engine/cache/cache_task.h"
#include "core/engine/drafting.h"
#include "core/engine/live.h"
#include "core/engine/live_sequences.h"
#include "core/engine/request_check.h"
#include "core/engine/searches.h"
#include "core/engine/step_reporter.h"
#include "core/engine/stream_flush.h"
#include "core/flow/step_choice.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/model/run/runner.h"
#include "core/observe/metrics.h"
#include "core/schedule/scheduler.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"

namespace quire::engine {

struct EngineOptions {
  schedule::SchedulerOptions scheduler;
  std::uint32_t vocab = 0;            // width of the logits: a prompt with an id at or above it is refused
  std::uint32_t max_model_len = 0;    // prompt and max_tokens together
  std::uint32_t max_draft_nodes = 0;  // of a sequence in a step, if there is a drafter
  bool jump_ahead = true;             // tokens that a grammar forces take no step of their own
  bool prefix_caching = true;         // false: blocks are shared among running sequences only
  bool check_blocks = false;          // check the pool's invariants in every step (debug builds always do)
  bool poison_blocks = false;         // fill freed and fresh blocks with NaN
  bool log_blocks = false;            // log a line for every sequence that ends: its tokens and blocks
  kv::PrefixIndexOptions prefix_index{};
  std::string numeric_mode{};                         // a saved cache is loaded only in an equal mode
  Duration stall_timeout = std::chrono::seconds(30);  // a client that reads nothing for so long is dropped
  // Prompts are cut so that a step is expected to take no longer than this, by the measured time of a row: while
  // streams run, and else. (A step is also how long a cancellation may wait, and what liveness is judged by.) Zero: no
  // cut but by max_num_batched_tokens.
  Duration max_step_time = std::chrono::milliseconds(100);
  Duration max_prompt_step_time = std::chrono::seconds(1);
  Duration min_step_time{};  // minimum duration of a step: the speed of a larger model, for load tests
};

struct EngineParts {
  model::Runner& runner;
  kv::BlockPool& pool;
  bridge::AdmissionQueue& admission;
  bridge::ControlQueue& control;
  bridge::Doorbell& doorbell;
  bridge::EngineStatus& status;
  observe::Metrics& metrics;
  const Clock& clock;
  speculate::Drafter* drafter = nullptr;     // null: no drafts
  speculate::DepthControl* depth = nullptr;  // null: every draft is as large as it may be
};

class Engine {
 public:
  Engine(const EngineOptions& options, const EngineParts& parts);
  ~Engine();

  // Computes the K and V of these tokens, which stay in the prefix cache for good. Before the first step(). Beside
  // pinned blocks the pool must hold a sequence of maximum length. Throws StartError if the model gives no finite
  // result.
  void pin_prefix(std::vector<TokenId> tokens, CacheNamespace cache_namespace) REQUIRES(engine_role);

  // From now on `feed` gets every change of the prefix cache, beginning with its present content. Before the first
  // step(); `feed` outlives the last one.
  void report_cache(bridge::CacheFeed& feed) REQUIRES(engine_role);

  // One iteration. Sleeps on the doorbell if there is nothing to do.
  void step() REQUIRES(engine_role);
  // Ends every sequence with kFailed: the engine stops.
  void abandon() REQUIRES(engine_role);

  // Preempts every sequence that has output, as if the pool were empty. Between steps; for tests.
  void preempt_all() REQUIRES(engine_role) {
    scheduler_.preempt_all();
    note_preempted();
  }

  bool idle() const { return live_.empty() && searches_.empty(); }
  std::uint32_t num_live() const { return static_cast<std::uint32_t>(live_.size()); }

  // ---- for tools and tests
  const kv::PrefixIndex& prefix_index() const { return index_; }
  const schedule::Scheduler& scheduler() const { return scheduler_; }
  std::span<const kv::BlockTable> pinned() const { return pinned_; }
  template <typename Visit>
  void for_each_sequence(Visit visit) const {
    for (const auto& [id, live] : live_) visit(live->sequence);
  }

 private:
  // step.cc
  void admit_new() REQUIRES(engine_role);
  void refuse(std::span<const std::shared_ptr<bridge::TokenStream>> streams) REQUIRES(engine_role);
  void drop_unwanted() REQUIRES(engine_role);
  bool may_plan() REQUIRES(engine_role);
  bool plan_step() REQUIRES(engine_role);
  void end_out_of_memory() REQUIRES(engine_role);
  void submit(const flow::StepPlan& plan) REQUIRES(engine_role);
  std::span<const flow::StepChoice> collect() REQUIRES(engine_role);
  void note_preempted() REQUIRES(engine_role);
  void obey_orders() REQUIRES(engine_role);
  void rest() REQUIRES(engine_role);
  schedule::PromptRows prompt_rows() const;
  // commit.cc
  void commit(const Flight& flight, std::span<const flow::StepChoice> choices) REQUIRES(engine_role);
  void commit_sequence(const Flight& flight, std::size_t i, std::span<const flow::StepChoice> choices)
      REQUIRES(engine_role);
  void commit_scores(Live& live, std::span<const flow::StepChoice> scores) REQUIRES(engine_role);
  void commit_pooled(Live& live, std::span<const float> rows) REQUIRES(engine_role);
  void commit_choice(Live& live, const flow::StepChoice& choice) REQUIRES(engine_role);
  void note_output(schedule::Sequence& sequence) REQUIRES(engine_role);
  void fail(Live& live) REQUIRES(engine_role);
  // deliver.cc
  void deliver() REQUIRES(engine_role);
  void finish(Live& live, flow::Finish finish) REQUIRES(engine_role);

  const EngineOptions options_;
  const RequestBounds bounds_;
  model::Runner& runner_;
  kv::BlockPool& pool_;
  bridge::AdmissionQueue& admission_;
  bridge::ControlQueue& control_;
  bridge::Doorbell& doorbell_;
  bridge::EngineStatus& status_;
  observe::Metrics& metrics_;
  const Clock& clock_;
  kv::PrefixIndex index_;
  schedule::Scheduler scheduler_;
  StepReporter reporter_;
  Drafting drafting_;
  LiveSequences live_;
  StreamFlush flush_;
  Searches searches_;
  std::unique_ptr<CacheReporter> cache_reporter_;  // null: nothing subscribes to changes of the prefix cache

  static constexpr std::size_t kMostInFlight = 2;        // plans that the scheduler keeps
  std::vector<Flight> flights_;                          // the oldest first
  std::vector<Live*> touched_;                           // sequences with rows in the step being committed
  std::vector<std::pair<SeqId, flow::Finish>> dropped_;  // scratch of drop_unwanted()
  std::vector<kv::BlockTable> pinned_;
  std::uint32_t num_pinned_ = 0;     // blocks of pinned_
  std::unique_ptr<CacheTask> task_;  // saves, loads or clears the prefix cache for order_
  bridge::ControlOrder order_;
  TimePoint now_{};           // read once an iteration
  TimePoint collected_at_{};  // the last step
  TimePoint began_at_{};      // the step being committed, on the device: after the step before it
};

}  // namespace quire::engine
