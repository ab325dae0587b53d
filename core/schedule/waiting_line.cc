#include "core/schedule/waiting_line.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {
namespace {

constexpr std::size_t kCacheLooks = 32;  // sequences whose cached prefix is compared: each costs a walk over its prompt

bool arrived_before(const Sequence* a, const Sequence* b) { return a->id() < b->id(); }

TimePoint deadline_of(const Sequence& sequence) { return sequence.request().deadline.value_or(TimePoint::max()); }

}  // namespace

void WaitingLine::add(Sequence& sequence) {
  line_.insert(std::upper_bound(line_.begin(), line_.end(), &sequence, arrived_before), &sequence);
  if (options_.policy != Policy::kFair) return;
  const std::uint32_t tenant = sequence.request().tenant;
  const auto is_tenant = [tenant](const Tenant& one) { return one.id == tenant; };
  if (std::ranges::none_of(tenants_, is_tenant)) tenants_.push_back({tenant, 0});
}

void WaitingLine::remove(Sequence& sequence) {
  const auto at = std::lower_bound(line_.begin(), line_.end(), &sequence, arrived_before);
  CHECK(at != line_.end() && *at == &sequence);
  line_.erase(at);
  if (options_.policy != Policy::kFair) return;
  // A tenant without anybody waiting leaves the round, and takes no credit along.
  const std::uint32_t tenant = sequence.request().tenant;
  if (std::ranges::any_of(line_, [tenant](const Sequence* one) { return one->request().tenant == tenant; })) return;
  const auto gone = std::ranges::find_if(tenants_, [tenant](const Tenant& one) { return one.id == tenant; });
  const auto index = static_cast<std::size_t>(gone - tenants_.begin());
  tenants_.erase(gone);
  if (index < turn_) --turn_;
  if (turn_ == tenants_.size()) turn_ = 0;
}

Sequence* WaitingLine::next() {
  if (options_.policy == Policy::kFair) return fair_turn();
  if (options_.policy != Policy::kFcfs) {
    const auto overdue = std::ranges::find_if(
        line_, [this](const Sequence* one) { return eligible(*one) && one->overtaken >= options_.max_overtakes; });
    if (overdue != line_.end()) return *overdue;
  }
  switch (options_.policy) {
    case Policy::kPriority:
      return first_by([](const Sequence& a, const Sequence& b) { return a.request().priority < b.request().priority; });
    case Policy::kDeadline:
      return first_by([](const Sequence& a, const Sequence& b) { return deadline_of(a) < deadline_of(b); });
    case Policy::kCache:
      return longest_cached();
    case Policy::kFcfs:
    case Policy::kFair:
      break;
  }
  return first_by([](const Sequence&, const Sequence&) { return false; });
}

// Of equals the one that arrived first.
template <typename Before>
Sequence* WaitingLine::first_by(Before before) const {
  Sequence* first = nullptr;
  for (Sequence* one : line_) {
    if (eligible(*one) && (first == nullptr || before(*one, *first))) first = one;
  }
  return first;
}

Sequence* WaitingLine::longest_cached() {
  Sequence* best = nullptr;
  std::uint32_t best_tokens = 0;
  std::size_t looks = 0;
  for (Sequence* one : line_) {
    if (!eligible(*one)) continue;
    if (looks++ == kCacheLooks) break;
    const std::uint32_t cached = one->cached_tokens(index_);
    if (best == nullptr || cached > best_tokens) {
      best = one;
      best_tokens = cached;
    }
  }
  return best;
}

// Goes round until somebody's credit covers the first in his line; that tenant stays in turn while it does.
Sequence* WaitingLine::fair_turn() {
  if (std::ranges::none_of(line_, [](const Sequence* one) { return eligible(*one); })) return nullptr;
  for (;;) {
    Tenant& tenant = tenants_[turn_];
    Sequence* const head = head_of(tenant.id);
    if (head != nullptr && cost_tokens(*head) <= tenant.deficit_tokens) return head;
    turn_ = (turn_ + 1) % tenants_.size();
    Tenant& after = tenants_[turn_];
    if (head_of(after.id) != nullptr) after.deficit_tokens += options_.fair_quantum_tokens;
  }
}

Sequence* WaitingLine::head_of(std::uint32_t tenant) const {
  const auto at = std::ranges::find_if(
      line_, [&](const Sequence* one) { return eligible(*one) && one->request().tenant == tenant; });
  return at == line_.end() ? nullptr : *at;
}

std::uint64_t WaitingLine::cost_tokens(const Sequence& sequence) {
  if (sequence.started) return 0;
  return std::uint64_t{sequence.num_tokens()} + sequence.request().max_tokens;
}

void WaitingLine::admit(Sequence& sequence) {
  if (options_.policy == Policy::kFair) {
    const std::uint32_t tenant = sequence.request().tenant;
    const auto payer = std::ranges::find_if(tenants_, [tenant](const Tenant& one) { return one.id == tenant; });
    payer->deficit_tokens -= std::min(payer->deficit_tokens, cost_tokens(sequence));
  } else if (options_.policy != Policy::kFcfs && !sequence.started) {
    for (Sequence* one : line_) {
      if (one == &sequence) break;
      if (!eligible(*one)) continue;
      ++one->overtaken;
      ++num_overtakes_;
    }
  }
  remove(sequence);
}

}  // namespace quire::schedule
