// The sequences that wait, in order of arrival, and who of them is next: the policy.
//   fcfs      by arrival                                    nobody is overtaken
//   priority, deadline, cache   by that, then by arrival    at most max_overtakes later arrivals go first; then it is next
//   fair      tenants in turn, each by arrival: deficit round robin over the tokens that a sequence may need (prompt and
//             answer). Between two turns of a tenant every other one starts at most one quantum and one sequence's tokens.
// A sequence that was sent back keeps its place by arrival, and costs its tenant nothing again.
// Owner   the Scheduler. Borrows sequences.
// Thread  engine.
// Source  deficit round robin: Shreedhar & Varghese 1996; the bound on overtaking is ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/thread_role.h"
#include "core/kv/prefix_index.h"
#include "core/schedule/options.h"
#include "core/schedule/sequence.h"

namespace quire::schedule {

class WaitingLine {
 public:
  WaitingLine(const SchedulerOptions& options, kv::PrefixIndex& index) : options_(options), index_(index) {}

  void add(Sequence& sequence) REQUIRES(engine_role);
  void remove(Sequence& sequence) REQUIRES(engine_role);

  // Nobody is passed any more.
  void begin_plan() REQUIRES(engine_role);
  // The next one that is neither parked nor passed, or null. The same until something changes.
  Sequence* next() REQUIRES(engine_role);
  // It was admitted: it leaves the line, and those that it overtook remember it.
  void admit(Sequence& sequence) REQUIRES(engine_role);

  std::span<Sequence* const> sequences() const { return line_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(line_.size()); }
  std::uint64_t num_overtakes() const { return num_overtakes_; }

 private:
  using Line = std::vector<Sequence*>;  // by arrival
  struct Tenant {
    std::uint32_t id = 0;
    std::uint64_t deficit_tokens = 0;
    Line line;
  };

  static bool eligible(const Sequence* sequence) { return !sequence->parked && !sequence->passed; }
  // Where it stands now, or stood.
  static std::size_t insert(Line& line, Sequence& sequence);
  static std::size_t erase(Line& line, Sequence& sequence);
  static Sequence* first_eligible(const Line& line);
  static std::uint64_t cost_tokens(const Sequence& sequence);

  Sequence* most_urgent() const;
  Sequence* longest_cached() REQUIRES(engine_role);
  bool more_urgent(const Sequence& a, const Sequence& b) const;
  Sequence* fair_turn();
  void pass_turn_to(std::size_t tenant);
  Tenant& tenant_of(const Sequence& sequence);

  const SchedulerOptions& options_;
  kv::PrefixIndex& index_;
  Line line_;
  std::size_t first_open_ = 0;   // fcfs: nobody before it is eligible in this plan
  std::vector<Tenant> tenants_;  // fair: those that have somebody waiting, in turn
  std::size_t in_turn_ = 0;      // whose turn it is
  std::uint64_t num_plans_ = 0;
  std::uint64_t num_overtakes_ = 0;
};

}  // namespace quire::schedule
