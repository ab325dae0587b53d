// The waiting sequences in order of arrival, and the policy that picks the next one to admit.
//   fcfs      by arrival, without overtaking
//   priority, deadline, cache   by that key, then by arrival. A sequence is next once max_overtakes later arrivals were
//             admitted before it.
//   fair      the tenant that was served least for its weight; within a tenant as under priority. A tenant is charged
//             for a prompt's uncached tokens when the sequence is admitted, and for answer tokens as their rows are
//             planned. A tenant that begins to wait is raised to the level of the others: credit is not saved up. While
//             two tenants wait, their services divided by weight differ by at most a prompt and the answers that may
//             run at once, of each.
// A preempted sequence keeps its place by arrival. Under fair it goes before all that have not run: its tokens are
// charged already.
// Owner   the Scheduler. Borrows sequences.
// Thread  engine.
// Source  fair: the virtual token counter, Sheng et al. 2024 (Fairness in Serving Large Language Models), with its
//         bound; tokens divided by weights as in weighted fair queueing. The bound on overtaking is ours.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/thread_role.h"
#include "core/kv/prefix_index.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence/sequence.h"

namespace quire::schedule {

class WaitingQueue {
 public:
  WaitingQueue(const SchedulerOptions& options, kv::PrefixIndex& index)
      : options_(options), index_(index), fair_(options) {}

  void add(Sequence& sequence) REQUIRES(engine_role);
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // A new plan: no sequence is skipped any more.
  void begin_plan() REQUIRES(engine_role);
  // The next sequence that is neither paused nor skipped, or null. The same one until something changes.
  Sequence* next() REQUIRES(engine_role);
  // Skips the sequence for the rest of this plan.
  void pass(Sequence& sequence) REQUIRES(engine_role);
  // Removes an admitted sequence, and counts it as overtaking the earlier arrivals that could have been next.
  void admit(Sequence& sequence) REQUIRES(engine_role);
  // Charges its tenant for its first `num_tokens` tokens, as far as they are not charged yet (under fair).
  void charge(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);

  std::uint32_t size() const { return is_fair() ? fair_.size() : static_cast<std::uint32_t>(line_.size()); }
  std::uint64_t num_overtakes() const { return num_overtakes_; }
  // Under fair: the tokens charged to the tenant, each divided by its request's weight, and what it was raised by when
  // it began to wait.
  double served(std::uint32_t tenant) const { return fair_.served(tenant); }

 private:
  static bool eligible(const Sequence* sequence) { return !sequence->paused && !sequence->queue.skipped; }
  bool is_fair() const { return options_.policy == Policy::kFair; }

  Sequence* most_urgent() const;
  Sequence* longest_cached() REQUIRES(engine_role);
  bool more_urgent(const Sequence& a, const Sequence& b) const;

  const SchedulerOptions& options_;
  kv::PrefixIndex& index_;
  FairQueue fair_;                  // used under fair; the members below are for the other policies
  std::vector<Sequence*> line_;     // by arrival
  std::size_t first_eligible_ = 0;  // fcfs: index in line_ before which no sequence is eligible in this plan
  std::uint64_t num_plans_ = 0;
  std::uint64_t num_overtakes_ = 0;
};

}  // namespace quire::schedule
