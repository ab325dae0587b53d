#include "core/schedule/fair_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

bool FairQueue::Rank::operator<(const Rank& other) const {
  return served != other.served ? served < other.served : head->queue.arrived_before(other.head->queue);
}

void FairQueue::add(Sequence& sequence) {
  Tenant& tenant = tenants_[sequence.request().tenant];
  take_out(tenant);
  if (tenant.num_waiting == 0) tenant.served = std::max(tenant.served, served_least_);
  ++tenant.num_waiting;
  ++num_waiting_;
  if (sequence.queue.started) {
    returning_.insert(&sequence);
  } else {
    tenant.line.add(sequence);
  }
  put_in(tenant);
}

void FairQueue::remove(Sequence& sequence) {
  Tenant& tenant = tenants_.at(sequence.request().tenant);
  const bool aside = std::erase(aside_, &sequence) > 0;
  sequence.queue.skipped = false;
  CHECK(tenant.num_waiting > 0);
  --tenant.num_waiting;
  --num_waiting_;
  if (sequence.queue.started) {
    CHECK(returning_.erase(&sequence) == (aside ? 0u : 1u));
    return;
  }
  take_out(tenant);
  tenant.line.remove(sequence);
  put_in(tenant);
}

void FairQueue::begin_plan() {
  for (Sequence* one : aside_) {
    one->queue.skipped = false;
    if (one->queue.started) {
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

void FairQueue::pass(Sequence& sequence) {
  sequence.queue.skipped = true;
  stand_aside(sequence);
}

void FairQueue::stand_aside(Sequence& sequence) {
  aside_.push_back(&sequence);
  if (sequence.queue.started) {
    returning_.erase(&sequence);
    return;
  }
  Tenant& tenant = tenants_.at(sequence.request().tenant);
  take_out(tenant);
  tenant.line.close(sequence);
  put_in(tenant);
}

// A sequence that ran before goes first. Then the next of the tenant that was served least; of equal tenants the one
// whose next sequence arrived first.
Sequence* FairQueue::next() {
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

std::uint32_t FairQueue::admit(Sequence& sequence) {
  std::uint32_t num_overtaken = 0;
  if (!sequence.queue.started) {
    Tenant& tenant = tenants_.at(sequence.request().tenant);
    num_overtaken = tenant.line.overtake(sequence);
    served_least_ = std::max(served_least_, tenant.served);
    sequence.queue.charged_tokens = sequence.progress.computed();  // cached tokens are free
    charge(sequence, sequence.num_tokens());
  }
  remove(sequence);
  return num_overtaken;
}

void FairQueue::charge(Sequence& sequence, std::uint32_t num_tokens) {
  const std::uint32_t uncharged = sequence.queue.charge(num_tokens);
  if (uncharged == 0) return;
  Tenant& tenant = tenants_[sequence.request().tenant];
  const double served = tenant.served + static_cast<double>(uncharged) / sequence.request().weight;
  if (tenant.head == nullptr) {
    tenant.served = served;
    return;
  }
  // Runs for every token: extract() and insert() move the node without allocating.
  auto rank = ranks_.extract({tenant.served, tenant.head, &tenant});
  tenant.served = rank.value().served = served;
  ranks_.insert(std::move(rank));
}

double FairQueue::served(std::uint32_t tenant) const {
  const auto at = tenants_.find(tenant);
  return at == tenants_.end() ? 0.0 : at->second.served;
}

void FairQueue::take_out(Tenant& tenant) {
  if (tenant.head != nullptr) CHECK_EQ(ranks_.erase({tenant.served, tenant.head, &tenant}), 1u);
  tenant.head = nullptr;
}

void FairQueue::put_in(Tenant& tenant) {
  tenant.head = tenant.line.next(options_.max_overtakes);
  if (tenant.head != nullptr) ranks_.insert({tenant.served, tenant.head, &tenant});
}

}  // namespace quire::schedule
