#include "core/model/run/decoder_runner.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/start_error.h"

namespace quire::model {
namespace {

RunnerLimits resolved(RunnerLimits limits, const ModelSpec& model) {
  if (limits.max_logits_rows == 0) limits.max_logits_rows = limits.max_sequences;
  if (limits.groups.windows.empty()) limits.groups = one_group(model);
  return limits;
}

}  // namespace

DecoderRunner::DecoderRunner(backend::Ops& ops, const Decoder& decoder, const RunnerLimits& limits)
    : ops_(ops), decoder_(decoder), limits_(resolved(limits, decoder.config())) {
  CHECK_GT(limits.max_rows, 0u);
  CHECK_GT(limits.max_sequences, 0u);
  CHECK(limits.block_tokens > 0 && limits.block_tokens % 16 == 0);
  backend::KvShape shape = limits_.groups.shape(limits.block_tokens, limits.num_blocks, limits.kv_dtype);
  shape.num_blocks += limits.num_scratch_blocks;
  if (limits.kv_dtype == backend::KvType::kInt4) shape.num_residual_groups = limits.max_sequences;
  residual_groups_.resize(shape.num_residual_groups);
  cache_ = ops.make_kv(shape);
  swap_ = std::make_unique_for_overwrite<std::byte[]>(limits.num_swap_blocks * cache_->block_bytes());
  workspace_ = decoder.make_workspace(limits.max_rows, limits_.max_logits_rows, limits.captures);
  flights_.resize(ops.depth());
  for (Flight& flight : flights_) reserve(flight, limits_, decoder);
  copies_.reserve(limits.max_sequences);
}

void DecoderRunner::reserve(Flight& flight, const RunnerLimits& limits, const Decoder& decoder) {
  const std::size_t longest = std::size_t{decoder.max_model_len()} + sample::TokenTree::kMaxNodes;
  const std::size_t table = (longest + limits.block_tokens - 1) / limits.block_tokens;
  flight.tokens.reserve(limits.max_rows);
  flight.positions.reserve(limits.max_rows);
  flight.slots.reserve(std::size_t{limits.max_rows} * limits.groups.size());
  const std::uint32_t most = std::min(limits.max_sequences, limits.max_rows);  // sequences of a step
  flight.sequences.reserve(most);
  flight.block_tables.reserve(most * table * limits.groups.size());
  flight.kept_groups.reserve(most * std::size_t{decoder.max_model_len() / kSpanTokens});
  flight.fed.reserve(most);
  flight.logits_rows.reserve(limits.max_logits_rows);
  flight.answers.reserve(limits.max_logits_rows);
  flight.choices.reserve(limits.max_logits_rows);
  flight.ancestors.reserve(limits.max_logits_rows);
  flight.pooled_rows.reserve(most);
  flight.pooled.reserve(std::size_t{limits.max_rows} * decoder.config().embedding);
}

void DecoderRunner::submit(const flow::StepPlan& plan) {
  CHECK(!full());
  check(plan);
  run(plan.block_ops);
  use_residual_groups(plan);
  Flight& flight = flights_[next_flight_];
  translate(plan, flight);
  if (!plan.sequences.empty()) forward(flight);
  // Only after forward(): a step whose submission throws is not in flight.
  next_flight_ = (next_flight_ + 1) % flights_.size();
  ++num_in_flight_;
}

void DecoderRunner::forward(const Flight& flight) {
  backend::Batch batch;
  batch.tokens = flight.tokens;
  batch.positions = flight.positions;
  batch.slots = flight.slots;
  batch.sequences = flight.sequences;
  batch.block_tables = flight.block_tables;
  batch.logits_rows = flight.logits_rows;
  batch.kept_groups = flight.kept_groups;
  batch.ancestors = flight.ancestors;
  batch.fed = flight.fed;
  batch.num_accumulated_scores = static_cast<std::uint32_t>(flight.accumulated_scores.size());
  decoder_.forward(batch, *cache_, workspace_, /*norms_all=*/!flight.pooled.empty());
}

std::span<const flow::StepChoice> DecoderRunner::collect() {
  CHECK(!idle());
  Flight& flight = flights_[(next_flight_ + flights_.size() - num_in_flight_) % flights_.size()];
  if (!flight.sequences.empty()) ops_.collect(flight.choices);
  --num_in_flight_;
  if (!flight.accumulated_scores.empty()) ops_.read_accumulated_scores(flight.accumulated_scores);
  if (!flight.pooled.empty()) read_pooled(flight);
  for (std::size_t i = 0; i < flight.answers.size(); ++i) {
    static_cast<sample::Choice&>(flight.answers[i]) = flight.choices[i];
  }
  return flight.answers;
}

// The flight collected last; its results are still in workspace_. CHECKs that no step is in flight.
const DecoderRunner::Flight& DecoderRunner::collected() const {
  CHECK(idle());
  return flights_[(next_flight_ + flights_.size() - 1) % flights_.size()];
}

std::span<const std::uint64_t> DecoderRunner::accumulated_scores(std::size_t planned) const {
  const Flight& flight = collected();
  CHECK_LT(planned, flight.sequences.size());
  return std::span(flight.accumulated_scores)
      .subspan(flight.sequences[planned].first_accumulated_score, flight.sequences[planned].num_accumulated_scores);
}

void DecoderRunner::read_pooled(Flight& flight) {
  CHECK(idle());
  const std::size_t width = hidden_width();
  for (const PooledRows& rows : flight.pooled_rows) {
    if (rows.num_rows == 0) continue;
    ops_.read(workspace_.last(), rows.first_row, rows.num_rows,
              std::span(flight.pooled).subspan(rows.begin, rows.num_rows * width));
  }
}

std::span<const float> DecoderRunner::pooled(std::size_t planned) const {
  const Flight& flight = collected();
  CHECK_LT(planned, flight.pooled_rows.size());
  const PooledRows& rows = flight.pooled_rows[planned];
  return std::span(flight.pooled).subspan(rows.begin, std::size_t{rows.num_rows} * hidden_width());
}

void DecoderRunner::read_logits(std::span<float> out) {
  const Flight& flight = collected();
  CHECK_EQ(out.size(), flight.logits_rows.size() * decoder_.config().vocab);
  ops_.read(*workspace_.logits, 0, static_cast<std::uint32_t>(flight.logits_rows.size()), out);
}

void DecoderRunner::copy_rows(std::span<const backend::RowCopy> copies) {
  CHECK(idle());
  const std::uint64_t num_slots = std::uint64_t{limits_.num_blocks} * limits_.block_tokens;
  for (const backend::RowCopy& copy : copies) {
    CHECK_LT(copy.from, num_slots);
    CHECK_LT(copy.to, num_slots);
    CHECK_LT(copy.group, limits_.groups.size());
  }
  ops_.copy_rows(*cache_, copies);
}

void DecoderRunner::read_block(BlockId block, std::span<std::byte> out) {
  CHECK(idle());
  ops_.read_block(*cache_, block, out);
}

void DecoderRunner::write_block(BlockId block, std::span<const std::byte> bytes) {
  CHECK(idle());
  ops_.write_block(*cache_, block, bytes);
}

// Copies that follow each other are one list.
void DecoderRunner::run(std::span<const flow::BlockOp> ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != flow::BlockOp::Kind::kCopy) {
      run(ops[i]);
      continue;
    }
    copies_.push_back({BlockId(ops[i].from), BlockId(ops[i].to)});
    if (i + 1 < ops.size() && ops[i + 1].kind == flow::BlockOp::Kind::kCopy) continue;
    ops_.copy_blocks(*cache_, copies_);
    copies_.clear();
  }
}

void DecoderRunner::run(const flow::BlockOp& op) {
  using enum flow::BlockOp::Kind;
  const backend::BlockCopy copy{BlockId(op.from), BlockId(op.to)};
  switch (op.kind) {
    case kCopy:
      return;  // in lists
    case kPoison:
      return ops_.poison_block(*cache_, copy.to);
    case kSwapOut:
      return ops_.read_block(*cache_, copy.from, swap_block(op.to));
    case kSwapIn:
      return ops_.write_block(*cache_, copy.to, swap_block(op.from));
    case kCopyResidualGroup:
      residual_groups_[op.to].plain_end = residual_groups_[op.from].plain_end;
      residual_groups_[op.to].end = residual_groups_[op.from].end;
      return ops_.copy_residual_group(*cache_, op.from, op.to);
  }
}

std::span<std::byte> DecoderRunner::swap_block(std::uint32_t index) {
  return {swap_.get() + index * cache_->block_bytes(), cache_->block_bytes()};
}

// The plan comes from the scheduler: an error in it is our bug, caught here before a kernel reads out of bounds.
void DecoderRunner::check(const flow::StepPlan& plan) const {
  CHECK(!plan.empty());
  for (const flow::BlockOp& op : plan.block_ops) check(op);
  CHECK_LE(plan.sequences.size(), limits_.max_sequences);
  CHECK_LE(plan.tokens.size(), limits_.max_rows);
  CHECK_EQ(plan.positions.size(), plan.tokens.size());
  CHECK_EQ(plan.slots.size(), plan.tokens.size() * limits_.groups.size());
  CHECK_LE(plan.block_tables.size(), flights_[0].block_tables.capacity());
  CHECK_LE(plan.kept_groups.size(), flights_[0].kept_groups.capacity());
  const std::uint64_t num_slots = std::uint64_t{limits_.num_blocks} * limits_.block_tokens;
  std::uint32_t next_row = 0;
  std::size_t num_logits_rows = 0;
  for (const flow::PlannedSequence& sequence : plan.sequences) {
    CHECK_EQ(sequence.first_row, next_row);
    CHECK_GT(sequence.num_rows, 0u);
    CHECK_LT(sequence.num_nodes, sequence.num_rows);
    CHECK(sequence.num_nodes == 0 || (sequence.samples && sequence.num_nodes <= sequence.draft->size()));
    const std::uint32_t num_plain = sequence.num_rows - sequence.num_nodes;
    CHECK_LE(sequence.given.size() + (sequence.samples ? 1 : 0), num_plain);
    CHECK_LE(sequence.num_pooled, num_plain);
    CHECK(sequence.node_edits.empty() || sequence.node_edits.size() == sequence.num_nodes);
    num_logits_rows += sequence.given.size() + (sequence.samples ? 1 : 0) + sequence.num_nodes;
    CHECK_LE(sequence.num_rows, plan.tokens.size() - next_row);
    next_row += sequence.num_rows;
    check(plan, sequence);
    if (sequence.fed_by != flow::PlannedSequence::kNoChoice) {
      CHECK(!idle());
      CHECK_EQ(sequence.num_rows, 1u);
      CHECK_EQ(plan.tokens[sequence.first_row], -1);
    }
    for (std::uint32_t row = 0; row < sequence.num_rows; ++row) {
      const bool is_node = row >= num_plain;
      const std::uint32_t behind = is_node ? num_plain - 1 + sequence.draft->depth(row - num_plain) : row;
      CHECK_EQ(plan.positions[sequence.first_row + row], sequence.first_position + behind);
      CHECK_LT(plan.positions[sequence.first_row + row], decoder_.max_model_len());
    }
  }
  CHECK_EQ(next_row, plan.tokens.size());
  CHECK_LE(num_logits_rows, limits_.max_logits_rows);
  for (const TokenId token : plan.tokens)
    CHECK(token >= -1 && (token < 0 || static_cast<std::uint32_t>(token) < decoder_.config().vocab));
  for (const std::uint32_t slot : plan.slots) CHECK_LT(slot, num_slots);
}

// Checks the sequence's block tables and its dropped groups.
void DecoderRunner::check(const flow::StepPlan& plan, const flow::PlannedSequence& sequence) const {
  CHECK_LE(sequence.first_table, plan.block_tables.size());
  CHECK_LE(std::uint64_t{sequence.num_table} * limits_.groups.size(), plan.block_tables.size() - sequence.first_table);
  const std::uint64_t end = std::uint64_t{sequence.first_position} + sequence.num_rows;
  CHECK_LE(end, std::uint64_t{sequence.num_table} * limits_.block_tokens);
  CHECK_LE(sequence.first_kept, plan.kept_groups.size());
  CHECK_LE(sequence.num_kept, plan.kept_groups.size() - sequence.first_kept);
  if (sequence.num_kept != 0) {
    CHECK_EQ(sequence.first_position / kSpanTokens, sequence.num_kept);
    CHECK_EQ((end - 1) / kSpanTokens, sequence.num_kept);
  }
  for (std::uint32_t group = 0; group < limits_.groups.size(); ++group) {
    for (std::uint32_t i = 0; i < sequence.num_table; ++i) {
      const BlockId block = plan.block_tables[sequence.first_table + group * sequence.num_table + i];
      if (block == kNoBlock) {
        CHECK(!may_look_at(plan, sequence, group, i));
      } else {
        CHECK_LT(block.value, limits_.num_blocks);
      }
    }
  }
}

// True if a row of the sequence attends to any position of block `table_index` of its table, in a layer of the group.
bool DecoderRunner::may_look_at(const flow::StepPlan& plan, const flow::PlannedSequence& sequence, std::uint32_t group,
                                std::uint32_t table_index) const {
  const std::uint32_t window = limits_.groups.windows[group];
  const std::uint64_t end = std::uint64_t{sequence.first_position} + sequence.num_rows;
  const std::uint64_t lowest_seen =
      window == 0 ? 0 : sequence.first_position + 1 - std::min(sequence.first_position + 1, window);
  const std::uint64_t block_start = std::uint64_t{table_index} * limits_.block_tokens;
  const std::uint64_t block_end = std::min(end, block_start + limits_.block_tokens);
  for (std::uint64_t position = block_start; position < block_end; position += kGroupTokens) {
    if (position + kGroupTokens <= lowest_seen) continue;
    const std::uint64_t span = position / kSpanTokens;
    if (span >= sequence.num_kept) return true;
    const auto bit = static_cast<std::uint32_t>(position % kSpanTokens / kGroupTokens);
    if ((plan.kept_groups[sequence.first_kept + span] >> bit & 1) != 0) return true;
  }
  return false;
}

void DecoderRunner::check(const flow::BlockOp& op) const {
  using enum flow::BlockOp::Kind;
  std::size_t num_from = limits_.num_blocks;
  std::size_t num_to = limits_.num_blocks;
  if (op.kind == kSwapIn) num_from = limits_.num_swap_blocks;
  if (op.kind == kSwapOut) num_to = limits_.num_swap_blocks;
  if (op.kind == kCopyResidualGroup) num_from = num_to = residual_groups_.size();
  if (op.kind != kPoison) CHECK_LT(op.from, num_from);
  CHECK_LT(op.to, num_to);
}

void DecoderRunner::use_residual_groups(const flow::StepPlan& plan) {
  ++step_;
  if (residual_groups_.empty()) return;
  for (const flow::PlannedSequence& sequence : plan.sequences) {
    CHECK_LT(sequence.residual_group, residual_groups_.size());
    ResidualGroup& open = residual_groups_[sequence.residual_group];
    CHECK_NE(open.step, step_);
    if (sequence.first_position % kGroupTokens != 0) {
      CHECK_GE(sequence.first_position, open.plain_end);
      CHECK_LE(sequence.first_position, open.end);  // at most all draft tokens were accepted
    }
    const std::uint32_t end = sequence.first_position + sequence.num_rows;
    open = {end - sequence.num_nodes, end, step_};
  }
}

void DecoderRunner::translate(const flow::StepPlan& plan, Flight& to) const {
  to.tokens.assign(plan.tokens.begin(), plan.tokens.end());
  to.positions.assign(plan.positions.begin(), plan.positions.end());
  to.slots.assign(plan.slots.begin(), plan.slots.end());
  translate_tables(plan, to);
  to.kept_groups.assign(plan.kept_groups.begin(), plan.kept_groups.end());
  to.sequences.clear();
  to.logits_rows.clear();
  to.answers.clear();
  to.pooled_rows.clear();
  to.ancestors.clear();
  to.fed.clear();
  std::uint32_t num_accumulated_scores = 0;
  std::size_t num_pooled = 0;
  std::uint32_t first_table = 0;
  for (const flow::PlannedSequence& planned : plan.sequences) {
    to.sequences.push_back({planned.first_row, planned.num_rows, planned.first_position, first_table, planned.num_table,
                            planned.first_kept, planned.num_kept, planned.residual_group});
    first_table += planned.num_table;
    if (planned.fed_by != flow::PlannedSequence::kNoChoice) to.fed.push_back({planned.first_row, planned.fed_by});
    if (planned.wants_accumulated_scores) {
      const std::uint32_t length = planned.first_position + planned.num_rows;
      to.sequences.back().first_accumulated_score = num_accumulated_scores;
      to.sequences.back().num_accumulated_scores = (length + kGroupTokens - 1) / kGroupTokens;
      num_accumulated_scores += to.sequences.back().num_accumulated_scores;
    }
    const std::uint32_t num_plain = planned.num_rows - planned.num_nodes;
    const std::uint32_t last_row = planned.first_row + num_plain - 1;
    to.pooled_rows.push_back({last_row + 1 - planned.num_pooled, planned.num_pooled, num_pooled * hidden_width()});
    num_pooled += planned.num_pooled;
    std::uint32_t row = last_row + (planned.samples ? 0 : 1) - static_cast<std::uint32_t>(planned.given.size());
    for (const TokenId given : planned.given) {
      const std::uint32_t position = planned.first_position + (row - planned.first_row) + 1;
      to.logits_rows.push_back({row++, position, planned.sampling, {}, given});
      to.answers.push_back({{}, planned.seq});
    }
    if (!planned.samples) continue;
    to.logits_rows.push_back({last_row, planned.first_position + num_plain, planned.sampling, planned.edits});
    to.answers.push_back({{}, planned.seq});
    if (planned.num_nodes > 0) translate_draft(planned, to);
  }
  to.choices.assign(to.logits_rows.size(), {});
  to.accumulated_scores.resize(num_accumulated_scores);
  to.pooled.resize(num_pooled * hidden_width());
}

// A plan has the tables of a sequence one behind the other, a batch those of a group.
void DecoderRunner::translate_tables(const flow::StepPlan& plan, Flight& to) const {
  to.block_tables.clear();
  for (std::uint32_t group = 0; group < limits_.groups.size(); ++group) {
    for (const flow::PlannedSequence& planned : plan.sequences) {
      const auto begin = plan.block_tables.begin() + planned.first_table + group * planned.num_table;
      to.block_tables.insert(to.block_tables.end(), begin, begin + planned.num_table);
    }
  }
}

// Adds the draft nodes after their logits row. A chain needs no ancestors: its positions ascend by one.
void DecoderRunner::translate_draft(const flow::PlannedSequence& planned, Flight& to) {
  const sample::TokenTree& draft = *planned.draft;
  const std::uint32_t num_plain = planned.num_rows - planned.num_nodes;
  to.logits_rows.back().num_nodes = planned.num_nodes;
  to.logits_rows.back().draft = &draft;
  bool is_chain = true;
  for (std::uint32_t i = 0; i < planned.num_nodes; ++i) {
    const std::uint32_t position = planned.first_position + num_plain + draft.depth(i);
    const sample::Edits edits = planned.node_edits.empty() ? sample::Edits{} : planned.node_edits[i];
    to.logits_rows.push_back({planned.first_row + num_plain + i, position, planned.sampling, edits});
    to.answers.push_back({{}, planned.seq});
    is_chain = is_chain && draft.parent(i) == static_cast<int>(i) - 1;
  }
  if (is_chain) return;
  to.sequences.back().first_node = static_cast<std::uint32_t>(to.ancestors.size());
  to.sequences.back().num_nodes = planned.num_nodes;
  for (std::uint32_t i = 0; i < planned.num_nodes; ++i) to.ancestors.push_back(draft.ancestors(i));
}

}  // namespace quire::model
