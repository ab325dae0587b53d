// States that a short text does not tell apart: what is found out about one of them holds for all.
// Shape   alike[s] is the first state from which the same texts of up to kAlikeBytes bytes lead somewhere, and to the end of
//         its rule after the same bytes; often s itself. Far from its ends, a repetition with a count is all alike.
// Thread  any.
// Source  partition refinement (Moore 1956), as many rounds as bytes count: two states of one class after k rounds agree on k
//         bytes, since every byte takes at least one step in a rule. Not where a call may match nothing: such states are
//         like none.
#pragma once

#include <cstdint>
#include <vector>

#include "core/grammar/automaton/automaton.h"

namespace quire::grammar {

inline constexpr std::uint32_t kAlikeBytes = 16;

std::vector<std::uint32_t> alike_states(const Automaton& automaton);

}  // namespace quire::grammar
