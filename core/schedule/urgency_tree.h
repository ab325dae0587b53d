// One tenant's sequences that wait for their first run, and the next of them, in O(log n).
// Shape   a tournament tree whose leaves are in order of arrival. A node has the most urgent open sequence below it (of
//         equals the earliest), the highest overtaken count below it, and an addition to the counts of all below it: an
//         admission updates one path, however many sequences it overtakes. A leaf is open, or closed: skipped until it
//         is opened again.
// Owner   a FairQueue's tenant. Borrows sequences; QueueEntry::overtaken is up to date once its leaf is closed or
//         removed.
// Thread  engine.
// Source  ours: a segment tree whose range additions are never pushed down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/thread_role.h"
#include "core/schedule/sequence/sequence.h"

namespace quire::schedule {

class UrgencyTree {
 public:
  void add(Sequence& sequence) REQUIRES(engine_role);  // open
  void remove(Sequence& sequence) REQUIRES(engine_role);
  void close(Sequence& sequence) REQUIRES(engine_role);
  void open(Sequence& sequence) REQUIRES(engine_role);

  // Among the open sequences: the first, by arrival, that was overtaken at least max_overtakes times, else the most
  // urgent one. Null: none is open.
  Sequence* next(std::uint32_t max_overtakes) const;
  // Adds one to the overtaken count of every open sequence that arrived before it. Returns their number.
  std::uint32_t overtake(const Sequence& sequence) REQUIRES(engine_role);

  bool empty() const { return num_held_ == 0; }

 private:
  struct Node {
    Sequence* best = nullptr;  // most urgent open sequence below; null: none is open
    std::uint32_t num_open = 0;
    std::int64_t added = 0;      // addition to the counts of all below
    std::int64_t overtaken = 0;  // highest count below, this node's addition included, those above it not
  };

  std::size_t capacity() const { return nodes_.size() / 2; }
  static bool more_urgent(const Sequence& a, const Sequence& b) { return a.request().priority < b.request().priority; }
  std::int64_t added_above(std::size_t node) const;
  void refresh(std::size_t node);
  void refresh_above(std::size_t node);
  void rebuild(Sequence* more) REQUIRES(engine_role);

  std::vector<Sequence*> places_;  // by leaf, in order of arrival; null: removed
  std::vector<Node> nodes_;        // [2 · capacity] the root is 1, leaf i is capacity + i
  std::size_t num_held_ = 0;
};

}  // namespace quire::schedule
