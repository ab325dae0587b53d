// One tenant's sequences that wait for their first run: who of them is next, in O(log n).
// Shape   a tournament over places in order of arrival. A node has the most urgent sequence below it (of equals the earliest), how often
//         the one below it was overtaken that was most often, and what is to be added to that of all below: so that who is admitted
//         touches one path, however many it overtakes. A place is open, or closed: passed over until it is opened.
// Owner   a FairLine's tenant. Borrows sequences; Sequence::overtaken is up to date when its place is closed or given up.
// Thread  engine.
// Source  ours: a segment tree with additions that stay where they were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/thread_role.h"
#include "core/schedule/sequence.h"

namespace quire::schedule {

class UrgencyTree {
 public:
  void add(Sequence& sequence) REQUIRES(engine_role);  // open
  void remove(Sequence& sequence) REQUIRES(engine_role);
  void close(Sequence& sequence) REQUIRES(engine_role);
  void open(Sequence& sequence) REQUIRES(engine_role);

  // Of those that are open the first that was overtaken so often, or else the most urgent; null: there is none.
  Sequence* next(std::uint32_t max_overtakes) const;
  // Those open that arrived before it are overtaken once more. How many that are.
  std::uint32_t overtake(const Sequence& sequence) REQUIRES(engine_role);

  bool empty() const { return num_held_ == 0; }

 private:
  struct Node {
    Sequence* best = nullptr;  // null: nobody below is open
    std::uint32_t num_open = 0;
    std::int64_t added = 0;      // to all below
    std::int64_t overtaken = 0;  // the most of those below, with added; of a leaf without what was added above it
  };

  std::size_t capacity() const { return nodes_.size() / 2; }
  static bool more_urgent(const Sequence& a, const Sequence& b) { return a.request().priority < b.request().priority; }
  std::int64_t added_above(std::size_t node) const;
  void refresh(std::size_t node);
  void refresh_above(std::size_t node);
  void rebuild(Sequence* more) REQUIRES(engine_role);

  std::vector<Sequence*> places_;  // in order of arrival; null: given up
  std::vector<Node> nodes_;        // [2 · capacity] the root is 1, the leaf of place i is capacity + i
  std::size_t num_held_ = 0;
};

}  // namespace quire::schedule
