#include "core/schedule/waiting_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

// Limits on prefix cache lookups for waiting prompts: each lookup reads the whole prompt.
constexpr std::size_t kCacheLooks = 32;       // first eligible sequences that are compared
constexpr std::uint64_t kEstimateHolds = 16;  // plans for which a lookup's result is used

bool in_order(const Sequence* a, const Sequence* b) { return a->queue.arrived_before(b->queue); }

}  // namespace

void WaitingQueue::add(Sequence& sequence) {
  if (is_fair()) return fair_.add(sequence);
  const auto at = line_.insert(std::ranges::upper_bound(line_, &sequence, in_order), &sequence);
  first_eligible_ = std::min(first_eligible_, static_cast<std::size_t>(at - line_.begin()));
}

void WaitingQueue::remove(Sequence& sequence) {
  if (is_fair()) return fair_.remove(sequence);
  const auto at = std::ranges::lower_bound(line_, &sequence, in_order);
  CHECK(at != line_.end() && *at == &sequence);
  if (static_cast<std::size_t>(at - line_.begin()) < first_eligible_) --first_eligible_;
  line_.erase(at);
}

void WaitingQueue::begin_plan() {
  ++num_plans_;
  first_eligible_ = 0;
  if (is_fair()) return fair_.begin_plan();
  for (Sequence* one : line_) one->queue.skipped = false;
}

void WaitingQueue::pass(Sequence& sequence) {
  if (is_fair()) return fair_.pass(sequence);
  sequence.queue.skipped = true;
}

Sequence* WaitingQueue::next() {
  switch (options_.policy) {
    case Policy::kFcfs:
      while (first_eligible_ < line_.size() && !eligible(line_[first_eligible_])) ++first_eligible_;
      return first_eligible_ < line_.size() ? line_[first_eligible_] : nullptr;
    case Policy::kPriority:
    case Policy::kDeadline:
      return most_urgent();
    case Policy::kCache:
      return longest_cached();
    case Policy::kFair:
      return fair_.next();
  }
  return nullptr;
}

bool WaitingQueue::more_urgent(const Sequence& a, const Sequence& b) const {
  if (options_.policy == Policy::kDeadline) return a.request().due() < b.request().due();
  return a.request().priority < b.request().priority;
}

// The first sequence that was overtaken max_overtakes times, else the most urgent one; of equals the earliest.
Sequence* WaitingQueue::most_urgent() const {
  Sequence* first = nullptr;
  for (Sequence* one : line_) {
    if (!eligible(one)) continue;
    if (one->queue.overtaken >= options_.max_overtakes) return one;
    if (first == nullptr || more_urgent(*one, *first)) first = one;
  }
  return first;
}

Sequence* WaitingQueue::longest_cached() {
  Sequence* best = nullptr;
  std::size_t looks = 0;
  for (Sequence* one : line_) {
    if (!eligible(one)) continue;
    if (one->queue.overtaken >= options_.max_overtakes) return one;
    if (looks++ >= kCacheLooks) continue;
    if (!one->queue.has_estimate(num_plans_, kEstimateHolds)) {
      one->queue.note_estimate(num_plans_, one->prefix.num_cached(index_, one->adoptable()));
    }
    if (best == nullptr || one->queue.estimated_hit > best->queue.estimated_hit) best = one;
  }
  return best;
}

void WaitingQueue::admit(Sequence& sequence) {
  if (is_fair()) {
    num_overtakes_ += fair_.admit(sequence);
    return;
  }
  if (options_.policy != Policy::kFcfs && !sequence.queue.started) {
    for (Sequence* one : line_) {
      if (one == &sequence) break;
      if (!eligible(one)) continue;
      ++one->queue.overtaken;
      ++num_overtakes_;
    }
  }
  remove(sequence);
}

void WaitingQueue::charge(Sequence& sequence, std::uint32_t num_tokens) {
  if (is_fair()) fair_.charge(sequence, num_tokens);
}

}  // namespace quire::schedule
