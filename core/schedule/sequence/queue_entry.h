// Scheduling state of one sequence, for the waiting queue and the policies: its place by arrival, the later arrivals
// that overtook it, its tenant's charges, and what it waits for. A record; a method where members change together.
// Shape   plans are counted from 1: by the Scheduler for added_in and prefix_wait_plan, by the WaitingQueue for
//         estimated_at.
// Owner   a Sequence, running ones included. The waiting queue writes the members of its policy, the Scheduler the
//         others.
// Thread  engine.
// Fails   never.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/flow/wait_cause.h"

namespace quire::schedule {

struct QueueEntry {
  // `arrival`: its id; for a fork that of its first ancestor.
  QueueEntry(SeqId its_id, SeqId its_arrival) : id(its_id), arrival(its_arrival) {}

  // A strict order of all sequences. A fork has the arrival of its parent.
  bool arrived_before(const QueueEntry& other) const {
    return arrival != other.arrival ? arrival < other.arrival : id < other.id;
  }

  // The scheduler has admitted the sequence, for the first time or after a preemption: it has had no output since.
  void note_admitted() REQUIRES(engine_role) {
    started = true;
    has_output = false;
  }

  // Charges the tenant for the first `num_tokens` tokens. Returns the number of those that were not charged yet.
  std::uint32_t charge(std::uint32_t num_tokens) REQUIRES(engine_role) {
    const std::uint32_t uncharged = num_tokens - std::min(num_tokens, charged_tokens);
    charged_tokens += uncharged;
    return uncharged;
  }

  // Cause of its wait as of plan `plan`, the first one that does not leave it waiting. `of_others`: why the plan before
  // admitted no further sequence.
  flow::WaitCause cause_of_wait(std::uint64_t plan, flow::WaitCause of_others) const {
    if (added_in + 1 == plan) return flow::WaitCause::kNone;
    return prefix_wait_plan + 1 == plan ? flow::WaitCause::kPrefix : of_others;
  }

  // True if the estimate is less than `num_plans` plans old in plan `plan`.
  bool has_estimate(std::uint64_t plan, std::uint64_t num_plans) const {
    return estimated_at != 0 && plan - estimated_at < num_plans;
  }
  void note_estimate(std::uint64_t plan, std::uint32_t hit) REQUIRES(engine_role) {
    estimated_hit = hit;
    estimated_at = std::max<std::uint64_t>(plan, 1);
  }

  const SeqId id;
  const SeqId arrival;
  bool skipped = false;     // not to be admitted in the step being planned
  bool started = false;     // was admitted before (a fork: or its parent was)
  bool has_output = false;  // since its last admission: a sampled token (beam search: its candidates), or all scores or
                            // the embedding of its prompt
  std::uint32_t overtaken = 0;         // number of later arrivals that were admitted before it
  std::uint32_t place = 0;             // index of its leaf in an UrgencyTree, while it is in one
  std::uint32_t charged_tokens = 0;    // first tokens of it that its tenant was charged for, or that were cached (free)
  std::uint64_t added_in = 0;          // the plan after which it began to wait
  std::uint64_t prefix_wait_plan = 0;  // the plan in which it last waited for another sequence's prefix; 0: never
  SeqId waits_for{};                   // the running sequence that computes the prefix it waits for; 0: none known
  flow::WaitCause waited_for = flow::WaitCause::kNone;  // cause of its first wait, once started
  std::uint32_t estimated_hit = 0;                      // tokens that it would adopt from the prefix index
  std::uint64_t estimated_at = 0;                       // the plan in which that was so; 0: none
};

}  // namespace quire::schedule
