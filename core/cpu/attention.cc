#include "core/cpu/attention.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/cpu/share_out.h"

namespace quire::cpu {

using backend::AttentionSpec;
using backend::Batch;
using backend::KvType;
using backend::SequenceRows;

namespace {

constexpr std::uint32_t kUnitRows = 48;  // of a unit: a span of K and V is read from the second cache for all of them
constexpr std::uint32_t kMaxTileRows = 16;

static_assert(kSpan == backend::kSpanTokens && kLanes == backend::kGroupTokens);

// Where offset j of a span lies among its kept groups put side by side.
constexpr std::uint32_t packed(std::uint32_t kept, std::uint32_t j) {
  if (kept == kAllGroups) return j;
  const std::uint32_t group = j / kLanes;
  const auto before = static_cast<std::uint32_t>(std::popcount(kept & ((1u << group) - 1)));
  return before * kLanes + (kept >> group & 1u) * (j % kLanes);
}

constexpr std::size_t padded(std::uint32_t head_dim) { return (head_dim + kLanes - 1) / kLanes * kLanes; }

}  // namespace

struct Attention::Call {
  // int4: every row reads its own group as it was before storing.
  bool own_groups() const { return cache.shape().type == KvType::kInt4; }

  const Batch& batch;
  const AttentionSpec& spec;
  const HostBuffer& qkv;
  const PagedCache& cache;
  HostBuffer& out;
  std::uint32_t group;     // query heads of one kv head
  backend::DType read_as;  // what the kernels find in K and V
};

// Query rows [first, last) of a sequence and kv head; query row i is row i / group, head i % group of the group.
struct Attention::Unit {
  const SequenceRows& sequence;
  std::uint32_t kv_head;
  std::uint32_t first;
  std::uint32_t last;

  std::uint32_t position(const Call& call, std::uint32_t i) const { return sequence.first_position + i / call.group; }
  std::uint32_t head(const Call& call, std::uint32_t i) const { return kv_head * call.group + i % call.group; }
  // Bit g: group g of the span is there.
  std::uint32_t kept(const Call& call, std::uint32_t span) const {
    return span < sequence.num_kept ? call.batch.kept_groups[sequence.first_kept + span] : kAllGroups;
  }
  // What query row i sees of a span, as a range of its kept groups put side by side; empty where last <= first. Dropped
  // groups are whole, so that j mod 16 is the position's.
  Range seen(const Call& call, std::uint32_t i, std::uint32_t span) const {
    const std::uint32_t p = position(call, i);
    const std::uint32_t lowest = call.spec.window == 0 || p < call.spec.window ? 0 : p - call.spec.window + 1;
    const std::uint32_t start = span * kSpan;
    const std::uint32_t there = kept(call, span);
    return {packed(there, lowest < start ? 0 : std::min(lowest - start, kSpan)),
            packed(there, p < start ? 0 : std::min(p - start + 1, kSpan))};
  }
};

struct Attention::Scratch {
  std::size_t width;  // D padded to 16: stride of o and span_o
  std::size_t q_stride;
  float* q;              // [kUnitRows, D]
  float* o;              // [kUnitRows, width] merged over the spans so far
  float* span_o;         // [kMaxTileRows, width] of the span at hand
  float* z;              // [kMaxTileRows, kSpan] scores, then exponentials
  float* max;            // [kUnitRows]
  float* sum;            // [kUnitRows] 0: no span yet (afterwards it is at least 1, or NaN)
  float* wide;           // KvReader::wide_floats(), where the kernels do not read K and V as stored
  std::uint64_t* votes;  // [num_votes]

  static std::size_t floats(std::uint32_t head_dim) {
    const std::size_t width = padded(head_dim);
    return kUnitRows * (row_stride(head_dim) + width + 2) + kMaxTileRows * (width + kSpan);
  }
};

Attention::Attention(const Kernels& kernels, Team& team, std::uint32_t max_rows)
    : kernels_(kernels),
      team_(team),
      first_unit_(max_rows + 1),
      scratch_(team.size()),
      wide_(team.size()),
      votes_(team.size()) {
  CHECK_LE(kernels.tile_rows, kMaxTileRows);
}

void Attention::reserve(const backend::KvShape& shape) {
  const std::uint32_t size = shape.head_dim;
  if (size > max_head_) {
    max_head_ = size;
    for (Memory& memory : scratch_) memory = Memory(Scratch::floats(size) * sizeof(float), "attention scratch");
  }
  if (!GroupCodec(shape.type, size).is_plain() && size > max_wide_head_) {
    max_wide_head_ = size;
    for (Memory& memory : wide_) memory = Memory(KvReader::wide_floats(size) * sizeof(float), "attention scratch");
  }
}

Attention::Scratch Attention::scratch_of(std::uint32_t worker, const Call& call) {
  const std::uint32_t size = call.spec.head_dim;
  Scratch s{};
  s.width = padded(size);
  s.q_stride = row_stride(size);
  s.q = scratch_[worker].floats();
  s.o = s.q + kUnitRows * s.q_stride;
  s.span_o = s.o + kUnitRows * s.width;
  s.z = s.span_o + kMaxTileRows * s.width;
  s.max = s.z + kMaxTileRows * kSpan;
  s.sum = s.max + kUnitRows;
  s.wide = wide_[worker].floats();
  s.votes = votes_[worker].data();
  return s;
}

void Attention::attend(const Batch& batch, const AttentionSpec& spec, const HostBuffer& qkv, const PagedCache& cache,
                       HostBuffer& out) {
  CHECK_LE(spec.head_dim, cache.codec().is_plain() ? max_head_ : max_wide_head_);
  const Call call{batch,
                  spec,
                  qkv,
                  cache,
                  out,
                  spec.num_heads / spec.num_kv_heads,
                  cache.shape().type == KvType::kBF16 ? backend::DType::kBF16 : backend::DType::kF32};
  std::uint32_t num_units = 0;
  std::size_t cost = 0;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const SequenceRows& sequence = batch.sequences[s];
    const std::uint32_t query_rows = sequence.num_rows * call.group;
    first_unit_[s] = num_units;
    num_units += (query_rows + kUnitRows - 1) / kUnitRows;
    cost += std::size_t{query_rows} * spec.kv_width() * (sequence.first_position + sequence.num_rows);
  }
  first_unit_[batch.sequences.size()] = num_units;

  const std::uint32_t all = num_units * spec.num_kv_heads;
  const std::uint32_t chunks = std::min(all, num_chunks(cost, team_.size()));
  team_.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t worker) {
    const Scratch scratch = scratch_of(worker, call);
    const Range range = part_of(all, chunks, chunk);
    for (std::uint32_t i = range.first; i < range.last; ++i) attend_unit(call, unit_of(call, i), scratch);
  });
}

// Units of one kv head after another: neighbours of a sequence share its K and V.
Attention::Unit Attention::unit_of(const Call& call, std::uint32_t index) const {
  const auto begin = first_unit_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(call.batch.sequences.size());
  const std::uint32_t kv_head = index / *end;
  const std::uint32_t unit = index % *end;
  const auto s = static_cast<std::size_t>(std::upper_bound(begin, end, unit) - begin) - 1;
  const SequenceRows& sequence = call.batch.sequences[s];
  const std::uint32_t first = (unit - first_unit_[s]) * kUnitRows;
  return {sequence, kv_head, first, std::min(first + kUnitRows, sequence.num_rows * call.group)};
}

void Attention::attend_unit(const Call& call, const Unit& unit, const Scratch& scratch) const {
  const std::uint32_t size = call.spec.head_dim;
  const auto row_of = [&](std::uint32_t i) { return unit.sequence.first_row + i / call.group; };
  for (std::uint32_t i = unit.first; i < unit.last; ++i) {
    const float* q = call.qkv.row(row_of(i)) + unit.head(call, i) * size;
    std::copy_n(q, size, scratch.q + (i - unit.first) * scratch.q_stride);
    scratch.sum[i - unit.first] = 0.0f;
  }

  const std::uint32_t window = call.spec.window;
  const std::uint32_t first_position = unit.position(call, unit.first);
  const std::uint32_t lowest = window == 0 || first_position < window ? 0 : first_position - window + 1;
  const std::uint32_t last_span = unit.position(call, unit.last - 1) / kSpan;
  for (std::uint32_t span = lowest / kSpan; span <= last_span; ++span) {
    attend_span(call, unit, scratch, span, Pass::kWeigh);
  }
  if (unit.sequence.num_votes != 0) {  // once more, now that every row's maximum and sum are known
    for (std::uint32_t span = lowest / kSpan; span <= last_span; ++span) {
      attend_span(call, unit, scratch, span, Pass::kVote);
    }
  }

  for (std::uint32_t i = unit.first; i < unit.last; ++i) {
    const std::uint32_t u = i - unit.first;
    kernels_.divide(scratch.o + u * scratch.width, scratch.sum[u], size,
                    call.out.row(row_of(i)) + unit.head(call, i) * size);
  }
}

void Attention::attend_span(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span,
                            Pass pass) const {
  const KvReader kv(call.batch, call.spec, call.qkv, call.cache, unit.sequence, unit.kv_head, scratch.wide);
  const Range all{unit.seen(call, unit.first, span).first, unit.seen(call, unit.last - 1, span).last};
  const SpanGroups groups = kv.groups_of(span, unit.kept(call, span), all);
  for (std::uint32_t i = unit.first; i < unit.last;) {
    std::uint32_t first = i;
    std::uint32_t last = tile_end(call, unit, span, i);
    i = last;
    // Rows that end before the span come first, rows whose window begins after all that is there come last.
    const auto sees_nothing = [&](std::uint32_t row) {
      const Range seen = unit.seen(call, row, span);
      return seen.last <= seen.first;
    };
    while (first < last && sees_nothing(first)) ++first;
    while (first < last && sees_nothing(last - 1)) --last;
    if (first == last) continue;

    const std::uint32_t position = unit.position(call, first);
    SpanGroups tile = groups;
    if (call.own_groups() && position / kSpan == span) kv.put_own_group(position, tile);
    score(call, unit, scratch, span, first, last, tile);
    if (pass == Pass::kWeigh) {
      weigh(call, unit, scratch, span, first, last, tile);
    } else {
      vote(call, unit, scratch, span, first, last);
    }
  }
}

// Query rows from i on that go through the kernels together.
std::uint32_t Attention::tile_end(const Call& call, const Unit& unit, std::uint32_t span, std::uint32_t i) const {
  const std::uint32_t end = std::min(unit.last, i + kernels_.tile_rows);
  const std::uint32_t position = unit.position(call, i);
  if (!call.own_groups() || position / kSpan != span) return end;
  const std::uint32_t next_group = (position / kLanes + 1) * kLanes;
  return std::min(end, (next_group - unit.sequence.first_position) * call.group);
}

// z of the rows [first, last): q·k, unscaled.
void Attention::score(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span,
                      std::uint32_t first, std::uint32_t last, const SpanGroups& groups) const {
  const std::uint32_t first_group = unit.seen(call, first, span).first / kLanes;
  const std::uint32_t last_group = (unit.seen(call, last - 1, span).last + kLanes - 1) / kLanes;
  GemmArgs args;
  args.x = scratch.q + (first - unit.first) * scratch.q_stride;
  args.x_stride = scratch.q_stride;
  args.rows = last - first;
  args.k = call.spec.head_dim;
  args.panel_list = groups.k + first_group;
  args.n = (last_group - first_group) * kLanes;
  args.out = scratch.z + first_group * kLanes;
  args.out_stride = kSpan;
  kernels_.gemm[static_cast<int>(call.read_as)](args);
}

// Softmax of the rows [first, last) over the span, their sums of V, and the merge into what earlier spans gave.
void Attention::weigh(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span,
                      std::uint32_t first, std::uint32_t last, const SpanGroups& groups) const {
  float max[kMaxTileRows];
  float sum[kMaxTileRows];
  for (std::uint32_t i = first; i < last; ++i) {
    const Range seen = unit.seen(call, i, span);
    const std::uint32_t r = i - first;
    kernels_.softmax(scratch.z + r * kSpan, seen.first, seen.last, call.spec.scale, max + r, sum + r);
  }

  std::memset(scratch.span_o, 0, (last - first) * scratch.width * sizeof(float));
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t from_j, std::uint32_t to_j) {
    if (from_j >= to_j) return;
    WeighArgs args;
    args.e = scratch.z + (from - first) * kSpan;
    args.e_stride = kSpan;
    args.rows = to - from;
    args.first = from_j;
    args.last = to_j;
    args.groups = groups.v;
    args.row_bytes = scratch.width * backend::bytes_of(call.read_as);
    args.width = static_cast<std::uint32_t>(scratch.width);
    args.o = scratch.span_o + (from - first) * scratch.width;
    args.o_stride = scratch.width;
    kernels_.weigh[static_cast<int>(call.read_as)](args);
  };
  // What all rows see is weighed for all at once; what lies before and after it by the rows of one position at a time.
  const Range common{unit.seen(call, last - 1, span).first, unit.seen(call, first, span).last};
  const bool shared = common.first < common.last;
  const auto for_positions = [&](auto&& body) {
    for (std::uint32_t i = first, end = 0; i < last; i = end) {
      end = std::min(last, (i / call.group + 1) * call.group);
      body(i, end, unit.seen(call, i, span));
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
    const std::uint32_t u = i - unit.first;
    const std::uint32_t r = i - first;
    float* o = scratch.o + u * scratch.width;
    const float* span_o = scratch.span_o + r * scratch.width;
    if (scratch.sum[u] == 0.0f) {
      scratch.max[u] = max[r];
      scratch.sum[u] = sum[r];
      std::copy_n(span_o, scratch.width, o);
    } else {
      kernels_.merge(scratch.max + u, scratch.sum + u, o, max[r], sum[r], span_o, scratch.width);
    }
  }
}

// The scores of the rows [first, last), as the probabilities they came to, to their positions' groups.
void Attention::vote(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span,
                     std::uint32_t first, std::uint32_t last) const {
  std::uint64_t* votes = scratch.votes + unit.sequence.first_vote + std::size_t{span} * kSpanGroups;
  std::uint32_t groups[kSpanGroups];  // of the span, by where they lie side by side
  for (std::uint32_t group = 0, next = 0; group < kSpanGroups; ++group) {
    if ((unit.kept(call, span) >> group & 1u) != 0) groups[next++] = group;
  }
  for (std::uint32_t i = first; i < last; ++i) {
    const Range seen = unit.seen(call, i, span);
    const float max = scratch.max[i - unit.first];
    const float inverse = 1.0f / scratch.sum[i - unit.first];
    float* z = scratch.z + (i - first) * kSpan;
    for (std::uint32_t j = seen.first; j < seen.last; ++j) z[j] = z[j] * call.spec.scale - max;
    kernels_.exp_each(z + seen.first, seen.last - seen.first);
    for (std::uint32_t j = seen.first; j < seen.last; ++j) {
      const double share = static_cast<double>(z[j] * inverse) * 0x1p32;
      // A NaN votes for nothing: its request is about to fail.
      if (share > 0.0) votes[groups[j / kLanes]] += static_cast<std::uint64_t>(share + 0.5);
    }
  }
}

void Attention::begin_votes(std::uint32_t num_votes) {
  num_votes_ = num_votes;
  for (std::vector<std::uint64_t>& votes : votes_) votes.assign(num_votes, 0);
}

void Attention::read_votes(std::span<std::uint64_t> out) const {
  CHECK_EQ(out.size(), num_votes_);
  std::fill(out.begin(), out.end(), 0);
  for (const std::vector<std::uint64_t>& votes : votes_) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += votes[i];
  }
}

}  // namespace quire::cpu
