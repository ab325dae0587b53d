#include "core/cpu/attention.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/kv_constants.h"
#include "core/cpu/team/share_out.h"

namespace quire::cpu {

using backend::AttentionSpec;
using backend::Batch;
using backend::KvType;
using backend::SequenceRows;

namespace {

constexpr std::uint32_t kMaxTileRows = 16;

static_assert(kLanes == kGroupTokens);

// Position of offset j of a span if its kept groups lie side by side.
constexpr std::uint32_t packed(std::uint32_t kept, std::uint32_t j) {
  if (kept == kAllGroups) return j;
  const std::uint32_t group = j / kLanes;
  const auto before = static_cast<std::uint32_t>(std::popcount(kept & ((1u << group) - 1)));
  return before * kLanes + (kept >> group & 1u) * (j % kLanes);
}

// The groups of a span that are kept, side by side.
class KeptGroups {
 public:
  explicit KeptGroups(std::uint32_t kept) {
    for (std::uint32_t group = 0, next = 0; group < kSpanGroups; ++group) {
      if ((kept >> group & 1u) != 0) groups_[next++] = group;
    }
  }
  std::uint32_t operator[](std::uint32_t i) const { return groups_[i]; }

 private:
  std::uint32_t groups_[kSpanGroups] = {};
};

float as_bf16(float x) { return f32_of_bf16(bf16_of_f32(x)); }

// f32 takes the most of the types that are stored row by row.
std::size_t most_group_floats(std::uint32_t head_dim) {
  return GroupCodec(KvType::kF32, head_dim).bytes() / sizeof(float);
}

}  // namespace

struct Attention::Call {
  // int4: every row reads its own group as it was before storing.
  bool own_groups() const { return cache.shape().type == KvType::kInt4; }

  // True if rows of the sequence read different K and V in this span.
  bool has_paths(const SequenceRows& sequence, std::uint32_t span) const {
    return sequence.num_nodes != 0 && (spec.window != 0 || span >= sequence.root_position() / kSpan);
  }
  // The lowest position that a row sees, dropped or not.
  std::uint32_t lowest(const QueryRow& row) const {
    return spec.window == 0 || row.position < spec.window ? 0 : row.position - spec.window + 1;
  }
  // Bit g: group g of the span is kept.
  std::uint32_t kept(const SequenceRows& sequence, std::uint32_t span) const {
    return span < sequence.num_kept ? batch.kept_groups[sequence.first_kept + span] : kAllGroups;
  }
  // Part of a span that a row sees, as a range with its kept groups side by side; empty if last <= first. Dropped
  // groups are whole, so that j mod 16 is the position's.
  Range seen(const QueryRow& row, std::uint32_t span) const {
    const std::uint32_t from = lowest(row);
    const std::uint32_t start = span * kSpan;
    const std::uint32_t there = kept(*row.sequence, span);
    return {packed(there, from < start ? 0 : std::min(from - start, kSpan)),
            packed(there, row.position < start ? 0 : std::min(row.position - start + 1, kSpan))};
  }

  const Batch& batch;
  const AttentionSpec& spec;
  const HostBuffer& qkv;
  const PagedCache& cache;
  HostBuffer& out;
};

struct Attention::Scratch {
  std::size_t width;  // D padded to 16: stride of o and span_o
  std::size_t q_stride;
  float* q;                           // [kUnitRows, D]
  float* o;                           // [kUnitRows, width] merged over the spans so far
  float* span_o;                      // [kMaxTileRows, width] of the current span
  float* z;                           // [kMaxTileRows, kSpan] scores, then exponentials
  float* max;                         // [kUnitRows]
  float* sum;                         // [kUnitRows] 0: no span yet (afterwards it is at least 1, or NaN)
  float* own_group;                   // KvReader::own_group_floats(): int4
  std::byte* path;                    // [kSpanGroups] groups: draft trees
  std::byte* panels;                  // [kSpanGroups] panels of K: latents
  std::uint64_t* accumulated_scores;  // [num_accumulated_scores]

  // Of a latent: panels of K, the largest of which are in f32.
  static std::size_t panel_floats(std::uint32_t head_dim) { return std::size_t{kSpan} * head_dim; }
  static std::size_t floats(std::uint32_t head_dim, std::uint32_t latent_dim) {
    const std::size_t width = padded_width(head_dim);
    return panel_floats(latent_dim) + kUnitRows * (row_stride(head_dim) + width + 2) + kMaxTileRows * (width + kSpan) +
           KvReader::own_group_floats(head_dim) + kSpanGroups * most_group_floats(head_dim);
  }
};

Attention::Attention(const Kernels& kernels, Team& team, std::uint32_t max_rows)
    : kernels_(kernels), team_(team), max_rows_(max_rows), scratch_(team.size()), accumulated_scores_(team.size()) {
  CHECK_LE(kernels.tile_rows, kMaxTileRows);
  units_.emplace_back(max_rows);
}

void Attention::reserve(const backend::KvShape& shape) {
  while (units_.size() < shape.num_groups()) units_.emplace_back(max_rows_);
  const std::uint32_t size = shape.most_head_dim();
  const std::uint32_t latent =
      shape.most([](const backend::KvLayer& layer) { return layer.latent != 0 ? layer.head_dim : 0; });
  if (size <= max_head_ && latent <= max_latent_) return;
  max_head_ = std::max(max_head_, size);
  max_latent_ = std::max(max_latent_, latent);
  const std::size_t bytes = Scratch::floats(max_head_, max_latent_) * sizeof(float);
  for (Memory& memory : scratch_) memory = Memory(bytes, "attention scratch");
}

Attention::Scratch Attention::scratch_of(std::uint32_t worker, const Call& call) {
  const std::uint32_t size = call.spec.head_dim;
  Scratch s{};
  s.width = padded_width(call.spec.value_dim());
  s.q_stride = row_stride(size);
  s.q = scratch_[worker].floats();
  s.o = s.q + kUnitRows * s.q_stride;
  s.span_o = s.o + kUnitRows * s.width;
  s.z = s.span_o + kMaxTileRows * s.width;
  s.max = s.z + kMaxTileRows * kSpan;
  s.sum = s.max + kUnitRows;
  s.own_group = s.sum + kUnitRows;
  s.path = reinterpret_cast<std::byte*>(s.own_group + KvReader::own_group_floats(size));
  s.panels = s.path + kSpanGroups * most_group_floats(size) * sizeof(float);
  s.accumulated_scores = accumulated_scores_[worker].data();
  return s;
}

void Attention::begin(const Batch& batch) {
  CHECK_LE(batch.num_groups(), units_.size());
  for (std::uint32_t group = 0; group < batch.num_groups(); ++group) units_[group].begin(batch.of_group(group));
  num_accumulated_scores_ = batch.num_accumulated_scores;
  for (std::vector<std::uint64_t>& accumulated_scores : accumulated_scores_)
    accumulated_scores.assign(num_accumulated_scores_, 0);
}

void Attention::attend(const AttentionSpec& spec, const HostBuffer& qkv, const PagedCache& cache, HostBuffer& out) {
  AttentionUnits& units = units_[cache.shape().layers[spec.layer].group];
  const Batch& batch = units.batch();
  CHECK_LE(spec.head_dim, max_head_);
  const Call call{batch, spec, qkv, cache, out};
  units.cut(spec, cache.shape().block_tokens, kernels_.tile_rows, team_.size());
  std::size_t cost = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    const std::size_t last = sequence.first_position + sequence.num_rows;
    cost += sequence.num_rows * spec.q_width() * last;
  }
  const std::uint32_t chunks = std::min(units.count(), num_chunks(cost, team_.size()));
  team_.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t worker) {
    const Scratch scratch = scratch_of(worker, call);
    const Range range = part_of(units.count(), chunks, chunk);
    for (std::uint32_t i = range.first; i < range.last; ++i) attend_unit(call, units.unit(i), scratch);
  });
}

void Attention::attend_unit(const Call& call, const AttentionUnit& unit, const Scratch& scratch) const {
  const std::uint32_t size = call.spec.head_dim;
  for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
    const QueryRow& row = unit.rows[u];
    std::copy_n(call.qkv.row(row.row) + row.head * size, size, scratch.q + u * scratch.q_stride);
    scratch.sum[u] = 0.0f;
  }
  attend_spans(call, unit, scratch, Pass::kWeigh);
  if (call.spec.sinks) add_sinks(call, unit, scratch);
  // Second pass: every row's maximum and sum are known now.
  if (unit.rows[0].sequence->num_accumulated_scores != 0) {
    attend_spans(call, unit, scratch, Pass::kAccumulate);
  }
  const std::uint32_t value_dim = call.spec.value_dim();
  for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
    const QueryRow& row = unit.rows[u];
    kernels_.divide(scratch.o + u * scratch.width, scratch.sum[u], value_dim,
                    call.out.row(row.row) + row.head * value_dim);
  }
}

void Attention::attend_spans(const Call& call, const AttentionUnit& unit, const Scratch& scratch, Pass pass) const {
  std::uint32_t last_position = 0;
  std::uint32_t lowest = ~0u;
  for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
    last_position = std::max(last_position, unit.rows[u].position);
    lowest = std::min(lowest, call.lowest(unit.rows[u]));
  }
  for (std::uint32_t span = lowest / kSpan; span <= last_position / kSpan; ++span) {
    for (std::uint32_t u = 0; u < unit.num_rows;) {
      const Range rows{u, unit.end_of_group(u, span)};
      attend_span(call, unit, scratch, span, rows, pass);
      u = rows.last;
    }
  }
}

// Attends query rows that read the same K and V. If they are of several sequences, all of them see all of the span.
void Attention::attend_span(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                            Range rows, Pass pass) const {
  const SequenceRows& sequence = *unit.rows[rows.first].sequence;
  if (call.has_paths(sequence, span)) return attend_paths(call, unit, scratch, span, rows, pass);
  const Range all{call.seen(unit.rows[rows.first], span).first, call.seen(unit.rows[rows.last - 1], span).last};
  if (all.last <= all.first) return;
  const KvReader kv(call.batch, call.spec, call.qkv, call.cache, sequence, unit.kv_head);
  SpanGroups groups = kv.groups_of(span, call.kept(sequence, span), all);
  if (call.spec.latent != 0) kv.put_panels(kernels_, all, scratch.panels, groups);
  while (rows.first < rows.last) {
    Range tile{rows.first, tile_end(call, unit, span, rows)};
    rows.first = tile.last;
    // Rows that end before the span come first; rows whose window begins behind its last kept position come last.
    const auto sees_nothing = [&](std::uint32_t u) {
      const Range seen = call.seen(unit.rows[u], span);
      return seen.last <= seen.first;
    };
    while (tile.first < tile.last && sees_nothing(tile.first)) ++tile.first;
    while (tile.first < tile.last && sees_nothing(tile.last - 1)) --tile.last;
    if (tile.first == tile.last) continue;

    const std::uint32_t position = unit.rows[tile.first].position;
    SpanGroups of_tile = groups;
    if (call.own_groups() && position / kSpan == span) kv.put_own_group(position, scratch.own_group, of_tile);
    score(call, unit, scratch, span, tile, of_tile);
    if (pass == Pass::kWeigh) {
      weigh(call, unit, scratch, span, tile, of_tile);
    } else {
      accumulate(call, unit, scratch, span, tile);
    }
  }
}

// Rows of a draft tree read different K and V: attends one row at a time, with all its query heads.
void Attention::attend_paths(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                             Range rows, Pass pass) const {
  CHECK(pass == Pass::kWeigh);
  const SequenceRows& sequence = *unit.rows[rows.first].sequence;
  const KvReader kv(call.batch, call.spec, call.qkv, call.cache, sequence, unit.kv_head);
  while (rows.first < rows.last) {
    const QueryRow& row = unit.rows[rows.first];
    const std::uint32_t end = std::min(rows.last, rows.first + kernels_.tile_rows);
    Range tile{rows.first, rows.first + 1};
    while (tile.last < end && unit.rows[tile.last].row == row.row) ++tile.last;
    rows.first = tile.last;
    const Range seen = call.seen(row, span);
    if (seen.last <= seen.first) continue;
    SpanGroups groups = kv.groups_of(span, kAllGroups, seen);
    if (row.position > sequence.root_position()) kv.put_path(row.row, span, scratch.path, groups);
    if (call.spec.latent != 0) kv.put_panels(kernels_, seen, scratch.panels, groups);
    score(call, unit, scratch, span, tile, groups);
    weigh(call, unit, scratch, span, tile, groups);
  }
}

// End of the query rows, from the first on, that go through the kernels together.
std::uint32_t Attention::tile_end(const Call& call, const AttentionUnit& unit, std::uint32_t span, Range rows) const {
  const std::uint32_t end = std::min(rows.last, rows.first + kernels_.tile_rows);
  const std::uint32_t position = unit.rows[rows.first].position;
  if (!call.own_groups() || position / kSpan != span) return end;
  std::uint32_t same = rows.first + 1;
  while (same < end && unit.rows[same].position / kLanes == position / kLanes) ++same;
  return same;
}

// Computes z of a tile: q·k, unscaled.
void Attention::score(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                      Range rows, const SpanGroups& groups) const {
  const std::uint32_t first_group = call.seen(unit.rows[rows.first], span).first / kLanes;
  const std::uint32_t last_group = (call.seen(unit.rows[rows.last - 1], span).last + kLanes - 1) / kLanes;
  const auto score_groups = [&](KvType type, std::uint32_t first, std::uint32_t last) {
    if (first >= last) return;
    GemmArgs args;
    args.x = scratch.q + rows.first * scratch.q_stride;
    args.x_stride = scratch.q_stride;
    args.rows = rows.last - rows.first;
    args.k = call.spec.head_dim;
    args.panel_list = groups.k() + first;
    args.n = (last - first) * kLanes;
    args.out = scratch.z + first * kLanes;
    args.out_stride = kSpan;
    kernels_.score[static_cast<int>(type)](args);
  };
  const KvType type = call.spec.latent == 0 ? call.cache.shape().type : call.cache.codec(call.spec.layer).panel_type();
  score_groups(type, first_group, std::min(last_group, groups.own));
  score_groups(KvType::kF32, std::max(first_group, groups.own), last_group);
}

// Caps a row's scores and adds biases, if the spec says so. Returns the scale that is still to be applied.
float Attention::finish_scores(const Call& call, const QueryRow& row, std::uint32_t span, float* z, Range seen) const {
  if (call.spec.softcap == 0.0f && !call.spec.bias) return call.spec.scale;
  kernels_.rescale(z + seen.first, call.spec.scale, call.spec.softcap, seen.last - seen.first);
  if (call.spec.bias) add_biases(call, row, span, z, seen);
  return 1.0f;
}

void Attention::add_biases(const Call& call, const QueryRow& row, std::uint32_t span, float* z, Range seen) const {
  const backend::PositionBias& bias = call.spec.bias;
  const float slope = static_cast<const HostVector&>(*bias.slopes).data()[bias.first + row.head];
  const KeptGroups kept(call.kept(*row.sequence, span));
  float biases[kSpan];
  for (std::uint32_t j = seen.first; j < seen.last; ++j) {
    const std::uint32_t position = span * kSpan + kept[j / kLanes] * kLanes + j % kLanes;
    biases[j] = bias.in_bf16 ? as_bf16(slope * as_bf16(static_cast<float>(position)))
                             : -static_cast<float>(row.position - position);
  }
  kernels_.add(z + seen.first, biases + seen.first, bias.in_bf16 ? call.spec.scale : slope, seen.last - seen.first);
}

// Computes the softmax of a tile over the span and its sums of V, and merges them into the earlier spans' results.
void Attention::weigh(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                      Range rows, const SpanGroups& groups) const {
  const auto [first, last] = rows;
  float max[kMaxTileRows];
  float sum[kMaxTileRows];
  for (std::uint32_t i = first; i < last; ++i) {
    const Range seen = call.seen(unit.rows[i], span);
    const std::uint32_t r = i - first;
    kernels_.softmax(scratch.z + r * kSpan, seen.first, seen.last,
                     finish_scores(call, unit.rows[i], span, scratch.z + r * kSpan, seen), max + r, sum + r);
  }

  std::memset(scratch.span_o, 0, (last - first) * scratch.width * sizeof(float));
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t from_j, std::uint32_t to_j) {
    add_values(call, scratch, groups, {from - first, to - first}, {from_j, to_j});
  };
  // V is weighed for all rows at once where all see it; before and after that, for the query heads of one row at a
  // time.
  const Range common{call.seen(unit.rows[last - 1], span).first, call.seen(unit.rows[first], span).last};
  const bool shared = common.first < common.last;
  const auto for_positions = [&](auto&& body) {
    for (std::uint32_t i = first, end = 0; i < last; i = end) {
      end = i + 1;
      while (end < last && unit.rows[end].row == unit.rows[i].row) ++end;
      body(i, end, call.seen(unit.rows[i], span));
    }
  };
  for_positions([&](std::uint32_t i, std::uint32_t end, Range seen) {
    add(i, end, seen.first, shared ? common.first : seen.last);
  });
  if (shared) {
    add(first, last, common.first, common.last);
    for_positions([&](std::uint32_t i, std::uint32_t end, Range seen) { add(i, end, common.last, seen.last); });
  }

  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint32_t r = i - first;
    float* o = scratch.o + i * scratch.width;
    const float* span_o = scratch.span_o + r * scratch.width;
    if (scratch.sum[i] == 0.0f) {
      scratch.max[i] = max[r];
      scratch.sum[i] = sum[r];
      std::copy_n(span_o, scratch.width, o);
    } else {
      kernels_.merge(scratch.max + i, scratch.sum + i, o, max[r], sum[r], span_o, scratch.width);
    }
  }
}

// Merges each head's sink into the results of all spans.
void Attention::add_sinks(const Call& call, const AttentionUnit& unit, const Scratch& scratch) const {
  const backend::HeadSinks& sinks = call.spec.sinks;
  const float* scores = static_cast<const HostVector&>(*sinks.scores).data() + sinks.first;
  std::memset(scratch.span_o, 0, scratch.width * sizeof(float));
  for (std::uint32_t u = 0; u < unit.num_rows; ++u) {
    kernels_.merge(scratch.max + u, scratch.sum + u, scratch.o + u * scratch.width, scores[unit.rows[u].head], 1.0f,
                   scratch.span_o, scratch.width);
  }
}

// Adds V at offsets `range` of the span to the sums of some of a tile's rows.
void Attention::add_values(const Call& call, const Scratch& scratch, const SpanGroups& groups, Range rows,
                           Range range) const {
  const auto add = [&](KvType type, std::size_t row_bytes, std::uint32_t first, std::uint32_t last) {
    if (first >= last) return;
    WeighArgs args;
    args.e = scratch.z + rows.first * kSpan;
    args.e_stride = kSpan;
    args.rows = rows.last - rows.first;
    args.first = first;
    args.last = last;
    args.groups = groups.v();
    args.row_bytes = row_bytes;
    args.width = static_cast<std::uint32_t>(scratch.width);
    args.o = scratch.span_o + rows.first * scratch.width;
    args.o_stride = scratch.width;
    kernels_.weigh[static_cast<int>(type)](args);
  };
  const std::uint32_t own = groups.own * kLanes;
  add(call.cache.shape().type, call.cache.codec(call.spec.layer).v_row_bytes(), range.first, std::min(range.last, own));
  add(KvType::kF32, scratch.width * sizeof(float), std::max(range.first, own), range.last);
}

// Adds the probabilities of a tile's scores to the accumulated scores of their positions' groups.
void Attention::accumulate(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                           Range rows) const {
  const auto [first, last] = rows;
  const SequenceRows& sequence = *unit.rows[first].sequence;
  std::uint64_t* accumulated_scores =
      scratch.accumulated_scores + sequence.first_accumulated_score + std::size_t{span} * kSpanGroups;
  const KeptGroups groups(call.kept(sequence, span));
  for (std::uint32_t i = first; i < last; ++i) {
    const Range seen = call.seen(unit.rows[i], span);
    const float max = scratch.max[i];
    const float inverse = 1.0f / scratch.sum[i];
    float* z = scratch.z + (i - first) * kSpan;
    const float scale = finish_scores(call, unit.rows[i], span, z, seen);
    for (std::uint32_t j = seen.first; j < seen.last; ++j) z[j] = z[j] * scale - max;
    kernels_.exp_each(z + seen.first, seen.last - seen.first);
    for (std::uint32_t j = seen.first; j < seen.last; ++j) {
      const double share = static_cast<double>(z[j] * inverse) * 0x1p32;
      // A NaN adds 0: its request is about to fail.
      if (share > 0.0) accumulated_scores[groups[j / kLanes]] += static_cast<std::uint64_t>(share + 0.5);
    }
  }
}

void Attention::read_accumulated_scores(std::span<std::uint64_t> out) const {
  CHECK_EQ(out.size(), num_accumulated_scores_);
  std::fill(out.begin(), out.end(), 0);
  for (const std::vector<std::uint64_t>& accumulated_scores : accumulated_scores_) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += accumulated_scores[i];
  }
}

}  // namespace quire::cpu
