// Measured speed of the engine, and the expected latency of a request that arrives now.
// Shape   seconds, except answer_tokens and `computed`. A rate that is not measured yet is 0 (`computed`: 1) and adds
//         no expected time: a server without measurements rejects no request.
// Owner   the AdmissionQueue.
// Thread  note_*(): engine. rates(): any; the rates are read one by one, not as one snapshot.
// Source  Little's law for waiting: of n running sequences, each with the residence time W, one ends every W / n.
//         Exponential means; the rest is ours.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/clock.h"

namespace quire::bridge {

struct Rates {
  double start_s = 0.0;        // mean time until a running sequence ends and frees its slot
  double row_s = 0.0;          // a row, in a step of many rows
  double computed = 1.0;       // fraction of prompt tokens not found in the prefix cache, 0..1
  double token_s = 0.0;        // from a token of a sequence to its next one
  double answer_tokens = 0.0;  // mean length of an answer
};

// The load in front of a new request.
struct Line {
  std::uint32_t sequences = 0;  // that wait before it
  std::uint64_t tokens = 0;     // of their prompts
  std::uint32_t places = 0;     // free running slots: so many sequences may start at once
};

// The least that a request needs.
struct Demand {
  std::uint32_t sequences = 1;
  std::uint64_t prompt_tokens = 0;  // of all its prompts, each counted once
  std::uint64_t answer_tokens = 1;  // of its longest answer
};

// Expected latency of a request.
struct Outlook {
  double first_token_s = 0.0;  // until each of its sequences has a token
  double last_token_s = 0.0;   // until all of them have ended
};

Outlook outlook(const Rates& rates, const Line& line, const Demand& demand);

class LoadEstimate {
 public:
  // A sequence has ended. residence: time since its first run, waiting after a preemption included; running: number of
  // sequences that run, this one included.
  void note_end(Duration residence, std::uint32_t running);
  void note_prompt(std::uint32_t tokens, std::uint32_t cached);  // its first run; cached: found in the prefix cache
  void note_row(double seconds);
  void note_gap(double seconds);  // between two tokens of a sequence, mean over a step
  void note_answer(std::uint32_t tokens);

  Rates rates() const;

 private:
  // Written by the engine, read by any; relaxed: estimates.
  std::atomic<double> start_s_{0.0};
  std::atomic<double> row_s_{0.0};
  std::atomic<double> prompt_tokens_{0.0};  // decaying sums: all prompt tokens, and the computed ones of them
  std::atomic<double> computed_tokens_{0.0};
  std::atomic<double> token_s_{0.0};
  std::atomic<double> answer_tokens_{0.0};
};

}  // namespace quire::bridge
