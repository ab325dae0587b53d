#include "core/grammar/automaton/stacks.h"

namespace quire::grammar {

void Stacks::reserve(std::size_t nodes) {
  nodes_.reserve(nodes);
  number_.reserve(nodes);
  std::size_t num_slots = slots_.size();
  while (num_slots < 2 * nodes) num_slots *= 2;
  find_slots(num_slots);
}

std::uint32_t Stacks::push(std::uint32_t state, std::uint32_t below) {
  std::uint32_t& slot = slot_of(state, below);
  if (slot != 0) return slot;
  const auto node = slot = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({state, below});
  if (2 * nodes_.size() > slots_.size()) find_slots(2 * slots_.size());
  return node;
}

void Stacks::truncate(std::size_t size) {
  while (nodes_.size() > size) {  // no other node's probe sequence needs the slot of the last node
    slot_of(nodes_.back().state, nodes_.back().below) = 0;
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
  for (std::size_t i = 1; i < nodes_.size(); ++i) {  // the node below has its new number already
    if (number_[i] == 0) continue;
    nodes_[num_kept] = {nodes_[i].state, number_[nodes_[i].below]};
    number_[i] = num_kept++;
  }
  nodes_.resize(num_kept);
  find_slots(slots_.size());
  for (Stack& top : tops) top.below = number_[top.below];
}

// The slot of the node, or the free one where it belongs.
std::uint32_t& Stacks::slot_of(std::uint32_t state, std::uint32_t below) {
  std::uint64_t hash = (std::uint64_t{state} << 32 | below) * 0x9E3779B97F4A7C15;
  for (hash >>= 32;; ++hash) {
    std::uint32_t& slot = slots_[hash & (slots_.size() - 1)];
    if (slot == 0 || (nodes_[slot].state == state && nodes_[slot].below == below)) return slot;
  }
}

void Stacks::find_slots(std::size_t num_slots) {
  slots_.assign(num_slots, 0);
  for (std::uint32_t i = 1; i < nodes_.size(); ++i) slot_of(nodes_[i].state, nodes_[i].below) = i;
}

}  // namespace quire::grammar
