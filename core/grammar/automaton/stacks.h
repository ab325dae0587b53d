// Stacks of states to return to, which share their lower parts: a tree of parent links; equal stacks are one node.
// Shape   a node is a state to return to and the node below it; node 0 is the bottom, Automaton::kEnd. A node has a
//         higher number than the node below it. A Stack is one parse of the text so far: a state, a node below it.
// Owner   Matcher; Masks for its own searches.
// Thread  one at a time.
// Source  graph-structured stacks (Tomita 1987), as a tree: nothing here merges tops, sets of stacks do (frontier.h).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::grammar {

struct Stack {
  std::uint32_t state = 0;
  std::uint32_t below = 0;
  friend auto operator<=>(const Stack&, const Stack&) = default;
};

class Stacks {
 public:
  static constexpr std::uint32_t kBottom = 0;

  Stacks() : nodes_(1), slots_(kFewSlots, 0) {}

  std::size_t size() const { return nodes_.size(); }
  void reserve(std::size_t nodes);
  // The stack that is left after its topmost rule has ended.
  Stack pop(std::uint32_t node) const { return {nodes_[node].state, nodes_[node].below}; }
  std::uint32_t push(std::uint32_t state, std::uint32_t below);
  void truncate(std::size_t size);  // drops the nodes pushed last
  // Keeps only the nodes below `tops`, renumbers them, and updates `tops`.
  void compact(std::span<Stack> tops);

 private:
  static constexpr std::size_t kFewSlots = 64;  // a power of two
  struct Node {
    std::uint32_t state = 0;
    std::uint32_t below = 0;
  };

  std::uint32_t& slot_of(std::uint32_t state, std::uint32_t below);
  void find_slots(std::size_t num_slots);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> slots_;   // hash table of nodes, open addressing; 0: free
  std::vector<std::uint32_t> number_;  // compact(): by old number, the new one
};

}  // namespace quire::grammar
