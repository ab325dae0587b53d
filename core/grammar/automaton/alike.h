// States that a text of limited length does not tell apart: what is found out about one of them holds for all.
// Shape   alike[i][s] is the first state from which the same texts of up to kAlikeBytes[i] bytes lead somewhere, and to the
//         end of its rule after the same bytes; often s itself. Far from its ends, a repetition with a count is all alike.
// Thread  any.
// Source  partition refinement (Moore 1956), as many rounds as bytes count: two states of one class after k rounds agree on k
//         bytes, since every byte takes at least one step in a rule. Not where a call may match nothing: such states are
//         like none. A round looks only at states from which one byte leads to what the round before took apart.
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
