// Scheduler: preemption, by recompute or by swapping, and the way back of swapped sequences.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/kv/cache_group.h"
#include "core/schedule/scheduler.h"

namespace quire::schedule {

// Reserves blocks for `num_tokens` tokens of `asker`; while too few are free, preempts paused sequences, then victims.
// False: `asker` itself was preempted, or has to wait until no step is in flight.
bool Scheduler::reserve_or_preempt(Sequence& asker, std::uint32_t num_tokens) {
  if (asker.retention.at_new_span(asker.progress.computed())) {
    asker.retention.open_span(asker.progress.computed(), asker.table);
  }
  asker.prefix.drop_behind(index_, asker.progress.computed());
  while (!reserve(asker, num_tokens)) {
    if (drop_restore_points()) continue;
    if (looks_ahead_) {
      short_of_room_ = true;
      return false;
    }
    if (preempt_paused()) continue;
    CHECK(running_.size() > 1);  // alone, a sequence always has room: the pool holds one of maximum length
    Sequence& victim = victim_for(asker);
    preempt(victim);
    if (&victim == &asker) return false;
  }
  return true;
}

// Gives back the blocks that running sequences keep for restore points to come. False: there are none. Steps in flight
// only read such blocks.
bool Scheduler::drop_restore_points() {
  const std::uint32_t num_free = pool_.num_free();
  for (Sequence* one : running_) one->prefix.drop_restore_points(index_, one->progress.computed());
  return pool_.num_free() > num_free;
}

// Preempts the newest paused sequence. False: there is none, or it has to wait until no step is in flight.
bool Scheduler::preempt_paused() {
  Sequence* newest = nullptr;
  for (Sequence* one : running_) {
    if (one->paused && (newest == nullptr || newest->queue.arrived_before(one->queue))) newest = one;
  }
  if (newest == nullptr) return false;
  if (looks_ahead_) {
    short_of_room_ = true;
    return false;
  }
  preempt(*newest);
  return true;
}

// The policy's victim among sequences that have had output since their admission and sequences newer than `asker`;
// `asker` is one of the former, or is the victim if there is no other.
Sequence& Scheduler::victim_for(Sequence& asker) const {
  const auto goes_before = [this](const Sequence& a, const Sequence& b) {
    if (options_.victim == Victim::kLongest && a.num_tokens() != b.num_tokens()) return a.num_tokens() > b.num_tokens();
    if (options_.victim == Victim::kLowestPriority && a.request().priority != b.request().priority) {
      return a.request().priority > b.request().priority;
    }
    return b.queue.arrived_before(a.queue);
  };
  Sequence* victim = asker.queue.has_output ? &asker : nullptr;
  for (Sequence* one : running_) {
    if (one == &asker || !(one->queue.has_output || asker.queue.arrived_before(one->queue))) continue;
    if (victim == nullptr || goes_before(*one, *victim)) victim = one;
  }
  return victim == nullptr ? asker : *victim;
}

void Scheduler::preempt_all() {
  plan_ = &steps_[(num_plans_ + 1) % steps_.size()].plan;  // the other plan may be in flight
  plan_->clear();
  preempted_.clear();
  snapshot_ = running_;
  for (Sequence* one : snapshot_) {
    if (one->progress.num_in_flight() > 0) continue;
    one->planned_rows = 0;
    if (one->queue.has_output) preempt(*one);
  }
  early_ops_.insert(early_ops_.end(), plan_->block_ops.begin(), plan_->block_ops.end());
}

void Scheduler::preempt(Sequence& victim) {
  const bool planned = victim.planned_rows > 0;  // then blocks that this plan copies or swaps in are not filled yet
  budget_ += victim.planned_rows;
  spare_logit_rows_ += planned ? victim.num_logits_rows(victim.planned_rows) : 1;
  victim.planned_rows = 0;
  victim.draft.clear();  // proposed for the step that it does not run now
  if (!planned) {
    victim.prefix.publish(index_, /*partial=*/true);
    victim.prefix.drop_restore_points(index_, victim.progress.computed());  // blocks dropped here need no swapping
  }
  if (!planned && victim.retention.at_new_span(victim.progress.computed())) {
    victim.retention.open_span(victim.progress.computed(), victim.table);  // blocks dropped here need no swapping
  }
  // A swapped int4 sequence runs the rows of its residual group again (forget_residual_group()); their accumulated
  // scores would count twice, so a lossy one is recomputed from the start.
  const bool can_move = !planned && !(options_.residual_groups && victim.lossy());
  const bool moved = can_move && swap_out(victim);
  preempted_.push_back({&victim, moved});
  if (moved) {
    ++counts_.swapped;
  } else {
    ++counts_.recomputed;
    if (planned) cancel_block_ops(victim);
    victim.release_blocks();
  }
  leave(victim);
  victim.release_memory();
  victim.state = State::kWaiting;
  std::erase(admitted_, &victim);
  waiting_.add(victim);
}

// Removes the operations that would fill its blocks from the step being planned.
void Scheduler::cancel_block_ops(const Sequence& victim) {
  std::erase_if(plan_->block_ops, [&](const flow::BlockOp& op) {
    using enum flow::BlockOp::Kind;
    const BlockId to(op.to);
    return (op.kind == kCopy || op.kind == kPoison || op.kind == kSwapIn) && pool_.holders(to) == 1 &&
           victim.table.holds(to);
  });
}

// Moves the content of its blocks to host blocks. False: there is no content, or there are too few host blocks for all
// of it, and nothing changed. The content is all that it has computed: a step runs block operations before its rows.
bool Scheduler::swap_out(Sequence& victim) {
  const std::uint32_t num_rows = kv::blocks_for(victim.progress.computed(), pool_.block_tokens());
  std::uint32_t num_held = 0;
  for (std::uint32_t group = 0; group < pool_.num_groups(); ++group) {
    for (std::uint32_t row = 0; row < num_rows; ++row) num_held += victim.table.block(group, row) != kNoBlock ? 1 : 0;
  }
  if (num_held == 0 || num_held > free_host_blocks_.size()) return false;
  for (std::uint32_t row = 0; row < num_rows; ++row) {
    for (std::uint32_t group = 0; group < pool_.num_groups(); ++group) {
      const BlockId block = victim.table.block(group, row);
      if (block == kNoBlock) {
        victim.swapped.push_back(Sequence::kNoHostBlock);
        continue;
      }
      victim.swapped.push_back(free_host_blocks_.back());
      free_host_blocks_.pop_back();
      plan_->block_ops.push_back({flow::BlockOp::Kind::kSwapOut, block.value, victim.swapped.back()});
    }
  }
  victim.release_swapped_blocks();
  return true;
}

// Takes blocks for the content of its host blocks, which the step being planned copies back. False: fewer blocks are
// free than `num_tokens` tokens need, and nothing changed.
bool Scheduler::swap_in(Sequence& sequence, std::uint32_t num_tokens) {
  const std::uint32_t num_groups = pool_.num_groups();
  const auto num_rows = static_cast<std::uint32_t>(sequence.swapped.size()) / num_groups;
  std::size_t needed =
      sequence.swapped.size() - static_cast<std::size_t>(std::ranges::count(sequence.swapped, Sequence::kNoHostBlock));
  for (const kv::CacheGroup& group : pool_.groups()) {
    const auto [_, next_position, step_tokens] = reach_of(sequence, num_tokens);
    const std::uint32_t covered = group.reserved_tokens(num_tokens, next_position, step_tokens);
    const std::uint32_t all = kv::blocks_for(covered, pool_.block_tokens());
    needed += all - std::min(all, num_rows);
  }
  if (needed > pool_.num_free()) return false;
  for (std::uint32_t i = 0; i < sequence.swapped.size(); ++i) {
    const std::uint32_t host = sequence.swapped[i];
    if (host == Sequence::kNoHostBlock) {
      sequence.table.skip(i % num_groups);
      continue;
    }
    const BlockId block = sequence.table.extend(i % num_groups);
    plan_->block_ops.push_back({flow::BlockOp::Kind::kSwapIn, host, block.value});
  }
  forget_swapped(sequence);
  if (options_.residual_groups) sequence.forget_residual_group();
  return true;
}

void Scheduler::forget_swapped(Sequence& sequence) {
  for (const std::uint32_t host : sequence.swapped) {
    if (host != Sequence::kNoHostBlock) free_host_blocks_.push_back(host);
  }
  sequence.swapped.clear();
}

}  // namespace quire::schedule
