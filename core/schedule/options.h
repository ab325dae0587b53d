// Scheduling options of the operator. Plain data, checked in app/.
#pragma once

#include <cstdint>

namespace quire::schedule {

// Order of admission (waiting_queue.h).
enum class Policy : std::uint8_t {
  kFcfs,      // by arrival
  kPriority,  // Request::priority, lower first
  kDeadline,  // Request::due(), earlier first: the earlier of deadline and first_token_by; none last
  kFair,      // the tenant that was served least for its weight, within a tenant by priority
  kCache,     // the longest cached prefix first
};
// The sequence that is preempted when no block is free. The newest one of equals.
enum class Victim : std::uint8_t { kNewest, kLongest, kLowestPriority };

struct SchedulerOptions {
  std::uint32_t max_num_seqs = 64;
  // Rows of a step, >= min(2, max_num_seqs). If fewer than max_num_seqs, decoding sequences are served round-robin.
  std::uint32_t max_num_batched_tokens = 512;
  // Logits rows of a step that the device has room for, >= max_num_seqs: one for every running sequence, the rest for
  // scored prompts and drafts. 0: max_num_seqs.
  std::uint32_t max_logits_rows = 0;
  Policy policy = Policy::kFcfs;
  Victim victim = Victim::kNewest;
  std::uint32_t max_overtakes = 64;   // later arrivals that may be admitted first; then a waiting sequence is next
  std::uint32_t num_swap_blocks = 0;  // host blocks for preempted sequences; 0: these are recomputed
  // int4: the newest, incomplete group of 16 positions of each sequence is stored apart in full precision (KIVI's
  // residual).
  bool residual_groups = false;
  bool poison = false;  // fills blocks that become empty, and blocks just taken, with NaN (debugging)
};

}  // namespace quire::schedule
