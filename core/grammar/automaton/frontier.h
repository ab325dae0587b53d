// All stacks on which bytes can be read next, one set for every byte read: a traversal of texts with common prefixes
// steps forward and back through these sets.
// Shape   depth d holds the stacks after d bytes: calls are entered, ends followed, duplicates removed. Stacks on which
//         no byte could follow are left out, except for the bottom, which means that a text may end here.
// Owner   Masks. The Stacks passed in are the caller's: step() drops nodes that sets deeper than `depth` had pushed.
// Thread  one at a time.
// Fails   a text that can be parsed in more than kMaxStacks ways is not followed: the set is empty, lost() is true.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/stacks.h"

namespace quire::grammar {

inline constexpr std::uint32_t kMaxStacks = 2000;

class Frontier {
 public:
  explicit Frontier(const Automaton& automaton);

  // Makes depth 0 the set that `tops` stand for. False: it is empty.
  bool begin(Stacks& stacks, std::span<const Stack> tops);
  // Makes depth + 1 the set of `depth` after `byte`. False, and an empty set: no text goes on like this.
  bool step(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
    return frames_[depth].end - frames_[depth].begin == 1 ? step_alone(stacks, depth, byte)
                                                          : move(stacks, depth, byte) && close(stacks, depth + 1);
  }
  // The same in minimal form: `tops` from which begin() makes the set, with the bottom if a text may end here.
  bool last_step(Stacks& stacks, std::size_t depth, std::uint8_t byte, std::vector<Stack>& tops);
  bool settle(Stacks& stacks, std::vector<Stack>& tops);  // begins with `tops`, and replaces them by their minimal form

  bool lost() const { return lost_; }                   // since begin() or settle()
  std::uint64_t work() const { return work_; }          // stacks visited since construction
  std::span<const Stack> at(std::size_t depth) const {  // until the next step
    return {entries_.data() + frames_[depth].begin, entries_.data() + frames_[depth].end};
  }
  bool at_bottom(std::size_t depth) const { return frames_[depth].bottom; }
  bool only_bottom(std::size_t depth) const {
    return frames_[depth].bottom && frames_[depth].end - frames_[depth].begin == 1;
  }

 private:
  static constexpr std::size_t kFew = 16;         // up to so many stacks are compared one by one
  static constexpr std::size_t kNumSlots = 8192;  // a power of two, well above kMaxStacks
  struct Slot {
    std::uint32_t set = 0;    // num_sets_ when it was filled; another value: free
    std::uint32_t entry = 0;  // index into entries_
  };
  struct Frame {
    std::uint32_t begin = 0, end = 0;  // range of entries_
    std::size_t num_nodes = 0;         // of Stacks, after the set was made
    bool bottom = false;
  };

  void start(Stacks& stacks, std::span<const Stack> tops);
  void open(std::size_t depth, const Stacks& stacks);
  bool step_alone(Stacks& stacks, std::size_t depth, std::uint8_t byte);
  bool move(Stacks& stacks, std::size_t depth, std::uint8_t byte);
  bool close(Stacks& stacks, std::size_t depth);
  bool lose();
  bool finish(Stacks& stacks, std::size_t depth, std::vector<Stack>& tops);
  bool full() const { return entries_.size() - begin_ > kMaxStacks; }
  void add(Stack stack);
  Slot& slot_of(Stack stack);
  template <typename Keep>
  bool keep(std::size_t depth, const Keep& keep);

  const Automaton& automaton_;
  std::vector<Stack> entries_;
  std::vector<Frame> frames_;
  std::uint32_t begin_ = 0;  // first entry of the set being made
  bool lost_ = false;
  std::uint64_t work_ = 0;
  std::uint32_t num_sets_ = 0;  // sets so far of more than kFew stacks
  bool hashed_ = false;         // the set being made is such a set
  std::vector<Slot> slots_;     // hash table of the set being made
};

}  // namespace quire::grammar
