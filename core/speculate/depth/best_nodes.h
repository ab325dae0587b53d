// Order of a draft by expected gain, so that cutting its end removes the least valuable nodes.
// Thread  any.
// Source  EAGLE-2 (Li et al. 2024), reranking; ours: a node's gain is at most its parent's, so that every beginning of
//         the order is a tree.
#pragma once

#include <span>

#include "core/sample/token_tree.h"

namespace quire::speculate {

// Sorts the tree by descending gain; equal nodes keep their order. gains[i] belongs to the tree's node i and is sorted
// along; a gain above the parent's is first lowered to it.
void put_best_first(sample::TokenTree& tree, std::span<double> gains);

}  // namespace quire::speculate
