#include "core/speculate/heads/head_rows.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::speculate {

HeadRows::HeadRows(backend::Ops& ops, DraftHead& head, const RunnerLimits& limits)
    : ops_(ops),
      head_(head),
      limits_(limits),
      looks_ahead_(head.looks_ahead()),
      stored_(limits.num_blocks, limits.block_tokens, limits.num_swap_blocks, looks_ahead_ ? head.config().hidden : 0),
      host_blocks_(limits.num_swap_blocks * head.cache().block_bytes()) {
  sequences_.reserve(limits.max_sequences);
}

void HeadRows::observe(const ObservedStep& step) {
  ++step_;
  observed_.clear();
  missing_.clear();
  stored_.begin_batch();
  for (const Observed& observed : step.sequences) {
    if (!observed.rows.empty()) observed_.push_back(&observed);
  }
  if (observed_.empty()) return;
  CHECK(step.states != nullptr);
  std::ranges::sort(observed_, {}, [](const Observed* observed) { return observed->rows.front(); });
  for (std::size_t i = 0; i < observed_.size(); ++i) {
    Sequence& sequence = sequences_[observed_[i]->seq];
    look_at(*observed_[i], sequence);
    find_missing(*observed_[i], sequence, i);
    if (sequence.behind) continue;
    sequence.looked_at = observed_[i]->first_position + static_cast<std::uint32_t>(observed_[i]->rows.size());
  }
  store_missing();
  store_observed(*step.states);
  if (looks_ahead_) keep_features();
}

// Extends the hash chain by the new tokens and finds the part of the block table that is unchanged.
void HeadRows::look_at(const Observed& observed, Sequence& sequence) {
  std::vector<std::uint64_t>& chain = sequence.chain;
  CHECK_LE(chain.size(), observed.tokens.size() + 1);
  for (std::size_t i = chain.size() - 1; i < observed.tokens.size(); ++i) {
    chain.push_back(chained(chain.back(), observed.tokens[i]));
  }
  const auto [was, is] = std::ranges::mismatch(sequence.table, observed.table);
  const auto same = static_cast<std::uint32_t>(was - sequence.table.begin());
  sequence.looked_at = std::min({sequence.looked_at, same * limits_.block_tokens, observed.first_position});
  sequence.table.assign(observed.table.begin(), observed.table.end());
}

// Collects missing rows, at most kMostMissing so that no stream waits long; the rest follows with the next step.
void HeadRows::find_missing(const Observed& observed, Sequence& sequence, std::size_t index) {
  static constexpr std::size_t kMostMissing = 2048;
  sequence.behind = false;
  bool after_true_row = sequence.looked_at > 0;
  for (std::uint32_t position = sequence.looked_at; position < observed.first_position; ++position) {
    const BlockId block = observed.table[position / limits_.block_tokens];
    if (block == kNoBlock) continue;
    const std::uint32_t slot = slot_of(observed.table, position);
    const std::uint64_t hash = hash_of(sequence, position);
    if (stored_.at(slot) == hash) {
      after_true_row = true;
      continue;
    }
    const bool is_last = looks_ahead_ && position % limits_.block_tokens == limits_.block_tokens - 1;
    const std::span<const float> feature =
        is_last ? stored_.kept(block, sequence.chain[position + 1]) : std::span<const float>();
    const bool leave = looks_ahead_ && feature.empty() && after_true_row && stored_.at(slot) != 0;
    after_true_row = false;
    if (leave || !stored_.is_first(slot)) continue;
    if (missing_.size() >= kMostMissing) {
      sequence.behind = true;
      sequence.looked_at = position;
      return;
    }
    missing_.push_back({observed.tokens[position + 1], position, slot, index, feature});
    stored_.store(slot, hash);
  }
}

void HeadRows::store_missing() {
  const std::uint32_t hidden = head_.config().hidden;
  for (std::size_t done = 0; done < missing_.size();) {
    const std::size_t num = std::min<std::size_t>(missing_.size() - done, limits_.max_rows);
    rows_.clear();
    missing_features_.assign(num * hidden, 0.0f);
    bool any_known = false;
    for (std::size_t i = 0; i < num; ++i) {
      const Missing& row = missing_[done + i];
      const Missing* before = i == 0 ? nullptr : &missing_[done + i - 1];
      if (before == nullptr || before->observed != row.observed || before->position + 1 != row.position) {
        rows_.begin_sequence(observed_[row.observed]->table);
      }
      rows_.add_row(row.token, row.position, row.slot);
      std::ranges::copy(row.feature, missing_features_.begin() + static_cast<std::ptrdiff_t>(i * hidden));
      any_known = any_known || !row.feature.empty();
    }
    if (any_known) {
      head_.begin_with_host(missing_features_);
    } else {
      head_.begin_with_zeros(static_cast<std::uint32_t>(num));
    }
    head_.store(rows_.batch());
    done += num;
  }
}

void HeadRows::store_observed(const backend::Buffer& states) {
  picks_.clear();
  rows_.clear();
  stored_features_.clear();
  stored_.begin_batch();
  for (const Observed* observed : observed_) {
    Sequence& sequence = sequences_[observed->seq];
    bool goes_on = false;
    for (std::uint32_t i = 0; i < observed->rows.size(); ++i) {
      const std::uint32_t position = observed->first_position + i;
      const std::uint32_t slot = slot_of(observed->table, position);
      const auto feature = static_cast<std::uint32_t>(picks_.size());
      picks_.push_back(observed->rows[i]);
      sequence.last.position = position;
      sequence.last.feature = feature;
      const bool stores = stored_.is_first(slot);
      if (stores && !goes_on) rows_.begin_sequence(observed->table);
      goes_on = stores;
      if (!stores) continue;
      rows_.add_row(observed->tokens[position + 1], position, slot);
      stored_.store(slot, hash_of(sequence, position));
      stored_features_.push_back(feature);
    }
    sequence.last.step = sequence.behind ? 0 : step_;  // no draft after rows that are missing
  }
  head_.take_states(states, picks_);
  head_.begin_with_features(stored_features_);
  head_.store(rows_.batch());
}

void HeadRows::keep_features() {
  std::uint32_t row = 0;
  for (const Observed* observed : observed_) {
    const Sequence& sequence = sequences_[observed->seq];
    for (std::uint32_t i = 0; i < observed->rows.size(); ++i, ++row) {
      const std::uint32_t position = observed->first_position + i;
      if (position % limits_.block_tokens != limits_.block_tokens - 1) continue;
      const BlockId block = observed->table[position / limits_.block_tokens];
      head_.read_features(row, 1, stored_.keep(block, sequence.chain[position + 1]));
    }
  }
}

const HeadRows::Last* HeadRows::last_of(const Asked& asked) const {
  const auto found = sequences_.find(asked.seq);
  if (found == sequences_.end()) return nullptr;
  const Last& last = found->second.last;
  if (last.step != step_ || last.position + 2 != asked.tokens.size()) return nullptr;
  const std::uint32_t window = head_.attention().window;
  const std::uint32_t first_seen = window == 0 ? 0 : last.position - std::min(last.position, window - 1);
  const auto seen = asked.table.subspan(first_seen / limits_.block_tokens);
  return std::ranges::find(seen, kNoBlock) == seen.end() ? &last : nullptr;
}

void HeadRows::track(std::span<const flow::BlockOp> block_ops) {
  using enum flow::BlockOp::Kind;
  const std::size_t bytes = head_.cache().block_bytes();
  const auto host_block = [&](std::uint32_t index) { return std::span(host_blocks_).subspan(index * bytes, bytes); };
  for (const flow::BlockOp& op : block_ops) {
    stored_.track(op);
    const backend::BlockCopy copy{BlockId(op.from), BlockId(op.to)};
    if (op.kind == kCopy) ops_.copy_blocks(head_.cache(), {&copy, 1});
    if (op.kind == kPoison) ops_.poison_block(head_.cache(), copy.to);
    if (op.kind == kSwapOut) ops_.read_block(head_.cache(), copy.from, host_block(op.to));
    if (op.kind == kSwapIn) ops_.write_block(head_.cache(), copy.to, host_block(op.from));
  }
}

std::uint32_t HeadRows::slot_of(std::span<const BlockId> table, std::uint32_t position) const {
  return table[position / limits_.block_tokens].value * limits_.block_tokens + position % limits_.block_tokens;
}

std::uint64_t HeadRows::hash_of(const Sequence& sequence, std::uint32_t position) const {
  return sequence.chain[position + (looks_ahead_ ? 2 : 1)];
}

}  // namespace quire::speculate
