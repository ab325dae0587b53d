// One beam search: its hypotheses are sequences without streams of their own, which go on together. A hypothesis that
// was sampled in a round is paused until all have been; paused sequences are preempted first. When the search is over,
// its best hypotheses are emitted as fast as their clients read.
// Owner   Searches.
// Thread  engine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/token_stream.h"
#include "core/engine/beam/beam.h"

namespace quire::engine {

struct Search {
  // Takes the submission's streams, and reads its request, which the first hypothesis takes.
  explicit Search(bridge::Submission& submission)
      : beam(*submission.request.beam, submission.request.max_tokens, submission.request.stop_tokens),
        arrival(submission.request.arrival),
        deadline(submission.request.deadline),
        num_prompt_tokens(submission.request.prompt.size()) {
    streams.push_back(std::move(submission.stream));
    for (auto& stream : submission.more_streams) streams.push_back(std::move(stream));
    num_emitted.resize(streams.size());
  }

  // True if the clients of all its streams have left.
  bool unwanted() const {
    for (const auto& stream : streams) {
      if (stream && !stream->cancelled()) return false;
    }
    return true;
  }

  Beam beam;
  std::vector<SeqId> hypotheses;                              // the live ones, in the beam's order
  std::vector<std::vector<sample::Candidate>> offers;         // [hypotheses] candidates of this round
  std::size_t num_offers = 0;                                 // hypotheses that have their candidates
  std::vector<std::shared_ptr<bridge::TokenStream>> streams;  // best first; null once its end is emitted
  std::vector<std::size_t> num_emitted;                       // [streams] tokens
  bool over = false;                                          // no hypothesis is live: answers are being emitted
  bool failed = false;                                        // a row was not finite
  TimePoint arrival;
  std::optional<TimePoint> deadline;
  std::size_t num_prompt_tokens = 0;
  TimePoint stalled_since{};  // once over: when a client last read
};

}  // namespace quire::engine
