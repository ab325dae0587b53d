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
  first_open_ = std::min(first_open_, insert(line_, sequence));
  if (options_.policy != Policy::kFair) return;
  const std::uint32_t id = sequence.request().tenant;
  const auto at = std::ranges::find(tenants_, id, &Tenant::id);
  if (at != tenants_.end()) {
    insert(at->line, sequence);
    return;
  }
  insert(tenants_.emplace_back(Tenant{id, {}}).line, sequence);
  double& served = served_[id];
  served = std::max(served, served_least_);
}

void WaitingLine::remove(Sequence& sequence) {
  if (erase(line_, sequence) < first_open_) --first_open_;
  if (options_.policy != Policy::kFair) return;
  Tenant& tenant = tenant_of(sequence);
  erase(tenant.line, sequence);
  if (tenant.line.empty()) tenants_.erase(tenants_.begin() + (&tenant - tenants_.data()));
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
      return most_urgent(line_);
    case Policy::kCache:
      return longest_cached();
    case Policy::kFair:
      return least_served();
  }
  return nullptr;
}

bool WaitingLine::more_urgent(const Sequence& a, const Sequence& b) const {
  if (options_.policy == Policy::kDeadline) return a.request().due() < b.request().due();
  return a.request().priority < b.request().priority;
}

// Of equals the one that arrived first; before all of them the first that was overtaken as often as may be.
Sequence* WaitingLine::most_urgent(const Line& line) const {
  Sequence* first = nullptr;
  for (Sequence* one : line) {
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

// Of tenants that were served alike the one whose first came first.
Sequence* WaitingLine::least_served() const {
  const auto returns = [](const Sequence* one) { return one->started && eligible(one); };
  if (const auto at = std::ranges::find_if(line_, returns); at != line_.end()) return *at;
  Sequence* next = nullptr;
  double least = 0.0;
  for (const Tenant& tenant : tenants_) {
    Sequence* const head = most_urgent(tenant.line);
    if (head == nullptr) continue;
    const double served = served_.at(tenant.id);
    if (next != nullptr && (served > least || (served == least && next->arrived_before(*head)))) continue;
    next = head;
    least = served;
  }
  return next;
}

double WaitingLine::served(std::uint32_t tenant) const {
  const auto at = served_.find(tenant);
  return at == served_.end() ? 0.0 : at->second;
}

WaitingLine::Tenant& WaitingLine::tenant_of(const Sequence& sequence) {
  const auto at = std::ranges::find(tenants_, sequence.request().tenant, &Tenant::id);
  CHECK(at != tenants_.end());
  return *at;
}

// Those that it can overtake.
const WaitingLine::Line& WaitingLine::line_of(const Sequence& sequence) {
  return options_.policy == Policy::kFair ? tenant_of(sequence).line : line_;
}

void WaitingLine::admit(Sequence& sequence) {
  if (options_.policy != Policy::kFcfs && !sequence.started) {
    for (Sequence* one : line_of(sequence)) {
      if (one == &sequence) break;
      if (!eligible(one)) continue;
      ++one->overtaken;
      ++num_overtakes_;
    }
    if (options_.policy == Policy::kFair) {
      served_least_ = std::max(served_least_, served_[sequence.request().tenant]);
      sequence.charged_tokens = sequence.computed();  // those are cached
      charge(sequence, sequence.num_tokens());
    }
  }
  remove(sequence);
}

void WaitingLine::charge(Sequence& sequence, std::uint32_t num_tokens) {
  if (options_.policy != Policy::kFair || num_tokens <= sequence.charged_tokens) return;
  const double tokens = num_tokens - sequence.charged_tokens;
  served_[sequence.request().tenant] += tokens / sequence.request().weight;
  sequence.charged_tokens = num_tokens;
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

}  // namespace quire::schedule
