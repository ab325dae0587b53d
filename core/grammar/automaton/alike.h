// Equivalent states of the automaton, which texts of limited length do not tell apart: results for one hold for all.
// Shape   alike[i][s] is the lowest-numbered state equivalent to s for texts of up to kAlikeBytes[i] bytes: from both,
//         the same texts can be read, and the rule ends after the same bytes. Often it is s itself. In a repetition
//         with a count, all states far from its ends are equivalent.
// Thread  any.
// Source  partition refinement (Moore 1956), one round per byte: two states of one class after k rounds agree on k
//         bytes, since every byte takes at least one step in a rule. That fails if a call may match nothing, so a state
//         with such a call is in a class of its own. A round visits only states from which one byte leads to states
//         that the round before separated.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace quire::grammar {

struct Automaton;

inline constexpr std::array<std::uint32_t, 2> kAlikeBytes{16, 64};

using AlikeStates = std::array<std::vector<std::uint32_t>, kAlikeBytes.size()>;

AlikeStates alike_states(const Automaton& automaton);

}  // namespace quire::grammar
