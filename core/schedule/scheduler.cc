#include "core/schedule/scheduler.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

static_assert(flow::kDroppedBlock == kv::kNoBlock);

namespace {

SchedulerOptions resolved(SchedulerOptions options) {
  if (options.max_logit_rows == 0) options.max_logit_rows = options.max_num_seqs;
  return options;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, kv::BlockPool& pool, kv::PrefixIndex& index)
    : options_(resolved(options)), pool_(pool), index_(index), waiting_(options_, index) {
  CHECK_GE(options.max_num_seqs, 1u);
  CHECK(options.max_num_batched_tokens >= std::min(options.max_num_seqs, 2u));
  CHECK_GE(options_.max_logit_rows, options.max_num_seqs);
  const std::size_t rows = options.max_num_batched_tokens;
  running_.reserve(options.max_num_seqs);
  snapshot_.reserve(options.max_num_seqs);
  unheard_.reserve(options.max_num_seqs);
  admitted_.reserve(options.max_num_seqs);
  preempted_.reserve(options.max_num_seqs);
  for (Step& step : steps_) {
    step.sequences.reserve(options.max_num_seqs);
    step.plan.sequences.reserve(options.max_num_seqs);
    step.plan.tokens.reserve(rows);
    step.plan.positions.reserve(rows);
    step.plan.slots.reserve(rows);
    step.plan.block_tables.reserve(pool.num_blocks());
    step.plan.block_ops.reserve(options.max_num_seqs + options.num_swap_blocks +
                                (options.poison ? pool.num_blocks() : 0));
  }
  for (std::uint32_t i = options.num_swap_blocks; i > 0; --i) free_host_blocks_.push_back(i - 1);
  for (std::uint32_t i = options.max_num_seqs; i > 0; --i) free_open_groups_.push_back(i - 1);
  if (options.poison) pool.list_emptied();
}

void Scheduler::add(Sequence& sequence) {
  CHECK(sequence.state == State::kWaiting);
  sequence.added_in = num_plans_;
  waiting_.add(sequence);
}

void Scheduler::add_fork(Sequence& fork, const Sequence& parent) {
  CHECK(fork.state == State::kWaiting);
  if (parent.state == State::kRunning && running_.size() < options_.max_num_seqs && fork.take_room()) {
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
  if (sequence.started) waiting_.charge(sequence, sequence.num_tokens());
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
  roomless_.clear();
  preempted_.clear();
  std::swap(plan_->block_ops, early_ops_);
  early_ops_.clear();
  if (options_.poison) poison_emptied();
  budget_ = options_.max_num_batched_tokens;
  num_choices_ = 0;
  short_of_room_ = false;
  looks_ahead_ = false;
  bool streaming = false;  // without a row in this step
  for (Sequence* sequence : running_) {
    sequence->planned_rows = 0;
    if (sequence->num_in_flight() == 0) continue;
    looks_ahead_ = true;
    streaming = streaming || sequence->decoding();
  }
  const std::uint32_t for_waiting = waiting_.size() > 0 && running_.size() < options_.max_num_seqs ? 1 : 0;
  spare_logit_rows_ = options_.max_logit_rows - static_cast<std::uint32_t>(running_.size()) - for_waiting;

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
    if (sequence->planned_rows > 0) emit(*sequence);
  }
  return *plan_;
}

void Scheduler::plan_running(bool decoding) {
  snapshot_ = running_;  // make_room() takes sequences out of running_ while we walk
  const auto is_meant = [decoding](const Sequence* sequence) {
    return sequence->state == State::kRunning && sequence->ready() && sequence->decoding() == decoding;
  };
  auto others = decoding ? static_cast<std::uint32_t>(std::ranges::count_if(snapshot_, is_meant)) : 0;
  for (Sequence* sequence : snapshot_) {
    if (budget_ == 0) return;
    if (!is_meant(sequence)) continue;
    if (decoding) --others;  // each of these has its row, however many this one could run
    const std::uint32_t rows = std::min(next_rows(*sequence, /*entitled=*/1), budget_ - others);
    if (!make_room(*sequence, sequence->next_position() + rows)) continue;
    take_rows(*sequence, rows,
              /*entitled=*/1);  // and no more, though a victim's may have become free: room is for these
  }
}

// Those that decode, once round from where the last step stopped, as far as the rows go.
void Scheduler::plan_round_robin() {
  const bool takes_more = waiting_.size() > 0 && running_.size() < options_.max_num_seqs;
  const bool others =
      takes_more || std::ranges::any_of(running_, [](const Sequence* one) { return one->ready() && !one->decoding(); });
  const std::uint32_t kept = others ? budget_ / 2 : 0;
  budget_ -= kept;
  snapshot_ = running_;
  std::ranges::rotate(snapshot_, snapshot_.begin() + static_cast<std::ptrdiff_t>(next_served_));
  for (Sequence* sequence : snapshot_) {
    if (budget_ == 0) break;
    if (sequence->state != State::kRunning || !sequence->ready() || !sequence->decoding()) continue;
    const std::uint32_t rows = next_rows(*sequence, /*entitled=*/1);
    if (make_room(*sequence, sequence->next_position() + rows)) take_rows(*sequence, rows, /*entitled=*/1);
  }
  budget_ += kept;
  const auto is_served = [](const Sequence* one) { return one->planned_rows > 0; };
  const auto last = std::find_if(snapshot_.rbegin(), snapshot_.rend(), is_served);
  if (last == snapshot_.rend()) return;
  next_served_ = static_cast<std::size_t>(std::ranges::find(running_, *last) - running_.begin()) + 1;
}

void Scheduler::take_rows(Sequence& sequence, std::uint32_t rows, std::uint32_t entitled) {
  sequence.planned_rows = rows;
  sequence.planned_nodes = 0;
  budget_ -= rows;
  spare_logit_rows_ += entitled;
  spare_logit_rows_ -= sequence.num_speaking(rows);
}

// A lossy sequence's rows of one step lie in one span: they see the same past.
std::uint32_t Scheduler::next_rows(const Sequence& sequence, std::uint32_t entitled) const {
  const std::uint32_t few_speak =
      sequence.embeds() ? sequence.remaining() : sequence.silent_rows() + spare_logit_rows_ + entitled;
  const std::uint32_t rows = std::min({sequence.remaining(), budget_, few_speak});
  return sequence.lossy() ? std::min(rows, sequence.span_end() - sequence.computed()) : rows;
}

void Scheduler::plan_drafts() {
  for (Sequence* sequence : running_) {
    if (sequence->draft.empty() || sequence->planned_rows != 1 || !sequence->may_draft()) continue;
    const std::uint32_t nodes = draft_room(*sequence);
    if (nodes == 0) continue;
    const std::uint32_t covered = sequence->table.size();
    CHECK(sequence->table.grow_to(sequence->num_tokens() + nodes).ok());
    for (const BlockId block : sequence->table.blocks().subspan(covered)) note_fresh(block);
    sequence->planned_nodes = nodes;
    budget_ -= nodes;
    spare_logit_rows_ -= nodes;
  }
}

// Nodes of its draft, from the first, that there is room for. A draft judged by law runs whole or not at all.
std::uint32_t Scheduler::draft_room(const Sequence& sequence) const {
  const std::uint64_t spare = std::uint64_t{pool_.num_free()} * pool_.block_tokens() + sequence.table.capacity_tokens();
  std::uint32_t nodes = std::min({sequence.draft.size(), budget_, spare_logit_rows_});
  nodes = static_cast<std::uint32_t>(std::min<std::uint64_t>(nodes, spare - sequence.num_tokens()));
  if (options_.open_groups) {
    // int4 keeps the newest group's rows apart until it is whole, in order: guesses must not make it whole.
    nodes = std::min(nodes, kGroupTokens - 1 - sequence.num_tokens() % kGroupTokens);
    std::uint32_t chain = 0;
    while (chain < nodes && sequence.draft.parent(chain) == static_cast<int>(chain) - 1) ++chain;
    nodes = chain;
  }
  const bool by_law = sample::accepts_by_law(sequence.request().sampling);
  return by_law && nodes < sequence.draft.size() ? 0 : nodes;
}

void Scheduler::emit(Sequence& sequence) {
  flow::PlannedSequence entry;
  entry.seq = sequence.id();
  entry.first_row = static_cast<std::uint32_t>(plan_->tokens.size());
  entry.num_rows = sequence.planned_rows + sequence.planned_nodes;
  entry.first_position = sequence.next_position();
  entry.first_table = static_cast<std::uint32_t>(plan_->block_tables.size());
  entry.num_table = kv::blocks_for(entry.first_position + entry.num_rows, pool_.block_tokens());
  entry.open_group = sequence.open_group;
  entry.speaks = sequence.speaks(sequence.planned_rows);
  entry.decodes = sequence.decoding();
  if (sequence.num_awaited() > 0) entry.fed_by = sequence.choice;
  entry.num_pooled = sequence.num_pooled(sequence.planned_rows);
  entry.sampling = sequence.request().sampling;
  const std::uint32_t num_given = sequence.num_speaking(sequence.planned_rows) - (entry.speaks ? 1 : 0);
  if (num_given > 0) {
    entry.given = sequence.tokens().subspan(entry.first_position + sequence.silent_rows() + 1, num_given);
  }
  sequence.choice = num_choices_ + num_given;
  num_choices_ += num_given + (entry.speaks ? 1 : 0) + sequence.planned_nodes;
  if (entry.speaks && sequence.request().max_tokens > 0) entry.edits = sequence.edits();
  if (sequence.planned_nodes > 0) {
    entry.draft = &sequence.draft;
    entry.num_nodes = sequence.planned_nodes;
    entry.node_edits = sequence.node_edits(entry.num_nodes);
  }
  entry.first_kept = static_cast<std::uint32_t>(plan_->kept_groups.size());
  entry.num_kept = static_cast<std::uint32_t>(sequence.kept_groups().size());
  entry.wants_accumulated_scores = sequence.request().kv_policy.kind == flow::KvPolicy::Kind::kHeavyHitters;

  for (std::uint32_t row = 0; row < sequence.planned_rows; ++row) {
    const std::uint32_t position = entry.first_position + row;
    plan_->tokens.push_back(position < sequence.num_tokens() ? sequence.tokens()[position] : -1);
    plan_->positions.push_back(position);
    plan_->slots.push_back(sequence.table.slot(position));
  }
  const std::uint32_t end = entry.first_position + sequence.planned_rows;
  for (std::uint32_t node = 0; node < entry.num_nodes; ++node) {
    plan_->tokens.push_back(sequence.draft.token(node));
    plan_->positions.push_back(end - 1 + sequence.draft.depth(node));
    plan_->slots.push_back(sequence.table.slot(end + node));
  }
  const auto blocks = sequence.table.blocks().first(entry.num_table);
  plan_->block_tables.insert(plan_->block_tables.end(), blocks.begin(), blocks.end());
  const auto kept = sequence.kept_groups();
  plan_->kept_groups.insert(plan_->kept_groups.end(), kept.begin(), kept.end());
  plan_->sequences.push_back(entry);
  step_->sequences.push_back(&sequence);
  waiting_.charge(sequence, sequence.num_tokens() + (entry.speaks ? 1 : 0));
}

}  // namespace quire::schedule
