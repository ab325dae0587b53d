#include "core/schedule/urgency_tree.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"

namespace quire::schedule {

void UrgencyTree::add(Sequence& sequence) {
  const bool last =
      places_.empty() || (places_.back() != nullptr && places_.back()->queue.arrived_before(sequence.queue));
  if (!last || places_.size() == capacity()) return rebuild(&sequence);
  sequence.queue.place = static_cast<std::uint32_t>(places_.size());
  places_.push_back(&sequence);
  ++num_held_;
  open(sequence);
}

void UrgencyTree::remove(Sequence& sequence) {
  close(sequence);
  places_[sequence.queue.place] = nullptr;
  while (!places_.empty() && places_.back() == nullptr)
    places_.pop_back();  // add() appends behind a last leaf that has a sequence
  if (--num_held_ > 0) return;
  places_ = {};  // frees the memory of a crowd that may not come again
  nodes_ = {};
}

void UrgencyTree::close(Sequence& sequence) {
  CHECK(sequence.queue.place < places_.size() && places_[sequence.queue.place] == &sequence);
  const std::size_t leaf = capacity() + sequence.queue.place;
  if (nodes_[leaf].best == nullptr) return;
  sequence.queue.overtaken = static_cast<std::uint32_t>(nodes_[leaf].overtaken + added_above(leaf));
  nodes_[leaf] = {};
  refresh_above(leaf);
}

void UrgencyTree::open(Sequence& sequence) {
  const std::size_t leaf = capacity() + sequence.queue.place;
  nodes_[leaf] = {&sequence, 1, 0, std::int64_t{sequence.queue.overtaken} - added_above(leaf)};
  refresh_above(leaf);
}

Sequence* UrgencyTree::next(std::uint32_t max_overtakes) const {
  if (nodes_.empty() || nodes_[1].best == nullptr) return nullptr;
  std::int64_t wanted = max_overtakes;
  if (nodes_[1].overtaken < wanted) return nodes_[1].best;
  std::size_t node = 1;
  while (node < capacity()) {
    wanted -= nodes_[node].added;
    const Node& left = nodes_[2 * node];
    node = 2 * node + (left.best != nullptr && left.overtaken >= wanted ? 0 : 1);
  }
  return nodes_[node].best;
}

std::uint32_t UrgencyTree::overtake(const Sequence& sequence) {
  std::uint32_t num_overtaken = 0;
  for (std::size_t node = capacity() + sequence.queue.place; node > 1; node /= 2) {
    if (node % 2 == 1) {  // all below its left sibling arrived earlier
      Node& earlier = nodes_[node - 1];
      num_overtaken += earlier.num_open;
      ++earlier.overtaken;
      if (node - 1 < capacity()) ++earlier.added;
    }
    refresh(node / 2);
  }
  return num_overtaken;
}

std::int64_t UrgencyTree::added_above(std::size_t node) const {
  std::int64_t sum = 0;
  for (node /= 2; node > 0; node /= 2) sum += nodes_[node].added;
  return sum;
}

void UrgencyTree::refresh(std::size_t node) {
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  Node& both = nodes_[node];
  both.num_open = left.num_open + right.num_open;
  if (left.best == nullptr || right.best == nullptr) {
    const Node& one = left.best != nullptr ? left : right;
    both.best = one.best;
    both.overtaken = one.overtaken + both.added;
    return;
  }
  both.best = more_urgent(*right.best, *left.best) ? right.best : left.best;
  both.overtaken = std::max(left.overtaken, right.overtaken) + both.added;
}

void UrgencyTree::refresh_above(std::size_t node) {
  for (node /= 2; node > 0; node /= 2) refresh(node);
}

// Rebuilds the tree with `more`, which is open, and leaves for at least twice as many. Closed sequences stay closed.
void UrgencyTree::rebuild(Sequence* more) {
  std::vector<Sequence*> held;
  std::vector<Sequence*> closed;
  held.reserve(num_held_ + 1);
  for (Sequence* one : places_) {
    if (one == nullptr) continue;
    held.push_back(one);
    if (nodes_[capacity() + one->queue.place].best == nullptr) closed.push_back(one);
    close(*one);
  }
  const auto in_order = [](const Sequence* a, const Sequence* b) { return a->queue.arrived_before(b->queue); };
  held.insert(std::ranges::upper_bound(held, more, in_order), more);
  num_held_ = held.size();
  nodes_.assign(2 * std::bit_ceil(std::max<std::size_t>(4, 2 * held.size())), Node{});
  places_ = std::move(held);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Sequence& one = *places_[i];
    one.queue.place = static_cast<std::uint32_t>(i);
    if (!std::ranges::binary_search(closed, &one, in_order)) {
      nodes_[capacity() + i] = {&one, 1, 0, std::int64_t{one.queue.overtaken}};
    }
  }
  for (std::size_t node = capacity() - 1; node > 0; --node) refresh(node);
}

}  // namespace quire::schedule
