// Runs one schedule on the real admission queue, engine, scheduler, pool and prefix index with the toy model, and
// checks after every turn what must always be true, and at the end that everybody heard exactly what a lone run would
// have said.
// Thread  one; takes the engine's role.
// Fails   what is not true is a CHECK: the process dies and names it. run_apart.h runs schedules where that is no harm.
#pragma once

#include <cstdint>

#include "tests/sim/scenario.h"

namespace quire::sim {

// What happened, to show that the schedules are not all alike.
struct Counts {
  std::uint64_t schedules = 0;
  std::uint64_t iterations = 0;
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;  // said
  std::uint64_t rows = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t windowed_tokens = 0;  // of these, in models that do not keep everything
  std::uint64_t grouped = 0;          // schedules with several groups of layers
  std::uint64_t preemptions = 0;
  std::uint64_t copies = 0;
  std::uint64_t poisons = 0;
  std::uint64_t swaps_in = 0;
  std::uint64_t shared_blocks = 0;   // with more than one holder, summed over turns
  std::uint64_t dropped_blocks = 0;  // places in tables without a block, summed over turns
  std::uint64_t cancelled = 0;       // sequences that ended early
  std::uint64_t paused = 0;          // sequences whose clients do not read, summed over turns
  std::uint64_t failed = 0;          // spoilt by what they saw
  std::uint64_t beams = 0;
  std::uint64_t ruled = 0;     // sequences with rules
  std::uint64_t scored = 0;    // prompt tokens
  std::uint64_t pooled = 0;    // prompts
  std::uint64_t governed = 0;  // sequences with a grammar
  std::uint64_t complete = 0;  // that it ended
  std::uint64_t jumped = 0;    // tokens that it left no choice of
  std::uint64_t overtakes = 0;
  std::uint64_t broken = 0;         // devices
  std::uint64_t pinned = 0;         // prefixes
  std::uint64_t loaded_blocks = 0;  // from a file that was saved before
  std::uint64_t ahead = 0;          // steps that were submitted while another was in flight
  std::uint64_t fed = 0;            // rows whose tokens that other one said
};

void run(const Scenario& scenario, Counts& counts);

}  // namespace quire::sim
