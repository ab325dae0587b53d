// Scheduler: who gives up its place, and how it comes back.
#include <algorithm>

#include "core/base/check.h"
#include "core/schedule/scheduler.h"

namespace quire::schedule {

// Blocks for `num_tokens` tokens of `asker`, sending back parked sequences and then victims while the pool is dry.
// False: `asker` itself had to go, or to wait until nothing is in flight.
bool Scheduler::make_room(Sequence& asker, std::uint32_t num_tokens) {
  if (asker.at_new_span()) asker.open_span();
  while (!reserve(asker, num_tokens)) {
    if (looks_ahead_) {
      short_of_room_ = true;
      return false;
    }
    if (send_back_parked()) continue;
    CHECK(running_.size() > 1);  // alone, a sequence always has room: the pool holds one of maximum length
    Sequence& victim = victim_for(asker);
    preempt(victim);
    if (&victim == &asker) return false;
  }
  return true;
}

// The newest running sequence whose client does not read gives up its place. False: there is none, or not while steps
// are in flight.
bool Scheduler::send_back_parked() {
  Sequence* newest = nullptr;
  for (Sequence* one : running_) {
    if (one->parked && (newest == nullptr || newest->arrived_before(*one))) newest = one;
  }
  if (newest == nullptr) return false;
  if (looks_ahead_) {
    short_of_room_ = true;
    return false;
  }
  preempt(*newest);
  return true;
}

// Of those that have said a token since they came in, of those newer than the asker, and of the asker, the policy's
// choice.
Sequence& Scheduler::victim_for(Sequence& asker) const {
  const auto goes_before = [this](const Sequence& a, const Sequence& b) {
    if (options_.victim == Victim::kLongest && a.num_tokens() != b.num_tokens()) return a.num_tokens() > b.num_tokens();
    if (options_.victim == Victim::kLowestPriority && a.request().priority != b.request().priority) {
      return a.request().priority > b.request().priority;
    }
    return b.arrived_before(a);
  };
  Sequence* victim = asker.heard() ? &asker : nullptr;
  for (Sequence* one : running_) {
    if (one == &asker || !(one->heard() || asker.arrived_before(*one))) continue;
    if (victim == nullptr || goes_before(*one, *victim)) victim = one;
  }
  return victim == nullptr ? asker : *victim;
}

void Scheduler::preempt_all() {
  plan_ = &steps_[(num_plans_ + 1) % steps_.size()].plan;  // the other one may be in flight
  plan_->clear();
  preempted_.clear();
  snapshot_ = running_;
  for (Sequence* one : snapshot_) {
    if (one->num_in_flight() > 0) continue;
    one->planned_rows = 0;
    if (one->heard()) preempt(*one);
  }
  early_ops_.insert(early_ops_.end(), plan_->block_ops.begin(), plan_->block_ops.end());
}

void Scheduler::preempt(Sequence& victim) {
  const bool planned = victim.planned_rows > 0;  // then what this very step was to copy for it is not there yet
  budget_ += victim.planned_rows;
  spare_logit_rows_ += planned ? victim.num_speaking(victim.planned_rows) : 1;
  victim.planned_rows = 0;
  victim.draft.clear();  // it was made for where the sequence stood
  if (!planned) victim.publish_prefix(index_, /*tail=*/true);
  if (!planned && victim.at_new_span()) victim.open_span();  // what is dropped there need not move
  // int4 begins again in the middle of a group's rows, whose accumulated scores would count twice: those are recomputed
  // from the start.
  const bool can_move = !planned && !(options_.open_groups && victim.lossy());
  const bool moved = can_move && swap_out(victim);
  preempted_.push_back({&victim, moved});
  if (moved) {
    ++counts_.swapped;
  } else {
    ++counts_.recomputed;
    if (planned) take_back_copies(victim);
    victim.forget_computed();
  }
  leave(victim);
  victim.give_room_back();
  victim.state = State::kWaiting;
  std::erase(admitted_, &victim);
  waiting_.add(victim);
}

// The operations that were to fill its blocks in the step being planned.
void Scheduler::take_back_copies(const Sequence& victim) {
  std::erase_if(plan_->block_ops, [&](const flow::BlockOp& op) {
    using enum flow::BlockOp::Kind;
    const BlockId to(op.to);
    return (op.kind == kCopy || op.kind == kPoison || op.kind == kSwapIn) && pool_.holders(to) == 1 &&
           std::ranges::count(victim.table.blocks(), to) != 0;
  });
}

// Its blocks' content to host memory, where there is room for all of it. What is there is what it has computed: the
// step being planned runs its block operations first.
bool Scheduler::swap_out(Sequence& victim) {
  const std::uint32_t used = kv::blocks_for(victim.computed(), pool_.block_tokens());
  const auto blocks = victim.table.blocks().first(used);
  const auto num_held = blocks.size() - static_cast<std::size_t>(std::ranges::count(blocks, kv::kNoBlock));
  if (num_held == 0 || num_held > free_host_blocks_.size()) return false;
  for (const BlockId block : blocks) {
    if (block == kv::kNoBlock) {
      victim.swapped.push_back(Sequence::kNoHostBlock);
      continue;
    }
    victim.swapped.push_back(free_host_blocks_.back());
    free_host_blocks_.pop_back();
    plan_->block_ops.push_back({flow::BlockOp::Kind::kSwapOut, block.value, victim.swapped.back()});
  }
  victim.leave_blocks();
  return true;
}

bool Scheduler::swap_in(Sequence& sequence, std::uint32_t num_tokens) {
  const auto num_held =
      sequence.swapped.size() - static_cast<std::size_t>(std::ranges::count(sequence.swapped, Sequence::kNoHostBlock));
  const std::uint32_t growth = kv::blocks_for(num_tokens, pool_.block_tokens());
  const std::size_t more = growth > sequence.swapped.size() ? growth - sequence.swapped.size() : 0;
  if (num_held + more > pool_.num_free()) return false;
  for (const std::uint32_t host : sequence.swapped) {
    if (host == Sequence::kNoHostBlock) {
      sequence.table.skip();
      continue;
    }
    const BlockId block = sequence.table.extend();
    plan_->block_ops.push_back({flow::BlockOp::Kind::kSwapIn, host, block.value});
  }
  forget_swapped(sequence);
  if (options_.open_groups) sequence.forget_open_group();
  return true;
}

void Scheduler::forget_swapped(Sequence& sequence) {
  for (const std::uint32_t host : sequence.swapped) {
    if (host != Sequence::kNoHostBlock) free_host_blocks_.push_back(host);
  }
  sequence.swapped.clear();
}

}  // namespace quire::schedule
