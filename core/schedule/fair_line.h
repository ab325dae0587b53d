// Who of the waiting is next under the policy fair (waiting_line.h says what that is), in O(log n) an admission.
// Shape   tenants that have somebody open, by what they were served and then by who of theirs is next; those that ran before, by arrival.
//         Who is passed or parked when it would be next stands aside until the next plan. Parked are only sequences that ran before:
//         of the others nothing was said that could wait to be read.
// Owner   the WaitingLine. Borrows sequences.
// Thread  engine.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/base/thread_role.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence.h"
#include "core/schedule/urgency_tree.h"

namespace quire::schedule {

class FairLine {
 public:
  explicit FairLine(const SchedulerOptions& options) : options_(options) {}

  void add(Sequence& sequence) REQUIRES(engine_role);
  void remove(Sequence& sequence) REQUIRES(engine_role);
  void begin_plan() REQUIRES(engine_role);
  void pass(Sequence& sequence) REQUIRES(engine_role);  // not in this plan
  Sequence* next() REQUIRES(engine_role);
  // It is about to run, and leaves the line: how many it overtakes.
  std::uint32_t admit(Sequence& sequence) REQUIRES(engine_role);
  void charge(Sequence& sequence, std::uint32_t num_tokens) REQUIRES(engine_role);

  std::uint32_t size() const { return num_waiting_; }
  double served(std::uint32_t tenant) const;

 private:
  struct Tenant {
    double served = 0.0;
    std::uint32_t num_waiting = 0;
    UrgencyTree line;          // those that have not run
    Sequence* head = nullptr;  // who of them is next
  };
  struct Rank {
    double served;
    const Sequence* head;
    Tenant* tenant;
    bool operator<(const Rank& other) const;
  };
  struct ByArrival {
    bool operator()(const Sequence* a, const Sequence* b) const { return a->arrived_before(*b); }
  };

  static bool eligible(const Sequence& sequence) { return !sequence.parked && !sequence.passed; }
  void stand_aside(Sequence& sequence) REQUIRES(engine_role);
  void take_out(Tenant& tenant);  // of ranks_, before its head or what it was served changes
  void put_in(Tenant& tenant);

  const SchedulerOptions& options_;
  std::unordered_map<std::uint32_t, Tenant> tenants_;  // all that ever waited
  std::set<Rank> ranks_;                               // of those that have a head
  std::set<Sequence*, ByArrival> returning_;           // ran before, and does not stand aside
  std::vector<Sequence*> aside_;
  std::uint32_t num_waiting_ = 0;
  double served_least_ = 0.0;  // of those that waited when somebody was last admitted
};

}  // namespace quire::schedule
