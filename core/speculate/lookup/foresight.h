// What guesses by counting are worth. That of all occurrences each goes on with a token says little where there is but one: how
// often such a step of a path was right, of those that were put to the test, is what a draft then promises.
//   chance of a step = (right + 2 prior) / (tried + 2), by its kind: which part of its parent's occurrences go on so, and how many
//   tokens are alike before it, those guessed on the way included; prior = part · alike / (alike + 1)
//   likely = product of the chances along the path
// A step is put to the test when all before it on its path turned out to be right. Old ones fade, by one in 500.
// Shape   parts in five bins, lengths in five octaves. A draft remembered: 8 bytes a node.
// Owner   a drafter; one for all its sequences, whose last drafts are theirs.
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

class Foresight {
 public:
  // A sequence's last draft, until it is known what was said instead.
  struct Draft {
    struct Node {
      TokenId token;
      std::int8_t parent;
      std::uint8_t kind;
    };
    std::array<Node, sample::TokenTree::kMaxNodes> nodes;
    std::uint32_t size = 0;
    std::size_t num_tokens = 0;  // before it
  };

  // What was said behind the draft, as far as `tokens` go; it is forgotten.
  void learn(Draft& draft, std::span<const TokenId> tokens);
  // The tree's chances, so far as they were counted, become what they are worth; `alike`: tokens before its root. It is remembered.
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
