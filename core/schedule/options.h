// What the operator decides about scheduling. Plain data, checked in app/.
#pragma once

#include <cstdint>

namespace quire::schedule {

// Who is admitted next.
enum class Policy : std::uint8_t {
  kFcfs,      // by arrival
  kPriority,  // Request::priority, lower first
  kDeadline,  // Request::deadline, earlier first, none last
  kFair,      // the tenant that was served least, and of its own by priority
  kCache,     // the longest cached prefix first
};
// Who gives up its place when the pool is dry. Ties, and what the name leaves open: the newest.
enum class Victim : std::uint8_t { kNewest, kLongest, kLowestPriority };

struct SchedulerOptions {
  std::uint32_t max_num_seqs = 64;
  // Rows of a step, >= 2 or max_num_seqs. Fewer than max_num_seqs: those that decode are served round-robin.
  std::uint32_t max_num_batched_tokens = 512;
  // Rows of a step whose logits are computed, >= max_num_seqs: one for every sequence that speaks, what is left for prompts
  // that are scored. What the device has room for; 0: max_num_seqs.
  std::uint32_t max_logit_rows = 0;
  Policy policy = Policy::kFcfs;
  Victim victim = Victim::kNewest;
  std::uint32_t max_overtakes = 64;   // so many later arrivals may go first; then a waiting sequence is next
  std::uint32_t num_swap_blocks = 0;  // host blocks that preempted sequences move to; 0: they are recomputed
  std::uint32_t window = 0;  // every layer looks back so far and no farther: older blocks are given back; 0: all
  bool open_groups =
      false;            // int4: a sequence's newest, unfinished group of 16 positions is kept apart, in full precision
  bool poison = false;  // blocks given back, and fresh ones, are filled with NaN
};

}  // namespace quire::schedule
