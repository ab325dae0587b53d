// Rules as nondeterministic automata: byte transitions, calls of other automata, and splits.
// Shape   a unit is an expression with an automaton of its own: the body of a rule that is not inlined, or the part of
//         a repetition that is a chain of calls. Unit 0 is the body of rule 0; lowering a unit may add more units.
// Owner   values; borrows Rules and RuleFacts, which outlive it.
// Source  Thompson 1968, built from the end to the beginning so that nothing but loops is patched; calls as in
//         recursive transition networks (Woods 1970).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/grammar/automaton/rule_facts.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

struct Nfa {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class Kind : std::uint8_t { kSplit, kBytes, kCall, kFinal };
  struct State {
    Kind kind = Kind::kSplit;
    std::uint32_t next = kNone;
    std::uint32_t other = kNone;  // kSplit: the second successor; kCall: the unit
    ByteSet set;                  // kBytes
  };
  std::vector<State> states;
  std::uint32_t start = 0;
};

class Lowering {
 public:
  Lowering(const Rules& rules, const RuleFacts& facts);

  std::size_t num_units() const { return units_.size(); }
  bool nullable(std::uint32_t unit) const { return facts_.nullable[units_[unit]] != 0; }
  std::uint32_t size_bound(std::uint32_t unit) const { return facts_.size[units_[unit]]; }
  Nfa lower(std::uint32_t unit);

 private:
  using State = std::uint32_t;
  // Returns the state from which a match of the expression leads to `next`.
  State build(Expr e, State next);
  State repeat(const Node& node, State next);
  State add(Nfa::Kind kind, State next, std::uint32_t other = Nfa::kNone);
  State call(Expr body, State next);

  std::span<const Node> nodes_;
  std::span<const Rule> rules_;
  const RuleFacts& facts_;
  std::vector<Expr> units_;
  std::vector<std::uint32_t> unit_of_;  // by Expr; kNone: none
  std::vector<Nfa::State> states_;      // of the unit being lowered
};

}  // namespace quire::grammar
