#include "core/schedule/scheduler.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

static_assert(flow::kDroppedBlock == kv::kNoBlock);

Scheduler::Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index)
    : options_(options), pool_(pool), index_(index), waiting_(options_, index) {
  CHECK_GE(options.max_num_seqs, 1u);
  CHECK_GE(options.max_num_batched_tokens, options.max_num_seqs);
  CHECK_GE(options.fair_quantum_tokens, 1u);
  const std::size_t rows = options.max_num_batched_tokens;
  running_.reserve(options.max_num_seqs);
  snapshot_.reserve(options.max_num_seqs);
  unheard_.reserve(options.max_num_seqs);
  planned_.reserve(options.max_num_seqs);
  admitted_.reserve(options.max_num_seqs);
  plan_.sequences.reserve(options.max_num_seqs);
  plan_.tokens.reserve(rows);
  plan_.positions.reserve(rows);
  plan_.slots.reserve(rows);
  plan_.block_tables.reserve(pool.num_blocks());
  plan_.block_ops.reserve(options.max_num_seqs + options.num_swap_blocks + (options.poison ? pool.num_blocks() : 0));
  for (std::uint32_t i = options.num_swap_blocks; i > 0; --i) free_host_blocks_.push_back(i - 1);
  for (std::uint32_t i = options.max_num_seqs; i > 0; --i) free_open_groups_.push_back(i - 1);
  if (options.poison) pool.list_emptied();
}

void Scheduler::add(Sequence& sequence) {
  CHECK(sequence.state == State::kWaiting);
  waiting_.add(sequence);
}

void Scheduler::add_fork(Sequence& fork, const Sequence& parent) {
  CHECK(fork.state == State::kWaiting);
  if (parent.state == State::kRunning && running_.size() < options_.max_num_seqs) {
    enter(fork);
    if (options_.open_groups) {
      early_ops_.push_back({flow::BlockOp::Kind::kCopyOpenGroup, parent.open_group, fork.open_group});
    }
    return;
  }
  fork.forget_computed();
  waiting_.add(fork);
}

void Scheduler::remove(Sequence& sequence) {
  if (sequence.state == State::kRunning) leave(sequence);
  if (sequence.state == State::kWaiting) waiting_.remove(sequence);
  forget_swapped(sequence);
  sequence.state = State::kDone;
}

const flow::StepPlan& Scheduler::plan(const PromptRows& limit) {
  plan_.clear();
  planned_.clear();
  admitted_.clear();
  std::swap(plan_.block_ops, early_ops_);
  early_ops_.clear();
  if (options_.poison) poison_emptied();
  budget_ = options_.max_num_batched_tokens;
  for (Sequence* sequence : running_) sequence->planned_rows = 0;

  plan_running(/*decoding=*/true);
  const bool streaming = budget_ < options_.max_num_batched_tokens;
  budget_ = std::min(budget_, std::max(streaming ? limit.while_streaming : limit.alone, 1u));
  plan_running(/*decoding=*/false);
  admit_waiting();

  for (Sequence* sequence : running_) {
    if (sequence->planned_rows > 0) emit(*sequence);
  }
  return plan_;
}

void Scheduler::plan_running(bool decoding) {
  snapshot_ = running_;  // make_room() takes sequences out of running_ while we walk
  for (Sequence* sequence : snapshot_) {
    if (budget_ == 0) return;
    if (sequence->state != State::kRunning || sequence->parked || sequence->decoding() != decoding) continue;
    const std::uint32_t rows = next_rows(*sequence);
    if (!make_room(*sequence, sequence->computed() + rows)) continue;
    sequence->planned_rows = rows;  // and no more, though a victim's rows may have become free: room was made for these
    budget_ -= rows;
  }
}

void Scheduler::plan_rows(Sequence& sequence) {
  sequence.planned_rows = next_rows(sequence);
  budget_ -= sequence.planned_rows;
}

// A lossy sequence's rows of one step lie in one span: they see the same past.
std::uint32_t Scheduler::next_rows(const Sequence& sequence) const {
  const std::uint32_t rows = std::min(sequence.remaining(), budget_);
  return sequence.lossy() ? std::min(rows, sequence.span_end() - sequence.computed()) : rows;
}

void Scheduler::emit(Sequence& sequence) {
  flow::PlannedSequence entry;
  entry.seq = sequence.id();
  entry.first_row = static_cast<std::uint32_t>(plan_.tokens.size());
  entry.num_rows = sequence.planned_rows;
  entry.first_position = sequence.computed();
  entry.first_table = static_cast<std::uint32_t>(plan_.block_tables.size());
  entry.num_table = kv::blocks_for(sequence.computed() + sequence.planned_rows, pool_.block_tokens());
  entry.open_group = sequence.open_group;
  entry.speaks = sequence.planned_rows == sequence.remaining();
  entry.sampling = sequence.request().sampling;
  entry.first_kept = static_cast<std::uint32_t>(plan_.kept_groups.size());
  entry.num_kept = static_cast<std::uint32_t>(sequence.kept_groups().size());
  entry.wants_votes = sequence.request().kv_policy.kind == flow::KvPolicy::Kind::kHeavyHitters;

  for (std::uint32_t row = 0; row < entry.num_rows; ++row) {
    const std::uint32_t position = entry.first_position + row;
    plan_.tokens.push_back(sequence.tokens()[position]);
    plan_.positions.push_back(position);
    plan_.slots.push_back(sequence.table.slot(position));
  }
  const auto blocks = sequence.table.blocks().first(entry.num_table);
  plan_.block_tables.insert(plan_.block_tables.end(), blocks.begin(), blocks.end());
  const auto kept = sequence.kept_groups();
  plan_.kept_groups.insert(plan_.kept_groups.end(), kept.begin(), kept.end());
  plan_.sequences.push_back(entry);
  planned_.push_back(&sequence);
}

}  // namespace quire::schedule
