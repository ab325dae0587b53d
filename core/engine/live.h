// A sequence of the engine with the stream that its tokens go to, and a step that runs on the device.
// Owner   Live: LiveSequences. Flight: the engine; it borrows the scheduler's plan.
// Thread  engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/timeline.h"
#include "core/bridge/token_stream.h"
#include "core/engine/beam/search.h"
#include "core/flow/step_plan.h"
#include "core/flow/token_event.h"
#include "core/schedule/sequence/sequence.h"

namespace quire::engine {

// An event that is ready to be pushed to the stream.
struct Emitted {
  flow::TokenEvent event;
  std::span<const flow::Candidate> top{};  // borrowed from the runner until the next step
};

struct Live {
  Live(SeqId id, bridge::Submission&& submission, kv::BlockPool& pool)
      : sequence(id, std::move(submission.request), pool),
        stream(std::move(submission.stream)),
        timeline(stream ? stream->timeline() : nullptr),
        credit(std::move(submission.credit)) {}
  // A fork, for another hypothesis of the same beam search.
  Live(SeqId id, const Live& parent, kv::BlockPool& pool) REQUIRES(engine_role)
      : sequence(id, parent.sequence, pool),
        search(parent.search),
        timeline(parent.timeline),
        first_run(parent.first_run),
        first_token(parent.first_token),
        last_token(parent.last_token) {}

  schedule::Sequence sequence;
  std::shared_ptr<bridge::TokenStream> stream;  // null: a hypothesis of `search`, or a sequence that has ended
  Search* search = nullptr;
  std::shared_ptr<bridge::Timeline> timeline;  // of the stream, or of the search's first stream
  bridge::Credit credit;                       // of the admission queue, until the first run

  // Drafting
  bool tracked = true;            // the drafter observes this sequence and may draft for it
  std::uint32_t plain_steps = 0;  // since its last draft
  bool keeps_tracked = false;     // a probe: tracked even while drafts do not pay, to notice when they pay again

  // StepReporter
  TimePoint first_run{};
  std::uint32_t num_cached = 0;  // prompt tokens found in the prefix cache at the first run
  bool prompt_counted = false;
  TimePoint first_token{};
  TimePoint last_token{};

  TimePoint paused_since{};

  // The step being committed
  std::vector<Emitted> earlier;            // events before the last one
  flow::TokenEvent event;                  // the last one, if has_event
  std::span<const flow::Candidate> top{};  // with `event`
  bool has_event = false;
};

// A step that was submitted to the runner and not collected yet.
struct Flight {
  const flow::StepPlan* plan = nullptr;
  std::span<schedule::Sequence* const> sequences;
  TimePoint submitted_at{};
};

}  // namespace quire::engine
