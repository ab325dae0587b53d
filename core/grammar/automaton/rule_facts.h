// What has to be known about rules before they become automata: what may be empty, what matches nothing, what is written out
// where it is used.
// Shape   by Expr: nullable, productive (some text matches it), size (states of it written out, a bound), depth of nesting.
//         A rule is inlined where it is small and leads to no recursion; a repetition is a chain of calls of its part where
//         writing it out would be large.
// Fails   examine(): kInvalidArgument for an undefined rule, left recursion, a grammar that no text matches, what is nested too
//         deep or too large, a long repetition of what may be empty, and when the time is over.
// Source  ours; the fixed points are textbook (Aho, Sethi, Ullman 4.4).
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/grammar/automaton/compile_budget.h"
#include "core/grammar/rules.h"

namespace quire::grammar {

// A repetition of what may be empty can stand at all its counts at once: more than these would be paid at every byte.
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
