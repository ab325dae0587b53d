// ToyModel on paged memory, strict enough to catch any paging mistake: every slot remembers which token was stored
// there at which position and what its row had seen. A wrong slot, a stale block, a lost token, a copy too late or a
// row too few either dies in a CHECK or changes the answer; toy_answer() computes that from tokens alone.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/model/run/runner.h"
#include "tests/support/toy_model.h"

namespace quire::testing {

class ToyRunner final : public model::Runner {
 public:
  // What a slot holds, as bytes without gaps: this is what copies, swaps and files move.
  struct Slot {
    TokenId token = -1;
    std::uint32_t position = kNothing;
    std::uint64_t seen = 0;
    std::uint32_t finite = 1;  // 0: the row saw poisoned_token
    std::uint32_t group = 0;   // of layers, whose K and V these are
    bool operator==(const Slot&) const = default;
  };
  static constexpr std::uint32_t kNothing = ~0u;  // as a position: nothing valid is stored here

  ToyRunner(std::uint32_t num_blocks, std::uint32_t block_tokens, const ToyModel& model = {})
      : model_(model),
        block_tokens_(block_tokens),
        num_blocks_(num_blocks),
        slots_(std::size_t{num_blocks} * block_tokens),
        written_(slots_.size()) {}

  void submit(const flow::StepPlan& plan) override {
    CHECK(idle());
    in_flight_ = true;
    choices_.clear();
    tops_.clear();
    accumulated_scores_.clear();
    pooled_.assign(plan.sequences.size(), {});
    ++steps;
    rows_in_step.push_back(static_cast<std::uint32_t>(plan.tokens.size()));
    for (const flow::BlockOp& op : plan.block_ops) run(op);
    accumulated_scores_.resize(plan.sequences.size());
    std::size_t num_tops = 0;
    std::size_t num_logits_rows = 0;
    for (const flow::PlannedSequence& entry : plan.sequences) {
      const std::size_t sampling_rows = entry.given.size() + (entry.samples ? 1 + entry.num_nodes : 0);
      num_logits_rows += sampling_rows;
      num_tops += sampling_rows * std::min(entry.sampling.num_top, model_.vocab);
    }
    CHECK_LE(num_logits_rows, max_logits_rows);
    tops_.reserve(num_tops + model_.vocab);  // spans into it are given out
    std::uint32_t next_row = 0;
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
      CHECK_EQ(plan.sequences[i].first_row, next_row);
      CHECK_LE(plan.sequences[i].num_pooled, plan.sequences[i].num_rows);
      if (plan.sequences[i].num_pooled > 0) CHECK(!plan.sequences[i].samples && plan.sequences[i].given.empty());
      run(plan, plan.sequences[i], accumulated_scores_[i], pooled_[i]);
      next_row += plan.sequences[i].num_rows;
    }
    CHECK_EQ(plan.tokens.size(), next_row);
    CHECK_EQ(plan.positions.size(), next_row);
    CHECK_EQ(plan.slots.size(), std::size_t{next_row} * model_.groups.size());
  }
  std::span<const flow::StepChoice> collect() override {
    CHECK(in_flight_);
    in_flight_ = false;
    if (clock != nullptr) clock->advance(row_time * rows_in_step.back());
    if (fail_next_collect) throw std::runtime_error("the device is gone");
    return choices_;
  }
  std::span<const std::uint64_t> accumulated_scores(std::size_t planned) const override {
    return accumulated_scores_.at(planned);
  }
  std::span<const float> pooled(std::size_t planned) const override { return pooled_.at(planned); }
  std::uint32_t hidden_width() const override { return kToyHidden; }
  bool idle() const override { return !in_flight_; }
  bool full() const override { return in_flight_; }

  void copy_rows(std::span<const backend::RowCopy> rows) override {
    CHECK(idle());
    for (const backend::RowCopy& copy : rows) {
      CHECK_EQ(slots_.at(copy.from).group, copy.group);
      slots_.at(copy.to) = slots_.at(copy.from);
    }
  }

  std::size_t block_bytes() const override { return block_tokens_ * sizeof(Slot); }
  void read_block(BlockId block, std::span<std::byte> out) override {
    CHECK(idle());
    CHECK_EQ(out.size(), block_bytes());
    if (clock != nullptr) clock->advance(block_time);
    std::memcpy(out.data(), content(block).data(), out.size());
  }
  void write_block(BlockId block, std::span<const std::byte> bytes) override {
    CHECK(idle());
    CHECK_EQ(bytes.size(), block_bytes());
    if (clock != nullptr) clock->advance(block_time);
    std::memcpy(content(block).data(), bytes.data(), bytes.size());
  }

  // As int4 does it: a sequence's newest, unfinished group of 16 positions is in a place of its own, and in its block
  // only once it is whole.
  void keep_residual_groups(std::uint32_t places) {
    open_.resize(places);
    for (ResidualGroup& open : open_) open.slots.resize(model_.groups.size());
  }
  std::span<const Slot> residual_group(std::uint32_t place, std::size_t group = 0) const {
    return open_.at(place).slots[group];
  }

  std::span<Slot> content(BlockId block) {
    CHECK_LT(block.value, num_blocks_);
    return std::span(slots_).subspan(std::size_t{block.value} * block_tokens_, block_tokens_);
  }
  const ToyModel& model() const { return model_; }

  std::uint64_t steps = 0;
  std::vector<std::uint32_t> rows_in_step;
  std::uint64_t copies = 0;
  std::uint64_t poisons = 0;
  std::uint64_t swaps_out = 0;
  std::uint64_t swaps_in = 0;
  std::size_t max_logits_rows = ~std::size_t{0};  // in a step. EngineRig sets it.
  std::uint64_t poisoned_seed = ~0ull;            // a request with this seed gets logits that are not finite
  TokenId poisoned_token = -1;                    // so does whoever sees this token
  bool fail_next_collect = false;
  FakeClock* clock = nullptr;  // moved on by row_time for every row of a step
  Duration row_time{};
  Duration block_time{};  // for reading or writing one
  // How many tables hold a block: a block that is written must have one holder. EngineRig sets it.
  std::function<std::uint32_t(BlockId)> holders;
  // So many tokens of a block, from its beginning, are promised to others and must not change. EngineRig sets it.
  std::function<std::uint32_t(BlockId)> num_relied_tokens;

 private:
  struct Written {
    std::uint64_t step = 0;
    SeqId seq;
  };
  struct ResidualGroup {
    std::vector<std::array<Slot, kToyGroup>> slots;  // by group of layers
    std::uint64_t step = 0;                          // that used it last
  };

  void run(const flow::BlockOp& op) {
    switch (op.kind) {
      case flow::BlockOp::Kind::kCopy:
        ++copies;
        CHECK_NE(op.from, op.to);
        overwrite(BlockId(op.to), content(BlockId(op.from)));
        break;
      case flow::BlockOp::Kind::kPoison:
        ++poisons;
        if (holders) CHECK_LE(holders(BlockId(op.to)), 1u);
        std::ranges::fill(content(BlockId(op.to)), Slot{});
        break;
      case flow::BlockOp::Kind::kSwapOut:
        ++swaps_out;
        if (host_.size() <= op.to) host_.resize(op.to + 1);
        host_[op.to].assign(content(BlockId(op.from)).begin(), content(BlockId(op.from)).end());
        break;
      case flow::BlockOp::Kind::kSwapIn:
        ++swaps_in;
        CHECK_EQ(host_.at(op.from).size(), std::size_t{block_tokens_});  // nobody ever swapped out to it
        overwrite(BlockId(op.to), host_[op.from]);
        break;
      case flow::BlockOp::Kind::kCopyResidualGroup:
        open_.at(op.to) = open_.at(op.from);
        break;
    }
  }

  void overwrite(BlockId to, std::span<const Slot> with) {
    if (holders) CHECK_EQ(holders(to), 1u);
    if (num_relied_tokens) CHECK_EQ(num_relied_tokens(to), 0u);
    std::ranges::copy(with, content(to).begin());
  }

  // A sequence's rows as they run: what the next one sees, of each group.
  struct Sight {
    std::vector<std::uint64_t> sums;
    std::vector<std::uint32_t> lowest;  // the first position in the sum
    bool finite = true;
  };

  void run(const flow::StepPlan& plan, const flow::PlannedSequence& entry,
           std::vector<std::uint64_t>& accumulated_scores, std::vector<float>& pooled) {
    CHECK_GE(entry.num_rows, 1 + entry.num_nodes);
    const std::uint32_t num_plain = entry.num_rows - entry.num_nodes;
    const std::uint32_t first = entry.first_position;
    const std::uint32_t length = first + num_plain;
    CHECK_LE(first + entry.num_rows, entry.num_table * block_tokens_);
    const auto kept = std::span(plan.kept_groups).subspan(entry.first_kept, entry.num_kept);
    if (!kept.empty()) {  // one word a span before that of the rows
      CHECK_EQ(first / kToySpan, kept.size());
      CHECK_EQ((length - 1) / kToySpan, kept.size());
    }
    const auto is_kept = [&](std::uint32_t q) {
      return q / kToySpan >= kept.size() || (kept[q / kToySpan] >> (q % kToySpan / kToyGroup) & 1) != 0;
    };
    ResidualGroup* const open = open_.empty() ? nullptr : &open_.at(entry.residual_group);
    if (open != nullptr) CHECK_NE(std::exchange(open->step, steps), steps);  // nobody else's
    Sight sight{std::vector<std::uint64_t>(model_.groups.size()), std::vector<std::uint32_t>(model_.groups.size())};
    for (std::uint32_t group = 0; group < model_.groups.size(); ++group) {
      sight.lowest[group] = model_.groups[group].first_needed(first);
      for (std::uint32_t q = sight.lowest[group]; q < first; ++q) {
        if (!is_kept(q)) continue;
        const Slot& slot = at(plan, entry, group, q, first, open);
        sight.sums[group] += toy_stored(slot.token, q, slot.seen);
        sight.finite = sight.finite && slot.finite != 0;
      }
    }
    if (entry.wants_accumulated_scores) accumulated_scores.assign((length + kToyGroup - 1) / kToyGroup, 0);
    for (std::uint32_t row = entry.first_row; row < entry.first_row + num_plain; ++row) {
      const std::uint32_t position = first + (row - entry.first_row);
      CHECK_EQ(plan.positions.at(row), position);
      for (std::uint32_t group = 0; group < model_.groups.size(); ++group) {
        for (; sight.lowest[group] < model_.groups[group].first_needed(position); ++sight.lowest[group]) {
          const std::uint32_t q = sight.lowest[group];
          if (!is_kept(q)) continue;
          const Slot& skipped = at(plan, entry, group, q, position, open);
          sight.sums[group] -= toy_stored(skipped.token, q, skipped.seen);
        }
      }
      const TokenId token = plan.tokens.at(row);
      sight.finite = sight.finite && token != poisoned_token;
      const std::uint64_t seen = toy_seen(sight.sums);
      store(plan, entry, row, position, {token, position, seen, sight.finite ? 1u : 0u}, open);
      for (std::uint64_t& sum : sight.sums) sum += toy_stored(token, position, seen);
      const std::uint64_t hash = toy_seen(sight.sums);
      const std::uint32_t first_given =
          entry.first_row + num_plain - (entry.samples ? 1 : 0) - static_cast<std::uint32_t>(entry.given.size());
      if (row >= first_given && row - first_given < entry.given.size()) {
        score(entry, entry.given[row - first_given], hash, sight.finite);
      }
      const bool pools = entry.first_row + num_plain - row <= entry.num_pooled;
      for (std::uint32_t i = 0; i < kToyHidden && pools; ++i) {
        const bool good = sight.finite && entry.sampling.seed != poisoned_seed;
        pooled.push_back(good ? toy_hidden(hash, i) : std::numeric_limits<float>::quiet_NaN());
      }
      if (!entry.wants_accumulated_scores) continue;
      for (std::uint32_t group = 0; group <= position / kToyGroup; ++group) {
        if (is_kept(group * kToyGroup)) accumulated_scores[group] += toy_vote(hash, position, group);
      }
    }
    const bool speaks_sense = entry.sampling.seed != poisoned_seed;
    if (entry.samples) say(entry, toy_seen(sight.sums), sight.finite && speaks_sense, length, entry.edits);
    if (entry.num_nodes > 0) run_draft(plan, entry, sight, open);
  }

  // Guesses, each behind its own path; what is said there only where the walk comes, or a lookahead node stands.
  void run_draft(const flow::StepPlan& plan, const flow::PlannedSequence& entry, const Sight& root,
                 ResidualGroup* open) {
    const sample::TokenTree& draft = *entry.draft;
    CHECK_LE(entry.num_nodes, draft.size());
    const std::uint32_t end = entry.first_position + entry.num_rows - entry.num_nodes;
    struct Node {
      Sight sight;
      std::uint64_t stored = 0;
    };
    std::vector<Node> nodes(entry.num_nodes);
    const auto stored_at = [&](std::uint32_t group, std::uint32_t node, std::uint32_t position) {  // that the node sees
      if (position < end) {
        const Slot& slot = at(plan, entry, group, position, end, open);
        return toy_stored(slot.token, position, slot.seen);
      }
      int above = static_cast<int>(node);
      while (end - 1 + draft.depth(static_cast<std::uint32_t>(above)) != position) {
        above = draft.parent(static_cast<std::uint32_t>(above));
      }
      return nodes[static_cast<std::size_t>(above)].stored;
    };
    int said_at = sample::TokenTree::kRoot;  // where the walk stands
    for (std::uint32_t i = 0; i < entry.num_nodes; ++i) {
      const std::uint32_t row = entry.first_row + entry.num_rows - entry.num_nodes + i;
      const std::uint32_t position = end - 1 + draft.depth(i);
      const TokenId token = plan.tokens.at(row);
      CHECK_EQ(token, draft.token(i));
      CHECK_EQ(plan.positions.at(row), position);
      const int parent = draft.parent(i);
      Sight& sight = nodes[i].sight;
      sight = parent < 0 ? root : nodes[static_cast<std::size_t>(parent)].sight;
      sight.finite = sight.finite && token != poisoned_token;
      for (std::uint32_t group = 0; group < model_.groups.size(); ++group) {
        for (; sight.lowest[group] < model_.groups[group].first_needed(position); ++sight.lowest[group]) {
          sight.sums[group] -= stored_at(group, static_cast<std::uint32_t>(std::max(parent, 0)), sight.lowest[group]);
        }
      }
      const std::uint64_t seen = toy_seen(sight.sums);
      nodes[i].stored = toy_stored(token, position, seen);
      for (std::uint64_t& sum : sight.sums) sum += nodes[i].stored;
      store(plan, entry, row, end + i, {token, position, seen, sight.finite ? 1u : 0u}, open);
      // choices_ ends with the row's own and those of the nodes before this one.
      const std::size_t of_parent = choices_.size() - i - 1 + static_cast<std::size_t>(parent + 1);
      const bool visits = parent == said_at && choices_[of_parent].token == token;
      const std::uint64_t hash = toy_seen(sight.sums);
      if (!visits) {
        choices_.push_back({{}, entry.seq});
        if (draft.is_lookahead_node(i) && sight.finite && entry.sampling.seed != poisoned_seed) {
          choices_.back().token = toy_choose(hash, {.temperature = 0}, position + 1, model_);
        }
        continue;
      }
      said_at = static_cast<int>(i);
      const sample::Edits edits = entry.node_edits.empty() ? sample::Edits{} : entry.node_edits[i];
      say(entry, hash, sight.finite && entry.sampling.seed != poisoned_seed, position + 1, edits);
    }
  }

  BlockId block_of(const flow::StepPlan& plan, const flow::PlannedSequence& entry, std::uint32_t group,
                   std::uint32_t index) const {
    CHECK_LT(index / block_tokens_, entry.num_table);
    return plan.block_tables.at(entry.first_table + group * entry.num_table + index / block_tokens_);
  }

  // The slot of position `q`, for the row at `position`.
  const Slot& at(const flow::StepPlan& plan, const flow::PlannedSequence& entry, std::uint32_t group, std::uint32_t q,
                 std::uint32_t position, const ResidualGroup* open) {
    if (open != nullptr && q / kToyGroup == position / kToyGroup) {
      const Slot& slot = open->slots[group][q % kToyGroup];
      CHECK_EQ(slot.position, q);
      return slot;
    }
    const BlockId block = block_of(plan, entry, group, q);
    CHECK_LT(block.value, num_blocks_);  // kNoBlock: it was given back and is still looked at
    const std::size_t place = std::size_t{block.value} * block_tokens_ + q % block_tokens_;
    CHECK_EQ(slots_[place].position, q);
    CHECK_EQ(slots_[place].group, group);
    // What another sequence stores in this very step is not committed yet.
    CHECK(written_[place].step != steps || written_[place].seq == entry.seq);
    return slots_[place];
  }

  // `index`: where in its sequence the slot is to lie; the row's position, but for a draft's.
  void store(const flow::StepPlan& plan, const flow::PlannedSequence& entry, std::uint32_t row, std::uint32_t index,
             Slot slot, ResidualGroup* open) {
    for (std::uint32_t group = 0; group < model_.groups.size(); ++group) {
      const std::uint32_t place = plan.slots.at(group * plan.tokens.size() + row);
      const BlockId block = block_of(plan, entry, group, index);
      const std::uint32_t offset = index % block_tokens_;
      CHECK_EQ(std::size_t{place}, std::size_t{block.value} * block_tokens_ + offset);
      CHECK_NE(written_.at(place).step, steps);  // no slot twice in one step
      if (holders) CHECK_EQ(holders(block), 1u);
      if (num_relied_tokens) CHECK_GE(offset, num_relied_tokens(block));
      written_[place] = {steps, entry.seq};
      slot.group = group;
      if (open == nullptr) {
        slots_[place] = slot;
        continue;
      }
      CHECK_EQ(index, slot.position);
      const std::uint32_t lane = slot.position % kToyGroup;
      open->slots[group][lane] = slot;
      if (lane + 1 < kToyGroup) continue;
      CHECK_GE(offset, lane);  // blocks are whole groups
      std::ranges::copy(open->slots[group], slots_.begin() + (place - lane));
    }
  }

  void say(const flow::PlannedSequence& entry, std::uint64_t hash, bool finite, std::uint32_t position,
           const sample::Edits& edits) {
    flow::StepChoice choice{{.finite = finite}, entry.seq};
    if (finite) {
      choice.token = toy_choose(hash, entry.sampling, position, model_);
      if (!edits.empty()) {
        const std::vector<float> row = toy_row(hash, model_);
        choice.token = toy_choose_adjusted(row, sample::adjust(row, edits, scratch_), choice.token);
        choice.finite = choice.token >= 0;
      }
    }
    if (choice.finite) {
      if (entry.sampling.logprob) choice.logprob = toy_logprob(hash, choice.token);
      choice.top = list(hash, entry.sampling.num_top);
    }
    choices_.push_back(choice);
  }

  void score(const flow::PlannedSequence& entry, TokenId given, std::uint64_t hash, bool finite) {
    flow::StepChoice choice{{.token = given, .finite = finite}, entry.seq};
    if (finite) {
      choice.logprob = toy_logprob(hash, given);
      choice.rank = toy_rank(hash, given, model_);
      choice.top = list(hash, entry.sampling.num_top);
    }
    choices_.push_back(choice);
  }

  std::span<const sample::Candidate> list(std::uint64_t hash, std::uint32_t num_top) {
    const std::size_t before = tops_.size();
    if (num_top > 0) toy_top(hash, num_top, model_, tops_);
    return std::span(tops_).subspan(before);
  }

  const ToyModel model_;
  const std::uint32_t block_tokens_;
  const std::uint32_t num_blocks_;
  std::vector<Slot> slots_;
  std::vector<Written> written_;  // by slot
  std::vector<std::vector<Slot>> host_;
  std::vector<ResidualGroup> open_;
  std::vector<flow::StepChoice> choices_;
  std::vector<sample::Candidate> tops_;
  sample::Scratch scratch_{model_.vocab};
  std::vector<std::vector<std::uint64_t>> accumulated_scores_;  // by planned sequence
  std::vector<std::vector<float>> pooled_;                      // likewise
  bool in_flight_ = false;
};

}  // namespace quire::testing
