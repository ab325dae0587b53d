#include "core/schedule/scheduler.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

Scheduler::Scheduler(SchedulerOptions options, kv::BlockPool& pool, kv::PrefixIndex* index)
    : options_(options), pool_(pool), index_(index) {
  CHECK_GE(options.max_num_seqs, 1u);
  CHECK_GE(options.max_num_batched_tokens, options.max_num_seqs);
  const std::size_t rows = options.max_num_batched_tokens;
  running_.reserve(options.max_num_seqs);
  turn_.reserve(options.max_num_seqs);
  planned_.reserve(options.max_num_seqs);
  admitted_.reserve(options.max_num_seqs);
  plan_.sequences.reserve(options.max_num_seqs);
  plan_.tokens.reserve(rows);
  plan_.positions.reserve(rows);
  plan_.slots.reserve(rows);
  plan_.block_tables.reserve(pool.num_blocks());
}

void Scheduler::add(Sequence& sequence) {
  CHECK(sequence.state == State::kWaiting);
  waiting_.push_back(&sequence);
}

void Scheduler::remove(Sequence& sequence) {
  if (sequence.state == State::kRunning) std::erase(running_, &sequence);
  if (sequence.state == State::kWaiting) std::erase(waiting_, &sequence);
  sequence.state = State::kDone;
}

const flow::StepPlan& Scheduler::plan(const PromptRows& limit) {
  plan_.clear();
  planned_.clear();
  admitted_.clear();
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
  turn_ = running_;  // make_room() takes sequences out of running_ while we walk
  for (Sequence* sequence : turn_) {
    if (budget_ == 0) return;
    if (sequence->state != State::kRunning || sequence->parked || sequence->decoding() != decoding) continue;
    const std::uint32_t rows = std::min(sequence->remaining(), budget_);
    if (make_room(*sequence, sequence->computed() + rows)) plan_rows(*sequence);
  }
}

void Scheduler::admit_waiting() {
  while (budget_ > 0) {
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const Sequence* one) { return !one->parked; });
    if (next == waiting_.end()) return;
    if (running_.size() >= options_.max_num_seqs) {
      if (!send_back_parked()) return;
      continue;  // waiting_ has moved
    }
    Sequence& sequence = **next;
    if (index_ != nullptr) sequence.adopt_prefix(*index_);
    if (!sequence.table.grow_to(sequence.num_tokens())) {
      sequence.forget_computed();
      if (send_back_parked()) continue;
      CHECK(!running_.empty());  // an empty pool always holds one sequence of maximum length
      return;                    // whoever came later does not overtake
    }
    waiting_.erase(next);
    sequence.state = State::kRunning;
    running_.push_back(&sequence);
    admitted_.push_back(&sequence);
    plan_rows(sequence);
  }
}

void Scheduler::plan_rows(Sequence& sequence) {
  sequence.planned_rows = std::min(sequence.remaining(), budget_);
  budget_ -= sequence.planned_rows;
}

// Blocks for `num_tokens` tokens of `asker`, sending back parked and then newer sequences while the pool is dry. False:
// `asker` itself was the newest and had to go.
bool Scheduler::make_room(Sequence& asker, std::uint32_t num_tokens) {
  while (!asker.table.grow_to(num_tokens)) {
    if (send_back_parked()) continue;
    CHECK(running_.size() > 1);  // alone, a sequence always has room: the pool holds one of maximum length
    Sequence* const victim = newest(/*parked=*/false);
    preempt(*victim);
    if (victim == &asker) return false;
  }
  return true;
}

// The newest running sequence whose client does not read gives up its place. False: there is none.
bool Scheduler::send_back_parked() {
  Sequence* const victim = newest(/*parked=*/true);
  if (victim == nullptr) return false;
  preempt(*victim);
  return true;
}

Sequence* Scheduler::newest(bool parked) const {
  Sequence* found = nullptr;
  for (Sequence* one : running_) {
    if (one->parked == parked && (found == nullptr || found->id() < one->id())) found = one;
  }
  return found;
}

void Scheduler::preempt(Sequence& victim) {
  budget_ += victim.planned_rows;
  victim.planned_rows = 0;
  victim.forget_computed();
  victim.state = State::kWaiting;
  std::erase(running_, &victim);
  waiting_.push_front(&victim);
  ++num_preemptions_;
}

void Scheduler::emit(Sequence& sequence) {
  flow::PlannedSequence entry;
  entry.seq = sequence.id();
  entry.first_row = static_cast<std::uint32_t>(plan_.tokens.size());
  entry.num_rows = sequence.planned_rows;
  entry.first_position = sequence.computed();
  entry.first_table = static_cast<std::uint32_t>(plan_.block_tables.size());
  entry.num_table = kv::blocks_for(sequence.computed() + sequence.planned_rows, pool_.block_tokens());
  entry.speaks = sequence.planned_rows == sequence.remaining();
  entry.sampling = sequence.request().sampling;

  for (std::uint32_t row = 0; row < entry.num_rows; ++row) {
    const std::uint32_t position = entry.first_position + row;
    plan_.tokens.push_back(sequence.tokens()[position]);
    plan_.positions.push_back(position);
    plan_.slots.push_back(sequence.table.slot(position));
  }
  const auto blocks = sequence.table.blocks().first(entry.num_table);
  plan_.block_tables.insert(plan_.block_tables.end(), blocks.begin(), blocks.end());
  plan_.sequences.push_back(entry);
  planned_.push_back(&sequence);
}

}  // namespace quire::schedule
