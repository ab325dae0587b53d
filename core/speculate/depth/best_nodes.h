// A draft put in order of what its nodes promise.
// Thread  any.
// Source  EAGLE-2 (Li et al. 2024), its reranking; ours: a node promises no more than its parent, so every beginning is a tree.
#pragma once

#include <span>

#include "core/sample/token_tree.h"

namespace quire::speculate {

// Best first, equals in the order they had. gains[i] is of tree's node i and follows it; where it is above its parent's it
// becomes that.
void put_best_first(sample::TokenTree& tree, std::span<double> gains);

}  // namespace quire::speculate
