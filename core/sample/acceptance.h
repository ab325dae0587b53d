// Which guesses at what a row says are taken, and what is said where none is, so that what is said has the row's own
// law, whatever was guessed: p, of draw() with the request's rules, temperature and filters. q is what a guess was
// drawn from; of one that was no draw it is that token alone.
//   judge()        one after another: x is taken where coin · q(x) < p(x); else p becomes norm(max(p - q, 0)). Where
//                  none is taken p is drawn from, as it is by then.
//   judge_chain()  P_0 = 1, P_i = min(1, P_(i-1) p(x_i) / q(x_i)); R_i = sum of max(P_i p - q, 0) behind i of them;
//                  h_i = R_i / (R_i + 1 - P_i), at the chain's end P_i; the most are taken whose coin < h_i; then
//                  norm(max(P_i p - q, 0)) is drawn from, at the end p
// Noise   three streams apart: what a guess was drawn with (ahead(kProposal)), coins, what is left. None is the
//         target's, which drafters may look at. Each is of one position and one depth, so a step's noise is never seen
//         again.
// Shape   guesses below one node, as the tree has them; `depth` of theirs, 1 below the root. A chain: rows [K + 1],
//         chain [K].
//         A law's tokens are there once each; those outside the row have no chance. Of a law drawn without putting back
//         each guess has what was left of it.
// What keeps the law: guesses that are there or not for any reason but the token they turned out to be (a budget, a
//         tree's shape, the text so far). What breaks it: leaving out a guess because of what was drawn, or a law that
//         it was not drawn from.
// Thread  any, with its own scratch; nothing allocates.
// Fails   as draw(): not finite. A chain is judged as far as its rows are finite.
// Source  ratio: Leviathan et al. 2023, Chen et al. 2023; one after another: SpecInfer (Miao et al. 2023), Sequoia
//         (Chen et al. 2024); block: Sun et al. 2024 (2403.10444). Noise by position and depth, and masses as integers,
//         are ours.
#pragma once

#include <cstdint>
#include <span>

#include "core/sample/edits.h"
#include "core/sample/params.h"
#include "core/sample/proposal_laws.h"
#include "core/sample/sampler.h"
#include "core/sample/scratch.h"

namespace quire::sample {

struct Guess {
  TokenId token = -1;
  std::span<const Likelihood> law{};  // empty: it was no draw
};

// A logits row, and where what is asked for besides its token goes.
struct JudgedRow {
  std::span<const float> logits;
  Highest highest{};
  std::uint32_t position = 0;  // of the token that it says
  Edits edits{};
  std::span<Candidate> room{};
};

// The token is that of a guess exactly where that was taken.
Drawn judge(const JudgedRow& row, std::span<const Guess> guesses, std::uint32_t depth, const Params& params,
            Scratch& scratch);

// drawn[i] is what rows[i] says; behind the first that is no guess taken: token -1.
void judge_chain(std::span<const JudgedRow> rows, std::span<const Guess> chain, const Params& params, Scratch& scratch,
                 std::span<Drawn> drawn);

}  // namespace quire::sample
