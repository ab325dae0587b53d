// Probabilities for drafts that come from counting, corrected by how often such steps were right. The fraction of the
// occurrences that go on with a token says little if there is only one occurrence; the measured rate of the same kind
// of step says more.
//   P(step) = (right + 2 prior) / (tried + 2), prior = fraction · length / (length + 1)
//   likely = product of P(step) along the path
// Steps are counted by kind: the fraction of the parent's occurrences that go on so, and the length of the match before
// the step, draft tokens on the way included.
// A step is tried if all steps before it on its path turned out right. Counts decay by 1/500 with each trial.
// Shape   kinds: five bins of fractions by five octaves of lengths. A stored draft: 8 bytes a node.
// Owner   a drafter: one for all its sequences; each sequence stores its last Draft.
// Thread  engine. Nothing allocates.
// Source  ours; NgramDrafter counts likewise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {

class StepCalibration {
 public:
  // A sequence's last draft, stored until the tokens after it are known.
  struct Draft {
    struct Node {
      TokenId token;
      std::int8_t parent;
      std::uint8_t kind;
    };
    std::array<Node, sample::TokenTree::kMaxNodes> nodes;
    std::uint32_t size = 0;
    std::size_t num_tokens = 0;  // of the sequence, when the draft was made
  };

  // Counts the draft's steps as right or wrong against `tokens`, then empties the draft.
  void learn(Draft& draft, std::span<const TokenId> tokens);
  // Replaces the counted fractions in `tree` by corrected probabilities and stores the tree as `draft`. `alike`: match
  // length before the root.
  void promise(sample::TokenTree& tree, std::uint32_t alike, std::size_t num_tokens, Draft& draft) const;

 private:
  static constexpr std::size_t kParts = 5;
  static constexpr std::size_t kLengths = 5;
  struct Kind {
    float tried = 0.0f;
    float right = 0.0f;
  };
  float chance(std::uint8_t kind, float part, std::uint32_t alike) const;

  std::array<Kind, kParts * kLengths> kinds_{};
};

}  // namespace quire::speculate
