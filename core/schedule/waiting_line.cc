#include "core/schedule/waiting_line.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

// What is cached for a waiting prompt is looked up anew so often only: each look is a walk over the prompt.
constexpr std::size_t kCacheLooks = 32;    // sequences that are compared
constexpr std::uint64_t kGuessHolds = 16;  // plans

bool in_order(const Sequence* a, const Sequence* b) { return a->arrived_before(*b); }

TimePoint deadline_of(const Sequence& sequence) { return sequence.request().deadline.value_or(TimePoint::max()); }

}  // namespace

void WaitingLine::add(Sequence& sequence) {
  first_open_ = std::min(first_open_, insert(line_, sequence));
  if (options_.policy != Policy::kFair) return;
  const std::uint32_t id = sequence.request().tenant;
  const auto at = std::ranges::find(tenants_, id, &Tenant::id);
  insert(at == tenants_.end() ? tenants_.emplace_back(Tenant{id, 0, {}}).line : at->line, sequence);
}

void WaitingLine::remove(Sequence& sequence) {
  if (erase(line_, sequence) < first_open_) --first_open_;
  if (options_.policy != Policy::kFair) return;
  Tenant& tenant = tenant_of(sequence);
  erase(tenant.line, sequence);
  if (!tenant.line.empty()) return;
  // A tenant without anybody waiting leaves the round and takes no credit along. If it was its turn it is the next one's.
  const auto index = static_cast<std::size_t>(&tenant - tenants_.data());
  tenants_.erase(tenants_.begin() + static_cast<std::ptrdiff_t>(index));
  if (index < in_turn_) {
    --in_turn_;
  } else if (index == in_turn_ && !tenants_.empty()) {
    pass_turn_to(index % tenants_.size());
  }
  if (tenants_.empty()) in_turn_ = 0;
}

void WaitingLine::begin_plan() {
  ++num_plans_;
  first_open_ = 0;
  for (Sequence* one : line_) one->passed = false;
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
      return fair_turn();
  }
  return nullptr;
}

bool WaitingLine::more_urgent(const Sequence& a, const Sequence& b) const {
  if (options_.policy == Policy::kPriority) return a.request().priority < b.request().priority;
  return deadline_of(a) < deadline_of(b);
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

// Goes round until somebody's credit covers the first in his line; that tenant stays in turn while it does.
Sequence* WaitingLine::fair_turn() {
  // Whole rounds in which nobody would start are given at once.
  std::uint64_t rounds = ~std::uint64_t{0};
  for (const Tenant& tenant : tenants_) {
    const Sequence* const head = first_eligible(tenant.line);
    if (head == nullptr) continue;
    const std::uint64_t cost = cost_tokens(*head);
    const std::uint64_t lacks = cost > tenant.deficit_tokens ? cost - tenant.deficit_tokens : 0;
    rounds = std::min(rounds, (lacks + options_.fair_quantum_tokens - 1) / options_.fair_quantum_tokens);
  }
  if (rounds == ~std::uint64_t{0}) return nullptr;
  for (Tenant& tenant : tenants_) {
    if (rounds > 1 && first_eligible(tenant.line) != nullptr) {
      tenant.deficit_tokens += (rounds - 1) * options_.fair_quantum_tokens;
    }
  }
  for (;;) {
    const Tenant& tenant = tenants_[in_turn_];
    Sequence* const head = first_eligible(tenant.line);
    if (head != nullptr && cost_tokens(*head) <= tenant.deficit_tokens) return head;
    pass_turn_to((in_turn_ + 1) % tenants_.size());
  }
}

// Who returns costs nothing: credit is for the first that has not run yet, and no more of it than covers that one.
void WaitingLine::pass_turn_to(std::size_t tenant) {
  in_turn_ = tenant;
  Tenant& next = tenants_[tenant];
  const auto fresh =
      std::ranges::find_if(next.line, [](const Sequence* one) { return eligible(one) && !one->started; });
  if (fresh != next.line.end() && cost_tokens(**fresh) > next.deficit_tokens) {
    next.deficit_tokens += options_.fair_quantum_tokens;
  }
}

WaitingLine::Tenant& WaitingLine::tenant_of(const Sequence& sequence) {
  const auto at = std::ranges::find(tenants_, sequence.request().tenant, &Tenant::id);
  CHECK(at != tenants_.end());
  return *at;
}

std::uint64_t WaitingLine::cost_tokens(const Sequence& sequence) {
  if (sequence.started) return 0;
  return std::uint64_t{sequence.num_tokens()} + sequence.request().max_tokens;
}

void WaitingLine::admit(Sequence& sequence) {
  if (options_.policy == Policy::kFair) {
    std::uint64_t& deficit = tenant_of(sequence).deficit_tokens;
    deficit -= std::min(deficit, cost_tokens(sequence));
  } else if (options_.policy != Policy::kFcfs && !sequence.started) {
    for (Sequence* one : line_) {
      if (one == &sequence) break;
      if (!eligible(one)) continue;
      ++one->overtaken;
      ++num_overtakes_;
    }
  }
  remove(sequence);
}

std::size_t WaitingLine::insert(Line& line, Sequence& sequence) {
  const auto at = line.insert(std::ranges::upper_bound(line, &sequence, in_order), &sequence);
  return static_cast<std::size_t>(at - line.begin());
}

std::size_t WaitingLine::erase(Line& line, Sequence& sequence) {
  const auto at = std::ranges::lower_bound(line, &sequence, in_order);
  CHECK(at != line.end() && *at == &sequence);
  return static_cast<std::size_t>(line.erase(at) - line.begin());
}

Sequence* WaitingLine::first_eligible(const Line& line) {
  const auto at = std::ranges::find_if(line, eligible);
  return at == line.end() ? nullptr : *at;
}

}  // namespace quire::schedule
