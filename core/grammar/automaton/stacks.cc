#include "core/grammar/automaton/stacks.h"

namespace quire::grammar {

std::uint32_t Stacks::push(std::uint32_t state, std::uint32_t below) {
  for (std::uint32_t node = nodes_[below].above; node != 0; node = nodes_[node].sibling) {
    if (nodes_[node].state == state) return node;
  }
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({state, below, 0, nodes_[below].above});
  nodes_[below].above = node;
  return node;
}

void Stacks::truncate(std::size_t size) {
  while (nodes_.size() > size) {  // the last one is the first of those on its node
    nodes_[nodes_.back().below].above = nodes_.back().sibling;
    nodes_.pop_back();
  }
}

void Stacks::compact(std::span<Stack> tops) {
  number_.assign(nodes_.size(), 0);
  for (const Stack& top : tops) number_[top.below] = 1;
  for (std::size_t i = nodes_.size(); i-- > 1;) {
    if (number_[i] != 0) number_[nodes_[i].below] = 1;
  }
  std::uint32_t num_kept = 1;
  number_[0] = 0;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {  // what lies below has its new number already
    if (number_[i] == 0) continue;
    nodes_[num_kept] = {nodes_[i].state, number_[nodes_[i].below], 0, 0};
    number_[i] = num_kept++;
  }
  nodes_.resize(num_kept);
  nodes_[0].above = 0;
  for (std::uint32_t i = 1; i < num_kept; ++i) {
    Node& below = nodes_[nodes_[i].below];
    nodes_[i].sibling = below.above;
    below.above = i;
  }
  for (Stack& top : tops) top.below = number_[top.below];
}

}  // namespace quire::grammar
