// A beam search in the engine: its hypotheses are sequences without a stream of their own. They go on together: who has
// spoken in a round is parked until all have (and so is the first to give up its blocks). Once it is over the best are
// told, as fast as their clients read.
// Owner   the engine.
// Thread  engine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/token_stream.h"
#include "core/engine/beam.h"

namespace quire::engine {

struct Search {
  // Takes the submission's streams. Its request is read, and stays for the first hypothesis.
  explicit Search(bridge::Submission& submission)
      : beam(*submission.request.beam, submission.request.max_tokens, submission.request.stop_tokens),
        arrival(submission.request.arrival),
        deadline(submission.request.deadline),
        num_prompt_tokens(submission.request.prompt.size()) {
    streams.push_back(std::move(submission.stream));
    for (auto& stream : submission.more_streams) streams.push_back(std::move(stream));
    num_told.resize(streams.size());
  }

  // Nobody waits for any of its answers.
  bool unwanted() const {
    for (const auto& stream : streams) {
      if (stream && !stream->cancelled()) return false;
    }
    return true;
  }

  Beam beam;
  std::vector<SeqId> hypotheses;                              // live ones, as the beam counts them
  std::vector<std::vector<sample::Candidate>> offers;         // by hypothesis, of this round
  std::size_t num_spoken = 0;                                 // hypotheses that have made theirs
  std::vector<std::shared_ptr<bridge::TokenStream>> streams;  // best first; null once its end is told
  std::vector<std::size_t> num_told;                          // tokens, by stream
  bool over = false;                                          // nothing lives any more: telling
  bool failed = false;                                        // a row was not finite
  TimePoint arrival;
  std::optional<TimePoint> deadline;
  std::size_t num_prompt_tokens = 0;
  TimePoint stalled_since{};  // while telling: since when no client has read
};

}  // namespace quire::engine
