// Scheduler: who comes in, and with which blocks.
#include <algorithm>

#include "core/base/check.h"
#include "core/schedule/scheduler.h"

namespace quire::schedule {

void Scheduler::admit_waiting() { held_by_ = admit_until_held(); }

// Who comes in hears of the plan before; what ends this one is for those that stay.
flow::WaitCause Scheduler::admit_until_held() {
  using enum flow::WaitCause;
  const auto is_parked = [](const Sequence* one) { return one->parked; };
  unheard_.clear();
  for (Sequence* one : running_) {
    if (!one->heard() && !one->parked && !one->leaving && can_be_waited_for(*one)) unheard_.push_back(one);
  }
  waiting_.begin_plan();
  while (budget_ > 0) {
    // Before anybody is chosen, which can cost a walk over many prompts: nobody could come in.
    if (running_.size() >= options_.max_num_seqs && std::ranges::none_of(running_, is_parked)) return kPlaces;
    Sequence* const next = waiting_.next();
    if (next == nullptr) return kNone;
    if (waits_for_prefix(*next)) {
      waiting_.pass(*next);
      next->passed_in = num_plans_;
      continue;
    }
    if (running_.size() >= options_.max_num_seqs) {
      if (!send_back_parked()) return kPlaces;
      continue;  // the line has moved
    }
    if (spare_logit_rows_ == 0) return kRows;
    if (!next->take_room()) {
      waiting_.pass(*next);
      roomless_.push_back(next);
      continue;
    }
    if (!admit(*next)) {
      if (send_back_parked()) continue;
      CHECK(!running_.empty());  // an empty pool always holds one sequence of maximum length
      return kBlocks;            // nobody overtakes whose turn it is
    }
  }
  return kRows;
}

flow::WaitCause Scheduler::cause_of_wait(const Sequence& sequence) const {
  if (sequence.added_in + 1 == num_plans_) return flow::WaitCause::kNone;
  return sequence.passed_in + 1 == num_plans_ ? flow::WaitCause::kPrefix : held_by_;
}

// Blocks for all its tokens (of a lossy one: for its next span), the cached ones included, and its first rows. False:
// there are not enough, and nothing changed.
bool Scheduler::admit(Sequence& sequence) {
  const bool returns_swapped = !sequence.swapped.empty();
  const auto need = [&] {
    return sequence.lossy() ? std::min(sequence.num_tokens(), sequence.span_end()) : sequence.num_tokens();
  };
  if (returns_swapped) {
    if (!swap_in(sequence, need())) return false;
    CHECK(reserve(sequence, need()));  // swap_in() has seen to it
  } else {
    sequence.adopt_prefix(index_);
    const std::uint32_t adopted = sequence.table.size();
    // To share part of a block takes a block more for a moment: without it there may be enough.
    if (!reserve(sequence, need())) {
      sequence.forget_partial_block();
      if (!reserve(sequence, need())) {
        sequence.forget_computed();
        return false;
      }
    }
    counts_.block_hits += std::min(adopted, sequence.table.size());
    counts_.block_misses += sequence.table.size() - std::min(adopted, sequence.table.size());
  }
  if (!sequence.started) sequence.waited_for = cause_of_wait(sequence);
  waiting_.admit(sequence);
  sequence.begin_scheduled_period();
  enter(sequence);
  admitted_.push_back(&sequence);
  if (can_be_waited_for(sequence)) unheard_.push_back(&sequence);
  take_rows(sequence, next_rows(sequence, /*entitled=*/0), /*entitled=*/0);
  return true;
}

void Scheduler::enter(Sequence& sequence) {
  sequence.state = State::kRunning;
  running_.push_back(&sequence);
  sequence.open_group = free_open_groups_.back();
  free_open_groups_.pop_back();
}

void Scheduler::leave(Sequence& sequence) {
  const auto at = std::ranges::find(running_, &sequence);
  if (at - running_.begin() < static_cast<std::ptrdiff_t>(next_served_)) --next_served_;
  running_.erase(at);
  free_open_groups_.push_back(sequence.open_group);
}

// A prompt that is being scored goes slower than others: nobody waits for that.
bool Scheduler::can_be_waited_for(const Sequence& sequence) { return sequence.publishes() && sequence.scored(); }

// Somebody is computing the beginning of this prompt, more of it than is cached, and worth waiting for.
bool Scheduler::waits_for_prefix(Sequence& sequence) {
  const auto& root = sequence.request().cache_root;
  if (!root || sequence.lossy() || !sequence.swapped.empty()) return false;
  const auto waited_for = [&](const Sequence* one) { return one->id() == sequence.waits_for; };
  if (std::ranges::any_of(unheard_, waited_for)) return true;
  sequence.waits_for = SeqId{};
  const auto wanted = sequence.adoptable();
  if (wanted.size() < pool_.block_tokens()) return false;
  std::uint32_t coming = 0;
  SeqId from{};
  for (const Sequence* one : unheard_) {
    if (one->request().cache_root != root) continue;
    const auto other = one->tokens();
    const auto [end, _] = std::mismatch(wanted.begin(), wanted.end(), other.begin(), other.end());
    const auto common = static_cast<std::uint32_t>(end - wanted.begin());
    if (common <= coming) continue;
    coming = common;
    from = one->id();
  }
  if (coming < pool_.block_tokens()) return false;
  const std::uint32_t cached = sequence.cached_tokens(index_);
  if (coming < cached + pool_.block_tokens() || 2 * (coming - cached) < wanted.size() - cached) return false;
  sequence.waits_for = from;
  return true;
}

// Its next row's block is its own, and its table covers `num_tokens`. False: not enough blocks, and nothing changed.
bool Scheduler::reserve(Sequence& sequence, std::uint32_t num_tokens) {
  kv::BlockTable& table = sequence.table;
  const bool copies = must_copy(sequence);
  const std::uint32_t covered = table.size();
  const std::uint32_t wanted = kv::blocks_for(num_tokens, pool_.block_tokens());
  const std::uint32_t growth = wanted > covered ? wanted - covered : 0;
  if (growth + (copies ? 1 : 0) > pool_.num_free()) return false;
  if (copies) {
    const std::uint32_t i = sequence.next_position() / pool_.block_tokens();
    const BlockId from = *table.make_own(i);
    const BlockId to = table.blocks()[i];
    note_fresh(to);
    plan_->block_ops.push_back({flow::BlockOp::Kind::kCopy, from.value, to.value});
    ++counts_.block_copies;
  }
  CHECK(table.grow_to(num_tokens).ok());
  for (const BlockId block : table.blocks().subspan(covered)) note_fresh(block);
  return true;
}

// Its next row goes into a block that others hold too, or that the index counts on there.
bool Scheduler::must_copy(const Sequence& sequence) const {
  const std::uint32_t offset = sequence.next_position() % pool_.block_tokens();
  const std::uint32_t i = sequence.next_position() / pool_.block_tokens();
  if (offset == 0 || i >= sequence.table.size()) return false;
  const BlockId block = sequence.table.blocks()[i];
  return pool_.holders(block) > 1 || index_.promised(block) > offset;
}

// Blocks that were given back since the last plan and are empty still: nobody may look at them any more. Behind what
// still had to be copied from them.
void Scheduler::poison_emptied() {
  for (const BlockId block : pool_.take_emptied()) {
    if (pool_.is_empty(block)) plan_->block_ops.push_back({flow::BlockOp::Kind::kPoison, 0, block.value});
  }
}

// A block that was kept until now holds what somebody else had stored.
void Scheduler::note_fresh(BlockId block) {
  if (options_.poison) plan_->block_ops.push_back({flow::BlockOp::Kind::kPoison, 0, block.value});
}

}  // namespace quire::schedule
