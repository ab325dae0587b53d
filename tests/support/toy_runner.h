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
#include "core/model/runner.h"
#include "tests/support/toy_model.h"

namespace quire::testing {

class ToyRunner final : public model::Runner {
 public:
  // What a slot holds, as bytes without gaps: this is what copies, swaps and files move.
  struct Slot {
    TokenId token = -1;
    std::uint32_t position = kNothing;
    std::uint64_t seen = 0;
    std::uint64_t finite = 1;  // 0: the row saw poisoned_token
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
    std::size_t num_speaking = 0;
    for (const flow::PlannedSequence& entry : plan.sequences) {
      const std::size_t speaking = entry.given.size() + (entry.speaks ? 1 + entry.num_nodes : 0);
      num_speaking += speaking;
      num_tops += speaking * std::min(entry.sampling.num_top, model_.vocab);
    }
    CHECK_LE(num_speaking, max_logit_rows);
    tops_.reserve(num_tops + model_.vocab);  // spans into it are given out
    std::uint32_t next_row = 0;
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
      CHECK_EQ(plan.sequences[i].first_row, next_row);
      CHECK_LE(plan.sequences[i].num_pooled, plan.sequences[i].num_rows);
      if (plan.sequences[i].num_pooled > 0) CHECK(!plan.sequences[i].speaks && plan.sequences[i].given.empty());
      run(plan, plan.sequences[i], accumulated_scores_[i], pooled_[i]);
      next_row += plan.sequences[i].num_rows;
    }
    CHECK_EQ(plan.tokens.size(), next_row);
    CHECK_EQ(plan.positions.size(), next_row);
    CHECK_EQ(plan.slots.size(), next_row);
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

  void copy_row(std::uint32_t from, std::uint32_t to) override {
    CHECK(idle());
    slots_.at(to) = slots_.at(from);
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
  void keep_open_groups(std::uint32_t places) { open_.resize(places); }
  std::span<const Slot> open_group(std::uint32_t place) const { return open_.at(place).slots; }

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
  std::size_t max_logit_rows = ~std::size_t{0};  // in a step. EngineRig sets it.
  std::uint64_t poisoned_seed = ~0ull;           // a request with this seed gets logits that are not finite
  TokenId poisoned_token = -1;                   // so does whoever sees this token
  bool fail_next_collect = false;
  FakeClock* clock = nullptr;  // moved on by row_time for every row of a step
  Duration row_time{};
  Duration block_time{};  // for reading or writing one
  // How many tables hold a block: a block that is written must have one holder. EngineRig sets it.
  std::function<std::uint32_t(BlockId)> holders;
  // So many tokens of a block, from its beginning, are promised to others and must not change. EngineRig sets it.
  std::function<std::uint32_t(BlockId)> promised;

 private:
  struct Written {
    std::uint64_t step = 0;
    SeqId seq;
  };
  struct OpenGroup {
    std::array<Slot, kToyGroup> slots;
    std::uint64_t step = 0;  // that used it last
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
      case flow::BlockOp::Kind::kCopyOpenGroup:
        open_.at(op.to) = open_.at(op.from);
        break;
    }
  }

  void overwrite(BlockId to, std::span<const Slot> with) {
    if (holders) CHECK_EQ(holders(to), 1u);
    if (promised) CHECK_EQ(promised(to), 0u);
    std::ranges::copy(with, content(to).begin());
  }

  void run(const flow::StepPlan& plan, const flow::PlannedSequence& entry,
           std::vector<std::uint64_t>& accumulated_scores, std::vector<float>& pooled) {
    CHECK_GE(entry.num_rows, 1 + entry.num_nodes);
    const std::uint32_t num_plain = entry.num_rows - entry.num_nodes;
    const std::uint32_t length = entry.first_position + num_plain;
    CHECK_LE(entry.first_position + entry.num_rows, entry.num_table * block_tokens_);
    const auto table = std::span(plan.block_tables).subspan(entry.first_table, entry.num_table);
    const auto kept = std::span(plan.kept_groups).subspan(entry.first_kept, entry.num_kept);
    if (!kept.empty()) {  // one word a span before that of the rows
      CHECK_EQ(entry.first_position / kToySpan, kept.size());
      CHECK_EQ((length - 1) / kToySpan, kept.size());
    }
    const auto is_kept = [&](std::uint32_t q) {
      return q / kToySpan >= kept.size() || (kept[q / kToySpan] >> (q % kToySpan / kToyGroup) & 1) != 0;
    };
    OpenGroup* const open = open_.empty() ? nullptr : &open_.at(entry.open_group);
    if (open != nullptr) CHECK_NE(std::exchange(open->step, steps), steps);  // nobody else's
    std::uint64_t sum = 0;
    bool finite = true;
    const std::uint32_t first = entry.first_position;
    const auto slot_at = [&](std::uint32_t q) -> const Slot& {
      if (open == nullptr || q / kToyGroup != first / kToyGroup) return read(table, q, entry.seq);
      CHECK_EQ(open->slots[q % kToyGroup].position, q);
      return open->slots[q % kToyGroup];
    };
    for (std::uint32_t q = model_.window != 0 && first >= model_.window ? first - model_.window + 1 : 0; q < first;
         ++q) {
      if (!is_kept(q)) continue;
      const Slot& slot = slot_at(q);
      sum += toy_stored(slot.token, q, slot.seen);
      finite = finite && slot.finite != 0;
    }
    if (entry.wants_accumulated_scores) accumulated_scores.assign((length + kToyGroup - 1) / kToyGroup, 0);
    for (std::uint32_t row = entry.first_row; row < entry.first_row + num_plain; ++row) {
      const std::uint32_t position = first + (row - entry.first_row);
      CHECK_EQ(plan.positions.at(row), position);
      if (model_.window != 0 && position > first && position >= model_.window && is_kept(position - model_.window)) {
        const Slot& passed = open != nullptr && position % kToyGroup >= model_.window
                                 ? open->slots[(position - model_.window) % kToyGroup]
                                 : read(table, position - model_.window, entry.seq);
        sum -= toy_stored(passed.token, position - model_.window, passed.seen);
      }
      const TokenId token = plan.tokens.at(row);
      finite = finite && token != poisoned_token;
      store(plan.slots.at(row), position, table, {token, position, sum, finite ? 1u : 0u}, entry.seq, open);
      sum += toy_stored(token, position, sum);
      const std::uint32_t first_given =
          entry.first_row + num_plain - (entry.speaks ? 1 : 0) - static_cast<std::uint32_t>(entry.given.size());
      if (row >= first_given && row - first_given < entry.given.size()) {
        score(entry, entry.given[row - first_given], sum, finite);
      }
      const bool pools = entry.first_row + num_plain - row <= entry.num_pooled;
      for (std::uint32_t i = 0; i < kToyHidden && pools; ++i) {
        const bool good = finite && entry.sampling.seed != poisoned_seed;
        pooled.push_back(good ? toy_hidden(sum, i) : std::numeric_limits<float>::quiet_NaN());
      }
      if (!entry.wants_accumulated_scores) continue;
      for (std::uint32_t group = 0; group <= position / kToyGroup; ++group) {
        if (is_kept(group * kToyGroup)) accumulated_scores[group] += toy_vote(sum, position, group);
      }
    }
    const bool speaks_sense = entry.sampling.seed != poisoned_seed;
    if (entry.speaks) say(entry, sum, finite && speaks_sense, length, entry.edits);
    if (entry.num_nodes > 0) run_draft(plan, entry, sum, finite, open);
  }

  // Guesses, each behind its own path; what is said there only where the walk comes, or a lookahead node stands.
  void run_draft(const flow::StepPlan& plan, const flow::PlannedSequence& entry, std::uint64_t root_sum,
                 bool root_finite, OpenGroup* open) {
    const sample::TokenTree& draft = *entry.draft;
    CHECK_LE(entry.num_nodes, draft.size());
    const auto table = std::span(plan.block_tables).subspan(entry.first_table, entry.num_table);
    const std::uint32_t end = entry.first_position + entry.num_rows - entry.num_nodes;
    struct Node {
      std::uint64_t sum = 0;
      std::uint64_t stored = 0;
      bool finite = true;
    };
    std::vector<Node> nodes(entry.num_nodes);
    const auto stored_at = [&](std::uint32_t node, std::uint32_t position) {  // of a position that the node sees
      if (position < end) {
        const bool is_open =
            open != nullptr && position / kToyGroup == end / kToyGroup;  // of a group that is not whole
        const Slot& slot = is_open ? open->slots[position % kToyGroup] : read(table, position, entry.seq);
        return toy_stored(slot.token, position, slot.seen);
      }
      int at = static_cast<int>(node);
      while (end - 1 + draft.depth(static_cast<std::uint32_t>(at)) != position) {
        at = draft.parent(static_cast<std::uint32_t>(at));
      }
      return nodes[static_cast<std::size_t>(at)].stored;
    };
    int said_at = sample::TokenTree::kRoot;  // where the walk stands
    for (std::uint32_t i = 0; i < entry.num_nodes; ++i) {
      const std::uint32_t row = entry.first_row + entry.num_rows - entry.num_nodes + i;
      const std::uint32_t position = end - 1 + draft.depth(i);
      const TokenId token = plan.tokens.at(row);
      CHECK_EQ(token, draft.token(i));
      CHECK_EQ(plan.positions.at(row), position);
      const int parent = draft.parent(i);
      std::uint64_t seen = parent < 0 ? root_sum : nodes[static_cast<std::size_t>(parent)].sum;
      nodes[i].finite =
          (parent < 0 ? root_finite : nodes[static_cast<std::size_t>(parent)].finite) && token != poisoned_token;
      if (model_.window != 0 && position >= model_.window) {
        seen -= stored_at(static_cast<std::uint32_t>(std::max(parent, 0)), position - model_.window);
      }
      nodes[i].stored = toy_stored(token, position, seen);
      nodes[i].sum = seen + nodes[i].stored;
      store(plan.slots.at(row), end + i, table, {token, position, seen, nodes[i].finite ? 1u : 0u}, entry.seq, open);
      // choices_ ends with the row's own and those of the nodes before this one.
      const std::size_t of_parent = choices_.size() - i - 1 + static_cast<std::size_t>(parent + 1);
      const bool visits = parent == said_at && choices_[of_parent].token == token;
      if (!visits) {
        choices_.push_back({entry.seq, -1, true});
        if (draft.is_lookahead_node(i) && nodes[i].finite && entry.sampling.seed != poisoned_seed) {
          choices_.back().token = toy_choose(nodes[i].sum, {.temperature = 0}, position + 1, model_);
        }
        continue;
      }
      said_at = static_cast<int>(i);
      const sample::Edits edits = entry.node_edits.empty() ? sample::Edits{} : entry.node_edits[i];
      say(entry, nodes[i].sum, nodes[i].finite && entry.sampling.seed != poisoned_seed, position + 1, edits);
    }
  }

  const Slot& read(std::span<const BlockId> table, std::uint32_t position, SeqId reader) {
    const BlockId block = table[position / block_tokens_];
    CHECK_LT(block.value, num_blocks_);  // kDroppedBlock: it was given back and is still looked at
    const std::size_t at = std::size_t{block.value} * block_tokens_ + position % block_tokens_;
    CHECK_EQ(slots_[at].position, position);
    // What another sequence stores in this very step is not committed yet.
    CHECK(written_[at].step != steps || written_[at].seq == reader);
    return slots_[at];
  }

  // `index`: where in its sequence the slot is to lie; the row's position, but for a draft's.
  void store(std::uint32_t at, std::uint32_t index, std::span<const BlockId> table, const Slot& slot, SeqId writer,
             OpenGroup* open) {
    const BlockId block = table[index / block_tokens_];
    const std::uint32_t offset = index % block_tokens_;
    CHECK_EQ(std::size_t{at}, std::size_t{block.value} * block_tokens_ + offset);
    CHECK_NE(written_.at(at).step, steps);  // no slot twice in one step
    if (holders) CHECK_EQ(holders(block), 1u);
    if (promised) CHECK_GE(offset, promised(block));
    written_[at] = {steps, writer};
    if (open == nullptr) {
      slots_[at] = slot;
      return;
    }
    CHECK_EQ(index, slot.position);
    const std::uint32_t lane = slot.position % kToyGroup;
    open->slots[lane] = slot;
    if (lane + 1 < kToyGroup) return;
    CHECK_GE(offset, lane);  // blocks are whole groups
    std::ranges::copy(open->slots, slots_.begin() + (at - lane));
  }

  void say(const flow::PlannedSequence& entry, std::uint64_t hash, bool finite, std::uint32_t position,
           const sample::Edits& edits) {
    flow::StepChoice choice{entry.seq, -1, finite};
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
    flow::StepChoice choice{entry.seq, given, finite};
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
  std::vector<OpenGroup> open_;
  std::vector<flow::StepChoice> choices_;
  std::vector<sample::Candidate> tops_;
  sample::Scratch scratch_{model_.vocab};
  std::vector<std::vector<std::uint64_t>> accumulated_scores_;  // by planned sequence
  std::vector<std::vector<float>> pooled_;                      // likewise
  bool in_flight_ = false;
};

}  // namespace quire::testing
