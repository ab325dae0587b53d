// A grammar as a recursive transition network, run by Matchers: an automaton over bytes whose states can call others.
// Shape   each rule that is called has its own states. Within a rule, bytes lead on deterministically; a call enters
//         the callee's first state and, after the callee's end, goes on at `back`. A position in a text is a set of
//         stacks, each a state and, below it, the states to return to (stacks.h). State 0 is the end of the whole text.
//         An end can be reached from every state.
// Owner   Grammar. Immutable.
// Thread  any.
// Fails   build(): kInvalidArgument beyond the limit of states, kTimeout beyond the limit of time.
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
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

struct Automaton {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kEnd = 0;

  struct State {
    std::uint32_t first_run = 0;   // of its byte transitions, which end at the next state's first_run
    std::uint32_t first_call = 0;  // of its calls, likewise
    std::uint32_t row = kNone;     // of a state with many runs: index of its dense table in `rows`
    bool final = false;            // the rule may end here
    bool ends = false;             // the rule may end here, perhaps after calls that match nothing
    bool plain = false;            // neither final nor with calls
  };
  struct Run {
    std::uint8_t first = 0, last = 0;  // bytes, both included; ascending
    std::uint32_t target = 0;
  };
  struct Call {
    std::uint32_t callee = 0;    // a state
    std::uint32_t back = kNone;  // kNone: the caller ends with it (a tail call), so the stack does not grow
  };

  std::vector<State> states;  // and a sentinel
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
  // True if the rule can only end here: no byte is read and nothing is called.
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
