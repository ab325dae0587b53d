// The beam searches of the engine, from the first hypothesis to the last event of their streams.
// Owner   the engine; borrows live sequences, scheduler, reporter and stream flush.
// Thread  engine.
// Source  Beam (beam.h).
#pragma once

#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/thread_role.h"
#include "core/engine/beam/search.h"
#include "core/engine/live_sequences.h"
#include "core/engine/step_reporter.h"
#include "core/engine/stream_flush.h"
#include "core/flow/step_choice.h"

namespace quire::engine {

class Searches {
 public:
  // stall_timeout: an answer that no client reads for so long is cancelled.
  Searches(LiveSequences& live, StepReporter& reporter, StreamFlush& flush, Duration stall_timeout)
      : live_(live), reporter_(reporter), flush_(flush), stall_timeout_(stall_timeout) {}

  bool empty() const { return searches_.empty(); }
  // The search begins with one hypothesis, `first`, which has its prompt.
  void begin(Live& first, std::unique_ptr<Search> search) REQUIRES(engine_role);
  // The candidates of one hypothesis in this round; it is paused until all have theirs.
  void take_offer(Live& live, const flow::StepChoice& choice, TimePoint now) REQUIRES(engine_role);
  // Once before a step and once after it: ends what failed, is late or unwanted; begins the next round of searches
  // whose hypotheses have all been sampled; emits the answers of those that are over.
  void advance(TimePoint now) REQUIRES(engine_role);
  void end_all(flow::Finish finish, TimePoint now) REQUIRES(engine_role);
  // The time at which a deadline passes or a stalled answer is cancelled; TimePoint::max(): none.
  TimePoint next_due() const;

 private:
  void begin_round(Search& search, TimePoint now) REQUIRES(engine_role);
  void emit_best(Search& search, TimePoint now) REQUIRES(engine_role);
  void end(Search& search, flow::Finish finish, TimePoint now) REQUIRES(engine_role);

  LiveSequences& live_;
  StepReporter& reporter_;
  StreamFlush& flush_;
  const Duration stall_timeout_;
  std::vector<std::unique_ptr<Search>> searches_;
};

}  // namespace quire::engine
