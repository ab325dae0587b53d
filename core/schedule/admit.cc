// Scheduler: admission of waiting sequences, and the blocks that a sequence runs with.
#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/schedule/scheduler.h"

namespace quire::schedule {

void Scheduler::admit_waiting() { wait_cause_ = admit_until_held(); }

// Admits waiting sequences until none is left or the next one cannot run, and returns why. An admitted sequence records
// the cause of the plan before, the last one that left it waiting; the cause returned here is for those still waiting.
flow::WaitCause Scheduler::admit_until_held() {
  using enum flow::WaitCause;
  const auto is_paused = [](const Sequence* one) { return one->paused; };
  prefix_producers_.clear();
  for (Sequence* one : running_) {
    if (!one->queue.has_output && !one->paused && !one->leaving && can_be_waited_for(*one))
      prefix_producers_.push_back(one);
  }
  waiting_.begin_plan();
  while (budget_ > 0) {
    // Checked before next(), which may have to compare many prompts: no sequence could be admitted.
    if (running_.size() >= options_.max_num_seqs && std::ranges::none_of(running_, is_paused)) return kPlaces;
    Sequence* const next = waiting_.next();
    if (next == nullptr) return kNone;
    if (waits_for_prefix(*next)) {
      waiting_.pass(*next);
      next->queue.prefix_wait_plan = num_plans_;
      continue;
    }
    if (running_.size() >= options_.max_num_seqs) {
      if (!preempt_paused()) return kPlaces;
      continue;  // another sequence may be next: the preempted one waits, too
    }
    if (spare_logit_rows_ == 0) return kRows;
    if (!next->reserve_memory()) {
      waiting_.pass(*next);
      out_of_memory_.push_back(next);
      continue;
    }
    if (!admit(*next)) {
      if (drop_restore_points() || preempt_paused()) continue;
      CHECK(!running_.empty());  // a pool without holders has room for one sequence of maximum length
      return kBlocks;            // no other sequence is admitted before the next one
    }
  }
  return kRows;
}

// Admits the sequence: reserves blocks for all its tokens (lossy: up to the end of its next span), cached blocks
// included, and in groups that do not keep all positions for a window and a step; and plans its first rows. False: too
// few blocks are free, and nothing changed.
bool Scheduler::admit(Sequence& sequence) {
  const bool returns_swapped = !sequence.swapped.empty();
  const auto need = [&] {
    const std::uint32_t all = sequence.num_tokens();
    return sequence.lossy() ? std::min(all, span_end(sequence.progress.computed())) : all;
  };
  if (returns_swapped) {
    if (!swap_in(sequence, need())) return false;
    CHECK(reserve(sequence, need()));  // swap_in() has checked that there are enough blocks
  } else {
    sequence.adopt_prefix(index_);
    const std::uint32_t adopted = sequence.table.num_held();
    // A shared partial block needs another block for its copy: without sharing it there may be enough.
    if (!reserve(sequence, need())) {
      sequence.forget_partial_block(index_);
      if (!reserve(sequence, need())) {
        sequence.release_blocks();
        return false;
      }
    }
    const std::uint32_t num_held = sequence.table.num_held();
    counts_.block_hits += std::min(adopted, num_held);
    counts_.block_misses += num_held - std::min(adopted, num_held);
  }
  if (!sequence.queue.started) sequence.queue.waited_for = sequence.queue.cause_of_wait(num_plans_, wait_cause_);
  waiting_.admit(sequence);
  sequence.queue.note_admitted();
  enter(sequence);
  admitted_.push_back(&sequence);
  if (can_be_waited_for(sequence)) prefix_producers_.push_back(&sequence);
  take_rows(sequence, next_rows(sequence, /*entitled=*/0), /*entitled=*/0);
  return true;
}

void Scheduler::enter(Sequence& sequence) {
  sequence.state = State::kRunning;
  running_.push_back(&sequence);
  sequence.residual_group = free_residual_groups_.back();
  free_residual_groups_.pop_back();
}

void Scheduler::leave(Sequence& sequence) {
  const auto at = std::ranges::find(running_, &sequence);
  if (at - running_.begin() < static_cast<std::ptrdiff_t>(round_robin_next_)) --round_robin_next_;
  running_.erase(at);
  free_residual_groups_.push_back(sequence.residual_group);
}

// True if others may wait for its prefix. A prompt that is being scored is slower than others: none waits for it.
bool Scheduler::can_be_waited_for(const Sequence& sequence) { return sequence.prefix.publishes() && sequence.scored(); }

// True if a running sequence is computing a prefix of this prompt that is worth waiting for: beyond what is cached at
// least a block, and at least half of what this sequence would have to run.
bool Scheduler::waits_for_prefix(Sequence& sequence) {
  const auto& cache_namespace = sequence.request().cache_namespace;
  if (!cache_namespace || sequence.lossy() || !sequence.swapped.empty()) return false;
  const auto waited_for = [&](const Sequence* one) { return one->id() == sequence.queue.waits_for; };
  if (std::ranges::any_of(prefix_producers_, waited_for)) return true;
  sequence.queue.waits_for = SeqId{};
  const auto wanted = sequence.adoptable();
  if (wanted.size() < pool_.block_tokens()) return false;
  std::uint32_t coming = 0;
  Sequence* from = nullptr;
  for (Sequence* one : prefix_producers_) {
    if (one->request().cache_namespace != cache_namespace) continue;
    const auto other = one->tokens();
    const auto [end, _] = std::mismatch(wanted.begin(), wanted.end(), other.begin(), other.end());
    const auto common = static_cast<std::uint32_t>(end - wanted.begin());
    if (common <= coming) continue;
    coming = common;
    from = one;
  }
  if (coming < pool_.block_tokens()) return false;
  const std::uint32_t cached = sequence.prefix.num_cached(index_, sequence.adoptable());
  if (coming < cached + pool_.block_tokens() || 2 * (coming - cached) < wanted.size() - cached) return false;
  from->prefix.keep_restore_point(coming);
  sequence.queue.waits_for = from->id();
  return true;
}

// Makes the blocks of its next row its own (copy-on-write), and grows its table to `num_tokens`, or in groups that do
// not keep all positions to what reach_of() says. False: too few blocks are free, and nothing changed.
bool Scheduler::reserve(Sequence& sequence, std::uint32_t num_tokens) {
  kv::BlockTable& table = sequence.table;
  const kv::BlockTable::Reach reach = reach_of(sequence, num_tokens);
  std::uint32_t num_copies = 0;
  for (std::uint32_t group = 0; group < table.num_groups(); ++group) num_copies += must_copy(sequence, group) ? 1 : 0;
  if (table.num_missing(reach) + num_copies > pool_.num_free()) return false;
  for (std::uint32_t group = 0; group < table.num_groups(); ++group) {
    if (must_copy(sequence, group)) copy_next_block(sequence, group);
  }
  grow(sequence, reach);
  return true;
}

// Of `num_tokens` tokens, those that its table is to cover. A step's draft nodes are among its rows.
kv::BlockTable::Reach Scheduler::reach_of(const Sequence& sequence, std::uint32_t num_tokens) const {
  return {num_tokens, sequence.progress.next_position(), options_.max_num_batched_tokens};
}

// Grows its table. The pool must have enough free blocks (CHECK).
void Scheduler::grow(Sequence& sequence, const kv::BlockTable::Reach& reach) {
  kv::BlockTable& table = sequence.table;
  std::array<std::uint32_t, kMostGroups> covered{};
  for (std::uint32_t group = 0; group < table.num_groups(); ++group) covered[group] = table.size(group);
  CHECK(table.grow_to(reach).ok());
  for (std::uint32_t group = 0; group < table.num_groups(); ++group) {
    for (const BlockId block : table.blocks(group).subspan(covered[group])) poison_taken(block);
  }
}

void Scheduler::copy_next_block(Sequence& sequence, std::uint32_t group) {
  const std::uint32_t i = sequence.progress.next_position() / pool_.block_tokens();
  const BlockId from = *sequence.table.copy_on_write(group, i);
  const BlockId to = sequence.table.block(group, i);
  poison_taken(to);
  plan_->block_ops.push_back({flow::BlockOp::Kind::kCopy, from.value, to.value});
  ++counts_.block_copies;
}

// True if its next row goes into a block that has other holders, or over tokens that the index promises.
bool Scheduler::must_copy(const Sequence& sequence, std::uint32_t group) const {
  const std::uint32_t offset = sequence.progress.next_position() % pool_.block_tokens();
  const std::uint32_t i = sequence.progress.next_position() / pool_.block_tokens();
  if (offset == 0 || i >= sequence.table.size(group)) return false;
  const BlockId block = sequence.table.block(group, i);
  return pool_.holders(block) > 1 || index_.num_relied_tokens(block) > offset;
}

// Poisons the blocks that became empty since the last plan and still are: no row may read them any more. These
// operations come after the early ones, which may still copy from such a block.
void Scheduler::poison_emptied() {
  for (const BlockId block : pool_.take_emptied()) {
    if (pool_.is_empty(block)) plan_->block_ops.push_back({flow::BlockOp::Kind::kPoison, 0, block.value});
  }
}

// Poisons a block that was just taken: one that was cached until now has the K and V of another sequence.
void Scheduler::poison_taken(BlockId block) {
  if (options_.poison) plan_->block_ops.push_back({flow::BlockOp::Kind::kPoison, 0, block.value});
}

}  // namespace quire::schedule
