// The engine's metrics, request timelines and load estimate: what happens in a step is counted here.
// Owner   the engine; borrows metrics and load estimate.
// Thread  engine.
#pragma once

#include <cstdint>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/bridge/load_estimate.h"
#include "core/engine/live.h"
#include "core/kv/block_pool.h"
#include "core/observe/metrics.h"
#include "core/schedule/scheduler.h"

namespace quire::engine {

class StepReporter {
 public:
  StepReporter(observe::Metrics& metrics, bridge::LoadEstimate& load_estimate)
      : metrics_(metrics), load_estimate_(load_estimate) {}

  // ---- steps
  void note_submitted(const flow::StepPlan& plan) REQUIRES(engine_role);
  void note_step(const flow::StepPlan& plan, Duration step_time) REQUIRES(engine_role);
  // All tokens of the step are counted: the mean time between tokens of one sequence enters the load estimate.
  void end_commit() REQUIRES(engine_role);
  // Gauges, and counters that scheduler and pool count themselves.
  void publish(const schedule::Scheduler& scheduler, const kv::BlockPool& pool, std::uint32_t num_pinned)
      REQUIRES(engine_role);

  // ---- a sequence
  // It runs for the first time; live.first_run is set.
  void note_start(Live& live) REQUIRES(engine_role);
  // Counts its prompt, once all of it is computed.
  void note_prompt(Live& live) REQUIRES(engine_role);
  void note_token(Live& live, TimePoint now) REQUIRES(engine_role);
  void note_jumped_token() REQUIRES(engine_role) { metrics_.jumped_tokens.add(); }
  // A row of the request was not finite.
  void note_corrupted() REQUIRES(engine_role) { metrics_.corrupted_requests.add(); }
  // Its client has left; steps: that were committed since then.
  void note_disconnect(std::uint64_t steps) REQUIRES(engine_role);
  void note_disconnects_freed(Duration duration) REQUIRES(engine_role);

  // ---- ends
  // The end of a sequence with a stream; running: sequences that run, this one included.
  void note_end(const Live& live, flow::Finish finish, TimePoint now, std::uint32_t running) REQUIRES(engine_role);
  // The end of one stream alone: counted by its reason, and in its timeline.
  void note_stream_end(const bridge::TokenStream& stream, flow::Finish finish, TimePoint now) REQUIRES(engine_role);
  // A beam search has emitted a whole answer.
  void note_search_answer(const Search& search, std::size_t num_tokens, TimePoint now) REQUIRES(engine_role);

 private:
  void count_slos(const Live& live, flow::Finish finish, TimePoint now) REQUIRES(engine_role);
  void note_load(const Live& live, flow::Finish finish, TimePoint now, std::uint32_t running) REQUIRES(engine_role);
  void count_request(const Live& live, TimePoint now) REQUIRES(engine_role);

  observe::Metrics& metrics_;
  bridge::LoadEstimate& load_estimate_;
  double gap_seconds_ = 0.0;  // between tokens of one sequence, all that the step has emitted
  std::uint32_t num_gaps_ = 0;
};

}  // namespace quire::engine
