// All stacks on which bytes can be read next, one set for every byte read: what a walk over texts with beginnings in common
// goes forth and back on.
// Shape   depth d holds the stacks after d bytes: calls entered, ends followed, equal stacks once, none on which no byte could
//         follow but the bottom, which says that a text may end here.
// Owner   Masks. The Stacks it is used with are the caller's: step() forgets what deeper sets than `depth` had pushed there.
// Thread  one at a time.
// Fails   beyond kMaxStacks ways to read a text, that text is not followed: the set is empty, and lost() says so.
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

  // Depth 0 is what `tops` stand for.
  bool begin(Stacks& stacks, std::span<const Stack> tops);
  // Depth + 1 is depth after `byte`. False, and nothing there: no text goes on like this.
  bool step(Stacks& stacks, std::size_t depth, std::uint8_t byte) {
    return frames_[depth].end - frames_[depth].begin == 1 ? step_alone(stacks, depth, byte)
                                                          : move(stacks, depth, byte) && close(stacks, depth + 1);
  }
  // The same, but in the least form: `tops` such that begin() gives the set, and the bottom among them where a text may end.
  bool last_step(Stacks& stacks, std::size_t depth, std::uint8_t byte, std::vector<Stack>& tops);
  bool settle(Stacks& stacks, std::vector<Stack>& tops);  // begins with `tops`, gives them their least form

  bool lost() const { return lost_; }                   // since begin() or settle()
  std::uint64_t work() const { return work_; }          // stacks looked at, since the start
  std::span<const Stack> at(std::size_t depth) const {  // until the next step
    return {entries_.data() + frames_[depth].begin, entries_.data() + frames_[depth].end};
  }
  bool at_bottom(std::size_t depth) const { return frames_[depth].bottom; }
  bool only_bottom(std::size_t depth) const {
    return frames_[depth].bottom && frames_[depth].end - frames_[depth].begin == 1;
  }

 private:
  static constexpr std::size_t kFew = 16;         // stacks that are compared one by one
  static constexpr std::size_t kNumSlots = 8192;  // a power of two, well above kMaxStacks
  struct Slot {
    std::uint32_t set = 0;    // num_sets_ when it was filled; other than now: free
    std::uint32_t entry = 0;  // in entries_
  };
  struct Frame {
    std::uint32_t begin = 0, end = 0;  // of entries_
    std::size_t num_nodes = 0;         // of Stacks once the set was made
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
  std::uint32_t begin_ = 0;  // of the set being made
  bool lost_ = false;
  std::uint64_t work_ = 0;
  std::uint32_t num_sets_ = 0;  // that were too many for kFew
  bool hashed_ = false;         // the set being made is one of them
  std::vector<Slot> slots_;     // of a set being made
};

}  // namespace quire::grammar
