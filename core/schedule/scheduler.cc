#include "core/schedule/scheduler.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::schedule {

namespace {

SchedulerOptions resolved(SchedulerOptions options) {
  if (options.max_logits_rows == 0) options.max_logits_rows = options.max_num_seqs;
  return options;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index)
    : options_(resolved(options)), pool_(pool), index_(index), waiting_(options_, index) {
  CHECK_GE(options.max_num_seqs, 1u);
  CHECK(options.max_num_batched_tokens >= std::min(options.max_num_seqs, 2u));
  CHECK_GE(options_.max_logits_rows, options.max_num_seqs);
  CHECK_LE(pool.num_groups(), kMostGroups);
  const std::size_t rows = options.max_num_batched_tokens;
  running_.reserve(options.max_num_seqs);
  snapshot_.reserve(options.max_num_seqs);
  prefix_producers_.reserve(options.max_num_seqs);
  admitted_.reserve(options.max_num_seqs);
  preempted_.reserve(options.max_num_seqs);
  for (Step& step : steps_) {
    step.sequences.reserve(options.max_num_seqs);
    step.plan.sequences.reserve(options.max_num_seqs);
    step.plan.tokens.reserve(rows);
    step.plan.positions.reserve(rows);
    step.plan.slots.reserve(rows * pool.num_groups());
    step.plan.block_tables.reserve(pool.num_blocks());
    step.plan.block_ops.reserve(options.max_num_seqs + options.num_swap_blocks +
                                (options.poison ? pool.num_blocks() : 0));
  }
  for (std::uint32_t i = options.num_swap_blocks; i > 0; --i) free_host_blocks_.push_back(i - 1);
  for (std::uint32_t i = options.max_num_seqs; i > 0; --i) free_residual_groups_.push_back(i - 1);
  if (options.poison) pool.list_emptied();
}

void Scheduler::add(Sequence& sequence) {
  CHECK(sequence.state == State::kWaiting);
  sequence.queue.added_in = num_plans_;
  waiting_.add(sequence);
}

void Scheduler::add_fork(Sequence& fork, const Sequence& parent) {
  CHECK(fork.state == State::kWaiting);
  if (parent.state == State::kRunning && running_.size() < options_.max_num_seqs && fork.reserve_memory()) {
    enter(fork);
    if (options_.residual_groups) {
      early_ops_.push_back({flow::BlockOp::Kind::kCopyResidualGroup, parent.residual_group, fork.residual_group});
    }
    return;
  }
  fork.release_blocks();
  waiting_.add(fork);
}

void Scheduler::remove(Sequence& sequence) {
  sequence.prefix.mark_end(index_);
  if (sequence.state == State::kRunning) leave(sequence);
  if (sequence.state == State::kWaiting) waiting_.remove(sequence);
  if (sequence.queue.started) waiting_.charge(sequence, sequence.num_tokens());
  forget_swapped(sequence);
  sequence.state = State::kDone;
}

const flow::StepPlan& Scheduler::plan(const PromptRows& limit) {
  ++num_plans_;
  step_ = &steps_[num_plans_ % steps_.size()];
  plan_ = &step_->plan;
  plan_->clear();
  step_->sequences.clear();
  admitted_.clear();
  out_of_memory_.clear();
  preempted_.clear();
  std::swap(plan_->block_ops, early_ops_);
  early_ops_.clear();
  if (options_.poison) poison_emptied();
  budget_ = options_.max_num_batched_tokens;
  num_choices_ = 0;
  short_of_room_ = false;
  looks_ahead_ = false;
  bool streaming = false;  // true if a sequence decodes, in a step in flight or in this one
  for (Sequence* sequence : running_) {
    sequence->planned_rows = 0;
    if (sequence->progress.num_in_flight() == 0) continue;
    looks_ahead_ = true;
    streaming = streaming || sequence->decoding();
  }
  const std::uint32_t for_waiting = waiting_.size() > 0 && running_.size() < options_.max_num_seqs ? 1 : 0;
  spare_logit_rows_ = options_.max_logits_rows - static_cast<std::uint32_t>(running_.size()) - for_waiting;

  if (serves_round_robin()) {
    plan_round_robin();
  } else {
    plan_running(/*decoding=*/true);
  }
  streaming = streaming || budget_ < options_.max_num_batched_tokens;
  const std::uint32_t for_prompts = std::min(budget_, std::max(streaming ? limit.while_streaming : limit.alone, 1u));
  const std::uint32_t kept_from_prompts = budget_ - for_prompts;
  budget_ = for_prompts;
  plan_running(/*decoding=*/false);
  spare_logit_rows_ += for_waiting;
  if (!short_of_room_) admit_waiting();
  budget_ += kept_from_prompts;
  plan_drafts();

  for (Sequence* sequence : running_) {
    if (sequence->planned_rows > 0) append_to_plan(*sequence);
  }
  append_slots();
  return *plan_;
}

void Scheduler::plan_running(bool decoding) {
  snapshot_ = running_;  // reserve_or_preempt() removes sequences from running_ during the loop
  const auto is_meant = [decoding](const Sequence* sequence) {
    return sequence->state == State::kRunning && sequence->ready() && sequence->decoding() == decoding;
  };
  auto others = decoding ? static_cast<std::uint32_t>(std::ranges::count_if(snapshot_, is_meant)) : 0;
  for (Sequence* sequence : snapshot_) {
    if (budget_ == 0) return;
    if (!is_meant(sequence)) continue;
    if (decoding) --others;  // each of the others keeps one row, however many rows this one could run
    const std::uint32_t rows = std::min(next_rows(*sequence, /*entitled=*/1), budget_ - others);
    if (!reserve_or_preempt(*sequence, sequence->progress.next_position() + rows)) continue;
    // No more than `rows`, even if a preemption has freed some: there are blocks for these alone.
    take_rows(*sequence, rows, /*entitled=*/1);
  }
}

// Plans rows of decoding sequences, once round from where the last step stopped, as far as the budget goes.
void Scheduler::plan_round_robin() {
  const bool takes_more = waiting_.size() > 0 && running_.size() < options_.max_num_seqs;
  const bool others =
      takes_more || std::ranges::any_of(running_, [](const Sequence* one) { return one->ready() && !one->decoding(); });
  const std::uint32_t kept = others ? budget_ / 2 : 0;
  budget_ -= kept;
  snapshot_ = running_;
  std::ranges::rotate(snapshot_, snapshot_.begin() + static_cast<std::ptrdiff_t>(round_robin_next_));
  for (Sequence* sequence : snapshot_) {
    if (budget_ == 0) break;
    if (sequence->state != State::kRunning || !sequence->ready() || !sequence->decoding()) continue;
    const std::uint32_t rows = next_rows(*sequence, /*entitled=*/1);
    if (reserve_or_preempt(*sequence, sequence->progress.next_position() + rows))
      take_rows(*sequence, rows, /*entitled=*/1);
  }
  budget_ += kept;
  const auto is_served = [](const Sequence* one) { return one->planned_rows > 0; };
  const auto last = std::find_if(snapshot_.rbegin(), snapshot_.rend(), is_served);
  if (last == snapshot_.rend()) return;
  round_robin_next_ = static_cast<std::size_t>(std::ranges::find(running_, *last) - running_.begin()) + 1;
}

void Scheduler::take_rows(Sequence& sequence, std::uint32_t rows, std::uint32_t entitled) {
  sequence.planned_rows = rows;
  sequence.planned_nodes = 0;
  budget_ -= rows;
  spare_logit_rows_ += entitled;
  spare_logit_rows_ -= sequence.num_logits_rows(rows);
}

// Number of rows that the sequence could run in this step. A lossy sequence's rows lie in one span: all of them see
// the same kept groups.
std::uint32_t Scheduler::next_rows(const Sequence& sequence, std::uint32_t entitled) const {
  const std::uint32_t few_logits_rows =
      sequence.request().embeds() ? sequence.remaining() : sequence.rows_before_wanted() + spare_logit_rows_ + entitled;
  const std::uint32_t rows = std::min({sequence.remaining(), budget_, few_logits_rows});
  const std::uint32_t computed = sequence.progress.computed();
  return sequence.lossy() ? std::min(rows, span_end(computed) - computed) : rows;
}

void Scheduler::plan_drafts() {
  for (Sequence* sequence : running_) {
    if (sequence->draft.empty() || sequence->planned_rows != 1 || !sequence->may_draft()) continue;
    const std::uint32_t nodes = draft_room(*sequence);
    if (nodes == 0) continue;
    grow(*sequence, kv::BlockTable::all_of(sequence->num_tokens() + nodes));
    sequence->planned_nodes = nodes;
    budget_ -= nodes;
    spare_logit_rows_ -= nodes;
  }
}

// Number of first nodes of its draft for which rows, logits rows and blocks are left. A draft verified by rejection
// sampling runs whole or not at all.
std::uint32_t Scheduler::draft_room(const Sequence& sequence) const {
  std::uint32_t nodes = std::min({sequence.draft.size(), budget_, spare_logit_rows_});
  const auto num_missing = [&] {
    return sequence.table.num_missing(kv::BlockTable::all_of(sequence.num_tokens() + nodes));
  };
  while (nodes > 0 && num_missing() > pool_.num_free()) --nodes;
  if (options_.residual_groups) {
    // int4 stores the rows of the residual group in order, and quantises the group once it is complete: draft tokens
    // must be a chain and must not complete it.
    nodes = std::min(nodes, kGroupTokens - 1 - sequence.num_tokens() % kGroupTokens);
    std::uint32_t chain = 0;
    while (chain < nodes && sequence.draft.parent(chain) == static_cast<int>(chain) - 1) ++chain;
    nodes = chain;
  }
  const bool by_rejection = sample::accepts_by_rejection(sequence.request().sampling);
  return by_rejection && nodes < sequence.draft.size() ? 0 : nodes;
}

void Scheduler::append_to_plan(Sequence& sequence) {
  flow::PlannedSequence entry;
  entry.seq = sequence.id();
  entry.first_row = static_cast<std::uint32_t>(plan_->tokens.size());
  entry.num_rows = sequence.planned_rows + sequence.planned_nodes;
  entry.first_position = sequence.progress.next_position();
  entry.first_table = static_cast<std::uint32_t>(plan_->block_tables.size());
  entry.num_table = kv::blocks_for(entry.first_position + entry.num_rows, pool_.block_tokens());
  entry.residual_group = sequence.residual_group;
  entry.samples = sequence.samples(sequence.planned_rows);
  entry.decodes = sequence.decoding();
  if (sequence.progress.num_awaited() > 0) entry.fed_by = sequence.choice;
  entry.num_pooled = sequence.num_pooled(sequence.planned_rows);
  entry.sampling = sequence.request().sampling;
  const std::uint32_t num_given = sequence.num_logits_rows(sequence.planned_rows) - (entry.samples ? 1 : 0);
  if (num_given > 0) {
    entry.given = sequence.tokens().subspan(entry.first_position + sequence.rows_before_wanted() + 1, num_given);
  }
  sequence.choice = num_choices_ + num_given;
  num_choices_ += num_given + (entry.samples ? 1 : 0) + sequence.planned_nodes;
  if (entry.samples && sequence.request().max_tokens > 0) entry.edits = sequence.rules.edits();
  if (sequence.planned_nodes > 0) {
    entry.draft = &sequence.draft;
    entry.num_nodes = sequence.planned_nodes;
    entry.node_edits = sequence.rules.node_edits(sequence.draft, entry.num_nodes);
  }
  entry.first_kept = static_cast<std::uint32_t>(plan_->kept_groups.size());
  entry.num_kept = static_cast<std::uint32_t>(sequence.retention.kept_groups().size());
  entry.wants_accumulated_scores = sequence.request().kv_policy.kind == flow::KvPolicy::Kind::kHeavyHitters;

  for (std::uint32_t row = 0; row < sequence.planned_rows; ++row) {
    const std::uint32_t position = entry.first_position + row;
    plan_->tokens.push_back(position < sequence.num_tokens() ? sequence.tokens()[position] : -1);
    plan_->positions.push_back(position);
  }
  const std::uint32_t end = entry.first_position + sequence.planned_rows;
  for (std::uint32_t node = 0; node < entry.num_nodes; ++node) {
    plan_->tokens.push_back(sequence.draft.token(node));
    plan_->positions.push_back(end - 1 + sequence.draft.depth(node));
  }
  append_tables(sequence, entry.num_table);
  const auto kept = sequence.retention.kept_groups();
  plan_->kept_groups.insert(plan_->kept_groups.end(), kept.begin(), kept.end());
  plan_->sequences.push_back(entry);
  step_->sequences.push_back(&sequence);
  waiting_.charge(sequence, sequence.num_tokens() + (entry.samples ? 1 : 0));
}

void Scheduler::append_tables(const Sequence& sequence, std::uint32_t num_table) {
  for (std::uint32_t group = 0; group < pool_.num_groups(); ++group) {
    const auto blocks = sequence.table.blocks(group).first(num_table);
    plan_->block_tables.insert(plan_->block_tables.end(), blocks.begin(), blocks.end());
  }
}

// The slots of all rows, group by group. A draft's nodes lie one behind the other, behind the last token.
void Scheduler::append_slots() {
  for (std::uint32_t group = 0; group < pool_.num_groups(); ++group) {
    for (std::size_t i = 0; i < plan_->sequences.size(); ++i) {
      const flow::PlannedSequence& entry = plan_->sequences[i];
      for (std::uint32_t row = 0; row < entry.num_rows; ++row) {
        plan_->slots.push_back(step_->sequences[i]->table.slot(group, entry.first_position + row));
      }
    }
  }
}

}  // namespace quire::schedule
