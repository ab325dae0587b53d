#include "core/grammar/automaton/frontier.h"

#include <algorithm>

namespace quire::grammar {

Frontier::Frontier(const Automaton& automaton) : automaton_(automaton), slots_(kNumSlots) {
  entries_.reserve(4 * kMaxStacks);
  frames_.resize(256);
}

bool Frontier::begin(Stacks& stacks, std::span<const Stack> tops) {
  start(stacks, tops);
  return close(stacks, 0);
}

bool Frontier::last_step(Stacks& stacks, std::size_t depth, std::uint8_t byte, std::vector<Stack>& tops) {
  return move(stacks, depth, byte) && finish(stacks, depth + 1, tops);
}

bool Frontier::settle(Stacks& stacks, std::vector<Stack>& tops) {
  start(stacks, tops);
  return finish(stacks, 0, tops);
}

void Frontier::start(Stacks& stacks, std::span<const Stack> tops) {
  entries_.clear();
  lost_ = false;
  open(0, stacks);
  for (const Stack& top : tops) add(top);
}

void Frontier::open(std::size_t depth, const Stacks& stacks) {
  if (depth == frames_.size()) frames_.resize(2 * depth);
  begin_ = static_cast<std::uint32_t>(entries_.size());
  hashed_ = false;
  frames_[depth] = {begin_, begin_, stacks.size(), false};
}

void Frontier::add(Stack stack) {
  ++work_;
  if (entries_.size() - begin_ < kFew) {
    const auto begin = entries_.begin() + begin_;
    if (std::find(begin, entries_.end(), stack) == entries_.end()) entries_.push_back(stack);
    return;
  }
  if (!hashed_) {
    hashed_ = true;
    ++num_sets_;
    for (std::uint32_t i = begin_; i < entries_.size(); ++i) slot_of(entries_[i]) = {num_sets_, i};
  }
  Slot& slot = slot_of(stack);
  if (slot.set == num_sets_ || full()) return;
  slot = {num_sets_, static_cast<std::uint32_t>(entries_.size())};
  entries_.push_back(stack);
}

// The slot of the stack, or the free one where it belongs.
Frontier::Slot& Frontier::slot_of(Stack stack) {
  std::uint64_t hash = (std::uint64_t{stack.state} << 32 | stack.below) * 0x9E3779B97F4A7C15;
  for (hash >>= 40;; ++hash) {
    Slot& slot = slots_[hash % kNumSlots];
    if (slot.set != num_sets_ || entries_[slot.entry] == stack) return slot;
  }
}

// step() of a single stack, as inside a string: most steps are of this kind.
bool Frontier::step_alone(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
  ++work_;
  const Frame from = frames_[depth];
  Stack stack = entries_[from.begin];
  stack.state = automaton_.next(stack.state, byte);
  if (stack.state == Automaton::kNone) return false;
  while (stack.state != Automaton::kEnd && automaton_.only_ends(stack.state)) stack = stacks.pop(stack.below);
  const bool at_end = stack.state == Automaton::kEnd;
  if (!at_end && !automaton_.states[stack.state].plain) return move(stacks, depth, byte) && close(stacks, depth + 1);
  if (stacks.size() > from.num_nodes) stacks.truncate(from.num_nodes);
  if (depth + 1 == frames_.size()) frames_.resize(2 * frames_.size());
  entries_.resize(from.end);
  entries_.push_back(stack);
  frames_[depth + 1] = {from.end, from.end + 1, from.num_nodes, at_end};
  return true;
}

bool Frontier::move(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
  const Frame from = frames_[depth];
  work_ += from.end - from.begin;
  entries_.resize(from.end);
  stacks.truncate(from.num_nodes);
  open(depth + 1, stacks);
  for (std::uint32_t i = from.begin; i < from.end; ++i) {
    const Stack stack = entries_[i];
    const std::uint32_t target = automaton_.next(stack.state, byte);
    if (target != Automaton::kNone) add({target, stack.below});
  }
  return entries_.size() > from.end;
}

bool Frontier::close(Stacks& stacks, std::size_t depth) {
  for (std::uint32_t i = begin_; i < entries_.size() && !full(); ++i) {
    const Stack stack = entries_[i];
    for (const Automaton::Call& call : automaton_.calls_of(stack.state)) {
      add({call.callee, call.back == Automaton::kNone ? stack.below : stacks.push(call.back, stack.below)});
    }
    if (automaton_.states[stack.state].final) add(stacks.pop(stack.below));
  }
  if (full()) return lose();
  frames_[depth].num_nodes = stacks.size();
  return keep(depth, [this](std::uint32_t state) { return !automaton_.runs_of(state).empty(); });
}

bool Frontier::lose() {
  lost_ = true;
  entries_.resize(begin_);
  return false;
}

bool Frontier::finish(Stacks& stacks, std::size_t depth, std::vector<Stack>& tops) {
  for (std::uint32_t i = begin_; i < entries_.size() && !full(); ++i) {
    const Stack stack = entries_[i];
    if (automaton_.states[stack.state].ends) add(stacks.pop(stack.below));
  }
  if (full()) return lose();
  keep(depth, [this](std::uint32_t state) { return !automaton_.only_ends(state); });
  tops.assign(entries_.begin() + begin_, entries_.end());
  return true;
}

template <typename Keep>
bool Frontier::keep(std::size_t depth, const Keep& keep) {
  std::uint32_t end = begin_;
  for (std::uint32_t i = begin_; i < entries_.size(); ++i) {
    const std::uint32_t state = entries_[i].state;
    if (state == Automaton::kEnd) frames_[depth].bottom = true;
    if (state == Automaton::kEnd || keep(state)) entries_[end++] = entries_[i];
  }
  entries_.resize(end);
  frames_[depth].end = end;
  return end > begin_;
}

}  // namespace quire::grammar
