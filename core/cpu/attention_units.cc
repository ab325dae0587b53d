#include "core/cpu/attention_units.h"

#include <algorithm>
#include <span>

namespace quire::cpu {

using backend::AttentionSpec;
using backend::Batch;
using backend::SequenceRows;

namespace {

constexpr std::uint32_t kAllSpans = std::numeric_limits<std::uint32_t>::max();

// First spans that every row of the sequence sees whole.
std::uint32_t num_whole_spans(const SequenceRows& sequence) {
  const bool is_plain = sequence.num_kept == 0 && sequence.num_accumulated_scores == 0;
  return is_plain ? sequence.first_position / kSpan : 0;
}

std::span<const BlockId> table_of(const Batch& batch, std::uint32_t sequence) {
  const SequenceRows& rows = batch.sequences[sequence];
  return batch.block_tables.subspan(rows.first_table, rows.num_table);
}

}  // namespace

std::uint32_t AttentionUnit::end_of_group(std::uint32_t first, std::uint32_t span) const {
  std::uint32_t end = first + 1;
  while (end < num_rows && rows[end].num_shared > span) ++end;
  return end;
}

AttentionUnits::AttentionUnits(std::uint32_t max_sequences) {
  order_.reserve(max_sequences);
  runs_.reserve(max_sequences);
}

void AttentionUnits::begin(const Batch& batch) {
  batch_ = batch;
  const auto num_sequences = static_cast<std::uint32_t>(batch.sequences.size());
  order_.clear();
  for (std::uint32_t s = 0; s < num_sequences; ++s) {
    if (num_whole_spans(batch.sequences[s]) > 0) order_.push_back({s, 0, 0, 0});
  }
  const std::size_t num_sorted = order_.size();
  std::sort(order_.begin(), order_.end(), [&](const Place& a, const Place& b) {
    const auto of_a = table_of(batch, a.sequence);
    const auto of_b = table_of(batch, b.sequence);
    return std::lexicographical_compare(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
  });
  for (std::size_t i = 1; i < num_sorted; ++i) {
    const auto before = table_of(batch, order_[i - 1].sequence);
    const auto table = table_of(batch, order_[i].sequence);
    const auto differ = std::mismatch(before.begin(), before.end(), table.begin(), table.end());
    order_[i].num_common = static_cast<std::uint32_t>(differ.first - before.begin());
  }
  for (std::uint32_t s = 0; s < num_sequences; ++s) {
    if (num_whole_spans(batch.sequences[s]) == 0) order_.push_back({s, 0, 0, 0});
  }
}

void AttentionUnits::cut(const AttentionSpec& spec, std::uint32_t block_tokens, std::uint32_t tile_rows,
                         std::uint32_t num_workers) {
  num_kv_heads_ = spec.num_kv_heads;
  heads_of_group_ = spec.num_heads / spec.num_kv_heads;
  runs_.clear();
  std::uint32_t num_queries = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Place& place = order_[i];
    place.first_query = num_queries;
    num_queries += sequence_of(place).num_rows * heads_of_group_;
    place.num_shared = 0;
    if (spec.window == 0 && place.num_common > 0) {
      const std::uint32_t whole =
          std::min(num_whole_spans(sequence_of(order_[i - 1])), num_whole_spans(sequence_of(place)));
      place.num_shared = std::min(whole, place.num_common * block_tokens / kSpan);
    }
    if (place.num_shared == 0) runs_.push_back({0, place.first_query, 0});
    runs_.back().last_query = num_queries;
  }

  // Four per worker, so that a worker that lost its core delays little; less than a tile would read K and V for few
  // rows.
  constexpr std::uint32_t kUnitsOfWorker = 4;
  const std::uint32_t even = num_queries * num_kv_heads_ / (kUnitsOfWorker * num_workers);
  const std::uint32_t tiles = std::max((even + tile_rows - 1) / tile_rows, 1u);
  unit_rows_ = num_workers == 1 ? kUnitRows : std::min(tiles * tile_rows, kUnitRows);
  // Few queries of one kv head: a part for each worker.
  if (num_kv_heads_ == 1 && num_queries <= num_workers * tile_rows) {
    unit_rows_ = std::max((num_queries + num_workers - 1) / num_workers, 1u);
  }
  num_of_head_ = 0;
  for (Run& run : runs_) {
    run.first_unit = num_of_head_;
    num_of_head_ += (run.last_query - run.first_query + unit_rows_ - 1) / unit_rows_;
  }
}

AttentionUnit AttentionUnits::unit(std::uint32_t index) const {
  AttentionUnit unit;
  unit.kv_head = index / num_of_head_;
  const std::uint32_t of_head = index % num_of_head_;
  const Run& run = *(std::upper_bound(runs_.begin(), runs_.end(), of_head,
                                      [](std::uint32_t u, const Run& r) { return u < r.first_unit; }) -
                     1);
  const std::uint32_t first = run.first_query + (of_head - run.first_unit) * unit_rows_;
  unit.num_rows = std::min(unit_rows_, run.last_query - first);

  auto place = std::upper_bound(order_.begin(), order_.end(), first,
                                [](std::uint32_t query, const Place& p) { return query < p.first_query; }) -
               1;
  for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
    const bool is_next = place + 1 != order_.end() && (place + 1)->first_query == first + u;
    if (is_next) ++place;
    const SequenceRows& sequence = sequence_of(*place);
    const std::uint32_t query = first + u - place->first_query;  // within the sequence
    const std::uint32_t row = query / heads_of_group_;
    unit.rows[u] = {&sequence, sequence.first_row + row, unit.kv_head * heads_of_group_ + query % heads_of_group_,
                    batch_.positions[sequence.first_row + row], is_next ? place->num_shared : kAllSpans};
  }
  return unit;
}

}  // namespace quire::cpu
