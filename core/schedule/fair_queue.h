// The waiting sequences under policy fair (defined in waiting_queue.h), and the next of them, in O(log n) an admission.
// Shape   tenants with an open sequence, by what they were served and then by the arrival of their next sequence;
//         sequences that ran before, by arrival.
//         A sequence that is skipped or paused when it would be next is set aside until the next plan. Only sequences
//         that ran before can be paused: the others have emitted nothing that a client could leave unread.
// Owner   the WaitingQueue. Borrows sequences.
// Thread  engine.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/base/thread_role.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence/sequence.h"
#include "core/schedule/urgency_tree.h"

namespace quire::schedule {

class FairQueue {
 public:
  explicit FairQueue(const SchedulerOptions& options) : options_(options) {}

  void add(Sequence& sequence) REQUIRES(engine_role);
  void remove(Sequence& sequence) REQUIRES(engine_role);
  void begin_plan() REQUIRES(engine_role);
  void pass(Sequence& sequence) REQUIRES(engine_role);  // skips it in this plan
  Sequence* next() REQUIRES(engine_role);
  // Removes a sequence that is about to run. Returns the number of sequences that it overtakes.
  std::uint32_t admit(Sequence& sequence) REQUIRES(engine_role);
  void charge(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);

  std::uint32_t size() const { return num_waiting_; }
  double served(std::uint32_t tenant) const;

 private:
  struct Tenant {
    double served = 0.0;
    std::uint32_t num_waiting = 0;
    UrgencyTree line;          // its sequences that have not run
    Sequence* head = nullptr;  // the next of them
  };
  struct Rank {
    double served;
    const Sequence* head;
    Tenant* tenant;
    bool operator<(const Rank& other) const;
  };
  struct ByArrival {
    bool operator()(const Sequence* a, const Sequence* b) const { return a->queue.arrived_before(b->queue); }
  };

  static bool eligible(const Sequence& sequence) { return !sequence.paused && !sequence.queue.skipped; }
  void stand_aside(Sequence& sequence) REQUIRES(engine_role);
  void take_out(Tenant& tenant);  // of ranks_, before its head or its service changes
  void put_in(Tenant& tenant);

  const SchedulerOptions& options_;
  std::unordered_map<std::uint32_t, Tenant> tenants_;  // all that ever waited
  std::set<Rank> ranks_;                               // tenants that have a head
  std::set<Sequence*, ByArrival> returning_;           // sequences that ran before and are not set aside
  std::vector<Sequence*> aside_;
  std::uint32_t num_waiting_ = 0;
  double served_least_ = 0.0;  // highest service of a tenant when a sequence of it was admitted: the level of newcomers
};

}  // namespace quire::schedule
