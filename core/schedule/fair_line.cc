#include "core/schedule/fair_line.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

bool FairLine::Rank::operator<(const Rank& other) const {
  return served != other.served ? served < other.served : head->arrived_before(*other.head);
}

void FairLine::add(Sequence& sequence) {
  Tenant& tenant = tenants_[sequence.request().tenant];
  take_out(tenant);
  if (tenant.num_waiting == 0) tenant.served = std::max(tenant.served, served_least_);
  ++tenant.num_waiting;
  ++num_waiting_;
  if (sequence.started) {
    returning_.insert(&sequence);
  } else {
    tenant.line.add(sequence);
  }
  put_in(tenant);
}

void FairLine::remove(Sequence& sequence) {
  Tenant& tenant = tenants_.at(sequence.request().tenant);
  const bool aside = std::erase(aside_, &sequence) > 0;
  sequence.passed = false;
  CHECK(tenant.num_waiting > 0);
  --tenant.num_waiting;
  --num_waiting_;
  if (sequence.started) {
    CHECK(returning_.erase(&sequence) == (aside ? 0u : 1u));
    return;
  }
  take_out(tenant);
  tenant.line.remove(sequence);
  put_in(tenant);
}

void FairLine::begin_plan() {
  for (Sequence* one : aside_) {
    one->passed = false;
    if (one->started) {
      returning_.insert(one);
      continue;
    }
    Tenant& tenant = tenants_.at(one->request().tenant);
    take_out(tenant);
    tenant.line.open(*one);
    put_in(tenant);
  }
  aside_.clear();
}

void FairLine::pass(Sequence& sequence) {
  sequence.passed = true;
  stand_aside(sequence);
}

void FairLine::stand_aside(Sequence& sequence) {
  aside_.push_back(&sequence);
  if (sequence.started) {
    returning_.erase(&sequence);
    return;
  }
  Tenant& tenant = tenants_.at(sequence.request().tenant);
  take_out(tenant);
  tenant.line.close(sequence);
  put_in(tenant);
}

// Who ran before goes first; of tenants that were served alike the one whose first came first.
Sequence* FairLine::next() {
  while (!returning_.empty()) {
    Sequence* const first = *returning_.begin();
    if (eligible(*first)) return first;
    stand_aside(*first);
  }
  while (!ranks_.empty()) {
    Sequence* const first = ranks_.begin()->tenant->head;
    if (eligible(*first)) return first;
    stand_aside(*first);
  }
  return nullptr;
}

std::uint32_t FairLine::admit(Sequence& sequence) {
  std::uint32_t num_overtaken = 0;
  if (!sequence.started) {
    Tenant& tenant = tenants_.at(sequence.request().tenant);
    num_overtaken = tenant.line.overtake(sequence);
    served_least_ = std::max(served_least_, tenant.served);
    sequence.charged_tokens = sequence.computed();  // those are cached
    charge(sequence, sequence.num_tokens());
  }
  remove(sequence);
  return num_overtaken;
}

void FairLine::charge(Sequence& sequence, std::uint32_t num_tokens) {
  if (num_tokens <= sequence.charged_tokens) return;
  Tenant& tenant = tenants_[sequence.request().tenant];
  const double tokens = num_tokens - sequence.charged_tokens;
  const double served = tenant.served + tokens / sequence.request().weight;
  sequence.charged_tokens = num_tokens;
  if (tenant.head == nullptr) {
    tenant.served = served;
    return;
  }
  auto rank =
      ranks_.extract({tenant.served, tenant.head, &tenant});  // nothing is allocated: this is done for every token
  tenant.served = rank.value().served = served;
  ranks_.insert(std::move(rank));
}

double FairLine::served(std::uint32_t tenant) const {
  const auto at = tenants_.find(tenant);
  return at == tenants_.end() ? 0.0 : at->second.served;
}

void FairLine::take_out(Tenant& tenant) {
  if (tenant.head != nullptr) CHECK_EQ(ranks_.erase({tenant.served, tenant.head, &tenant}), 1u);
  tenant.head = nullptr;
}

void FairLine::put_in(Tenant& tenant) {
  tenant.head = tenant.line.next(options_.max_overtakes);
  if (tenant.head != nullptr) ranks_.insert({tenant.served, tenant.head, &tenant});
}

}  // namespace quire::schedule
