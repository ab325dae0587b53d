// The sequences that wait, in order of arrival, and who of them is next: the policy.
//   fcfs      by arrival                                    nobody is overtaken
//   priority, deadline, cache   by that, then by arrival    at most max_overtakes later arrivals go first; then it is next
//   fair      the tenant that has been served least for its weight, and of its own as under priority. Served are the tokens of
//             prompts that were to be computed, when their sequences begin, and those of answers as they are said. Who comes
//             to the line begins where the others are: nobody saves up. While two tenants wait, what they are served for
//             their weights differs by at most a prompt and the answers that may run at once, of each.
// A sequence that was sent back keeps its place by arrival, under fair before everybody who has not run: it has been paid for.
// Owner   the Scheduler. Borrows sequences.
// Thread  engine.
// Source  fair: the virtual token counter, Sheng et al. 2024 (Fairness in Serving Large Language Models), with its bound;
//         tokens divided by weights as in weighted fair queueing. The bound on overtaking is ours.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/thread_role.h"
#include "core/kv/prefix_index.h"
#include "core/schedule/fair_line.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence.h"

namespace quire::schedule {

class WaitingLine {
 public:
  WaitingLine(const SchedulerOptions& options, kv::PrefixIndex& index)
      : options_(options), index_(index), fair_(options) {}

  void add(Sequence& sequence) REQUIRES(engine_role);
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // Nobody is passed any more.
  void begin_plan() REQUIRES(engine_role);
  // The next one that is neither parked nor passed, or null. The same until something changes.
  Sequence* next() REQUIRES(engine_role);
  // It is not next any more in this plan.
  void pass(Sequence& sequence) REQUIRES(engine_role);
  // It was admitted: it leaves the line, and those that it overtook remember it.
  void admit(Sequence& sequence) REQUIRES(engine_role);
  // What it says up to `num_tokens` is on its tenant's account.
  void charge(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);

  std::uint32_t size() const { return is_fair() ? fair_.size() : static_cast<std::uint32_t>(line_.size()); }
  std::uint64_t num_overtakes() const { return num_overtakes_; }
  // Under fair: tokens that it was served, each divided by its request's weight; what it did not wait for is given.
  double served(std::uint32_t tenant) const { return fair_.served(tenant); }

 private:
  static bool eligible(const Sequence* sequence) { return !sequence->parked && !sequence->passed; }
  bool is_fair() const { return options_.policy == Policy::kFair; }

  Sequence* most_urgent() const;
  Sequence* longest_cached() REQUIRES(engine_role);
  bool more_urgent(const Sequence& a, const Sequence& b) const;

  const SchedulerOptions& options_;
  kv::PrefixIndex& index_;
  FairLine fair_;                // under fair, and all else for the other policies
  std::vector<Sequence*> line_;  // by arrival
  std::size_t first_open_ = 0;   // fcfs: nobody before it is eligible in this plan
  std::uint64_t num_plans_ = 0;
  std::uint64_t num_overtakes_ = 0;
};

}  // namespace quire::schedule
