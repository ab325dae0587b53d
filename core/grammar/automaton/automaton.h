// A grammar as one automaton over bytes that calls itself: what a Matcher walks.
// Shape   every rule that is called has its states; within it bytes lead on deterministically, a call leads to the callee's
//         first state and, behind the callee's end, `back`. What follows is determined by a set of stacks, each a state and
//         below it the states to come back to (stacks.h). State 0 is the end of the whole text. Every state leads to an end.
// Owner   Grammar. Immutable.
// Thread  any.
// Fails   build(): kInvalidArgument beyond the limits of states and time.
// Source  ours, of textbook parts: recursive transition networks (Woods 1970), the subset construction within each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/grammar/automaton/alike.h"
#include "core/grammar/automaton/compile_budget.h"
#include "core/grammar/automaton/rule_facts.h"
#include "core/grammar/rules.h"

namespace quire::grammar {

struct Automaton {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kEnd = 0;

  struct State {
    std::uint32_t first_run = 0;   // bytes that lead on: up to the next state's first
    std::uint32_t first_call = 0;  // in the same way
    std::uint32_t row = kNone;     // many runs: its row in `rows`
    bool final = false;            // the rule may end here
    bool ends = false;             // or once calls that match nothing are over
    bool plain = false;            // neither final nor with calls
  };
  struct Run {
    std::uint8_t first = 0, last = 0;  // bytes, both included; ascending
    std::uint32_t target = 0;
  };
  struct Call {
    std::uint32_t callee = 0;    // a state
    std::uint32_t back = kNone;  // kNone: the caller is over with it (a tail call), so no stack grows
  };

  std::vector<State> states;  // and one behind the last
  std::vector<Run> runs;
  std::vector<Call> calls;
  std::vector<std::array<std::uint32_t, 256>> rows;
  AlikeStates alike;
  std::uint32_t start = 0;

  std::size_t size() const { return states.size() - 1; }
  std::size_t num_bytes() const {
    return states.size() * sizeof(State) + runs.size() * sizeof(Run) + calls.size() * sizeof(Call) +
           rows.size() * sizeof(rows.front());
  }
  std::span<const Run> runs_of(std::uint32_t s) const {
    return {runs.data() + states[s].first_run, runs.data() + states[s + 1].first_run};
  }
  std::span<const Call> calls_of(std::uint32_t s) const {
    return {calls.data() + states[s].first_call, calls.data() + states[s + 1].first_call};
  }
  // Nothing happens here but the way back.
  bool only_ends(std::uint32_t s) const { return runs_of(s).empty() && calls_of(s).empty(); }
  std::uint32_t next(std::uint32_t s, std::uint8_t byte) const {
    if (states[s].row != kNone) return rows[states[s].row][byte];
    for (const Run& run : runs_of(s)) {
      if (byte <= run.last) return byte >= run.first ? run.target : kNone;
    }
    return kNone;
  }

  static Result<Automaton> build(const Rules& rules, const RuleFacts& facts, const CompileBudget& budget);
};

}  // namespace quire::grammar
