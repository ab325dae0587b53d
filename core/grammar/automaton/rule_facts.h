// Facts about rules that are needed to make automata of them: which may be empty, match nothing, or are inlined.
// Shape   by Expr: nullable, productive (some text matches it), size (a bound of its states if written out), depth of
//         nesting. A rule is inlined if it is small and leads to no recursion; a repetition is a chain of calls of its
//         part if writing it out would be large.
// Fails   examine(): kInvalidArgument for an undefined rule, left recursion, a grammar that no text matches,
//         expressions nested too deep, too many states, and a long repetition of something that may be empty; kTimeout
//         when the time is over.
// Source  ours; the fixed points are textbook (Aho, Sethi, Ullman 4.4).
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/grammar/automaton/compile_budget.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

// A repetition of something that may be empty can be at all its counts at the same time, which every byte pays for.
inline constexpr std::uint32_t kMaxEmptyRepeats = 256;

struct RuleFacts {
  std::vector<std::uint8_t> nullable;
  std::vector<std::uint8_t> productive;
  std::vector<std::uint32_t> size;
  std::vector<std::uint32_t> depth;
  std::vector<std::uint8_t> inlined;  // by RuleId

  bool chained(const Node& repeat) const;
};

Result<RuleFacts> examine(const Rules& rules, const CompileBudget& budget);

}  // namespace quire::grammar
