// How fast the engine is, as it measures itself, and when a request that comes now would be told its tokens.
// Shape   seconds, but for answer_tokens and computed. What has not been measured yet is 0, and then nothing is expected to
//         take time because of it: a server that knows nothing refuses nobody.
// Owner   the AdmissionQueue.
// Thread  note_*(): engine. rates(): any; each rate is good by itself.
// Source  Little's law for what waits: of so many that run, each for so long, one ends every residence / running. Means
//         are exponential; the rest is ours.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/clock.h"

namespace quire::bridge {

struct Rates {
  double start_s = 0.0;        // until another sequence has ended, and its place is free
  double row_s = 0.0;          // a row of a step of many
  double computed = 1.0;       // of the tokens of prompts, those that no cached block held, 0..1
  double token_s = 0.0;        // from one token of a sequence to its next
  double answer_tokens = 0.0;  // of an answer
};

// Who is before a request, and what is left for it.
struct Line {
  std::uint32_t sequences = 0;  // that wait
  std::uint64_t tokens = 0;     // of their prompts
  std::uint32_t places = 0;     // free ones: so many may start at once
};

// What a request wants at least.
struct Demand {
  std::uint32_t sequences = 1;
  std::uint64_t prompt_tokens = 0;  // of all its prompts, each once
  std::uint64_t answer_tokens = 1;  // of its longest answer
};

struct Outlook {
  double first_token_s = 0.0;  // until every sequence of it has said something
  double last_token_s = 0.0;   // until it has ended
};

Outlook outlook(const Rates& rates, const Line& line, const Demand& demand);

class Pace {
 public:
  // A sequence ran for so long, the time between its admissions included, and beside it so many, itself among them.
  void note_end(Duration residence, std::uint32_t running);
  void note_prompt(std::uint32_t tokens, std::uint32_t cached);  // its first run
  void note_row(double seconds);
  void note_gap(double seconds);  // between two tokens, the mean of a step
  void note_answer(std::uint32_t tokens);

  Rates rates() const;

 private:
  // Written by the engine, read by any: relaxed, they are advice.
  std::atomic<double> start_s_{0.0};
  std::atomic<double> row_s_{0.0};
  std::atomic<double> prompt_tokens_{0.0};  // of late, and those of them that were computed
  std::atomic<double> computed_tokens_{0.0};
  std::atomic<double> token_s_{0.0};
  std::atomic<double> answer_tokens_{0.0};
};

}  // namespace quire::bridge
