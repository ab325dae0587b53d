#include "core/grammar/automaton/frontier.h"

namespace quire::grammar {

Frontier::Frontier(const Automaton& automaton) : automaton_(automaton), last_(automaton.size(), 0) {
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
  frames_[depth] = {begin_, begin_, stacks.size(), false};
}

void Frontier::add(Stack stack) {
  std::uint32_t& last = last_[stack.state];
  std::uint32_t same = Automaton::kNone;
  // Entries are dropped without a word to last_: what it says counts if it is of this set, and of this state.
  if (last >= begin_ && last < entries_.size() && entries_[last].stack.state == stack.state) {
    for (same = last; same != Automaton::kNone; same = entries_[same].same_state) {
      if (entries_[same].stack.below == stack.below) return;
    }
    same = last;
  }
  last = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({stack, same});
}

// Of one stack, as inside a string: most steps need no more than this.
bool Frontier::step_alone(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
  const Frame from = frames_[depth];
  const Stack stack = entries_[from.begin].stack;
  const std::uint32_t target = automaton_.next(stack.state, byte);
  if (target == Automaton::kNone) return false;
  if (!automaton_.states[target].plain) return move(stacks, depth, byte) && close(stacks, depth + 1);
  if (stacks.size() > from.num_nodes) stacks.truncate(from.num_nodes);
  if (depth + 1 == frames_.size()) frames_.resize(2 * frames_.size());
  entries_.resize(from.end);
  entries_.push_back({{target, stack.below}, Automaton::kNone});
  frames_[depth + 1] = {from.end, from.end + 1, from.num_nodes, false};
  return true;
}

bool Frontier::move(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
  const Frame from = frames_[depth];
  entries_.resize(from.end);
  stacks.truncate(from.num_nodes);
  open(depth + 1, stacks);
  for (std::uint32_t i = from.begin; i < from.end; ++i) {
    const Stack stack = entries_[i].stack;
    const std::uint32_t target = automaton_.next(stack.state, byte);
    if (target != Automaton::kNone) add({target, stack.below});
  }
  return entries_.size() > from.end;
}

bool Frontier::close(Stacks& stacks, std::size_t depth) {
  for (std::uint32_t i = begin_; i < entries_.size(); ++i) {
    if (i - begin_ >= kMaxStacks) {
      lost_ = true;
      entries_.resize(begin_);
      return false;
    }
    const Stack stack = entries_[i].stack;
    for (const Automaton::Call& call : automaton_.calls_of(stack.state)) {
      add({call.callee, call.back == Automaton::kNone ? stack.below : stacks.push(call.back, stack.below)});
    }
    if (automaton_.states[stack.state].final) add(stacks.pop(stack.below));
  }
  frames_[depth].num_nodes = stacks.size();
  return keep(depth, [this](std::uint32_t state) { return !automaton_.runs_of(state).empty(); });
}

bool Frontier::finish(Stacks& stacks, std::size_t depth, std::vector<Stack>& tops) {
  for (std::uint32_t i = begin_; i < entries_.size(); ++i) {
    const Stack stack = entries_[i].stack;
    if (automaton_.states[stack.state].ends) add(stacks.pop(stack.below));
  }
  if (entries_.size() - begin_ > kMaxStacks) {
    lost_ = true;
    return false;
  }
  keep(depth, [this](std::uint32_t state) { return !automaton_.only_ends(state); });
  tops.clear();
  for (std::uint32_t i = begin_; i < entries_.size(); ++i) tops.push_back(entries_[i].stack);
  return true;
}

template <typename Keep>
bool Frontier::keep(std::size_t depth, const Keep& keep) {
  std::uint32_t end = begin_;
  for (std::uint32_t i = begin_; i < entries_.size(); ++i) {
    const std::uint32_t state = entries_[i].stack.state;
    if (state == Automaton::kEnd) frames_[depth].bottom = true;
    if (state == Automaton::kEnd || keep(state)) entries_[end++] = entries_[i];
  }
  entries_.resize(end);
  frames_[depth].end = end;
  return end > begin_;
}

}  // namespace quire::grammar
