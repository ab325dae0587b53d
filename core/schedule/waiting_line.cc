#include "core/schedule/waiting_line.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

// What is cached for a waiting prompt is looked up anew so often only: each look is a walk over the prompt.
constexpr std::size_t kCacheLooks = 32;    // sequences that are compared
constexpr std::uint64_t kGuessHolds = 16;  // plans

bool in_order(const Sequence* a, const Sequence* b) { return a->arrived_before(*b); }

}  // namespace

void WaitingLine::add(Sequence& sequence) {
  if (is_fair()) return fair_.add(sequence);
  const auto at = line_.insert(std::ranges::upper_bound(line_, &sequence, in_order), &sequence);
  first_open_ = std::min(first_open_, static_cast<std::size_t>(at - line_.begin()));
}

void WaitingLine::remove(Sequence& sequence) {
  if (is_fair()) return fair_.remove(sequence);
  const auto at = std::ranges::lower_bound(line_, &sequence, in_order);
  CHECK(at != line_.end() && *at == &sequence);
  if (static_cast<std::size_t>(at - line_.begin()) < first_open_) --first_open_;
  line_.erase(at);
}

void WaitingLine::begin_plan() {
  ++num_plans_;
  first_open_ = 0;
  if (is_fair()) return fair_.begin_plan();
  for (Sequence* one : line_) one->passed = false;
}

void WaitingLine::pass(Sequence& sequence) {
  if (is_fair()) return fair_.pass(sequence);
  sequence.passed = true;
}

Sequence* WaitingLine::next() {
  switch (options_.policy) {
    case Policy::kFcfs:
      while (first_open_ < line_.size() && !eligible(line_[first_open_])) ++first_open_;
      return first_open_ < line_.size() ? line_[first_open_] : nullptr;
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

bool WaitingLine::more_urgent(const Sequence& a, const Sequence& b) const {
  if (options_.policy == Policy::kDeadline) return a.request().due() < b.request().due();
  return a.request().priority < b.request().priority;
}

// Of equals the one that arrived first; before all of them the first that was overtaken as often as may be.
Sequence* WaitingLine::most_urgent() const {
  Sequence* first = nullptr;
  for (Sequence* one : line_) {
    if (!eligible(one)) continue;
    if (one->overtaken >= options_.max_overtakes) return one;
    if (first == nullptr || more_urgent(*one, *first)) first = one;
  }
  return first;
}

Sequence* WaitingLine::longest_cached() {
  Sequence* best = nullptr;
  std::size_t looks = 0;
  for (Sequence* one : line_) {
    if (!eligible(one)) continue;
    if (one->overtaken >= options_.max_overtakes) return one;
    if (looks++ >= kCacheLooks) continue;
    if (one->guessed_at == 0 || num_plans_ - one->guessed_at >= kGuessHolds) {
      one->cached_guess = one->cached_tokens(index_);
      one->guessed_at = std::max<std::uint64_t>(num_plans_, 1);
    }
    if (best == nullptr || one->cached_guess > best->cached_guess) best = one;
  }
  return best;
}

void WaitingLine::admit(Sequence& sequence) {
  if (is_fair()) {
    num_overtakes_ += fair_.admit(sequence);
    return;
  }
  if (options_.policy != Policy::kFcfs && !sequence.started) {
    for (Sequence* one : line_) {
      if (one == &sequence) break;
      if (!eligible(one)) continue;
      ++one->overtaken;
      ++num_overtakes_;
    }
  }
  remove(sequence);
}

void WaitingLine::charge(Sequence& sequence, std::uint32_t num_tokens) {
  if (is_fair()) fair_.charge(sequence, num_tokens);
}

}  // namespace quire::schedule
