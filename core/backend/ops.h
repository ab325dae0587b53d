// What a device must do: a few plain ops over opaque row buffers, and fused ops whose default body is their
// composition.
//
// Every equation below fixes the order of its roundings, so that results do not depend on the number of rows, on
// chunking, on threads or on the instruction set: f32 everywhere, fma(a,b,c) rounds once, nothing is reassociated.
//   dot      acc = +0; for k ascending: acc = fma(x[k], w[k], acc). One accumulator per output.
//   sum16    16 lane accumulators, element i into lane i mod 16, i ascending (plain add, or fma for squares);
//            then lanes l and l+8 are added, l and l+4, l and l+2, l and l+1.
//   exp, log ours (core/sample/math.h), the same on every instruction set.
//
// Shape   T rows of the batch given to begin(); R logits rows. Buffers are checked with expect() at the start of every
//         op.
// Owner   the runner owns the Ops and all it made.
// Thread  engine, after start. Ops may be queued by a device; collect() waits.
// Fails   making things throws StartError (out of memory); ops do not fail: shape errors are our bug (CHECK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/backend/tensors.h"

namespace quire::backend {

struct BlockCopy {
  BlockId from;
  BlockId to;
};

struct RowCopy {  // by slot
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // "cpu/avx512 2 threads": for the ready line and the numeric mode's backend part is the first word up to '/'.
  virtual std::string description() const = 0;

  // ---- made while starting
  // bias: empty, or one f32 span per matrix (an empty one: no bias for that matrix). Quantised from what the matrices
  // hold, s a scale and q whole; w8a8 is packed as int8, w4a8 as int4, w16a16 to
  // the nearest bf16, ties to even:
  //   int8  s[n] = max over k of |w[n,k]| / 127 in f32;  q[n,k] = w / s to the nearest, ties to even, within -127..127
  //   int4  by groups g of 32 inputs, counted from the first: s[n,g] = the number of the largest size among them, the
  //         first of equals, / -8, to the nearest bf16;  q[n,k] = w / s likewise, within -8..7
  // s = 0 has q = 0. Where a number is a NaN or infinite, s is NaN: a fault is not rounded away.
  virtual std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices,
                                       std::span<const std::span<const float>> biases,
                                       Quantize quantize = Quantize::kNone) = 0;
  // How pack() lays weights out, by a name and a number that goes up with every change: "cpu panels/1".
  virtual std::string layout() const = 0;
  // A weight that pack() made here or in another process, of its packed() bytes. They stay where they are and `owner`
  // keeps them. None where this layout has another number of bytes for the shape, or where they do not begin on a cache
  // line.
  virtual std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                        std::shared_ptr<const void> owner) = 0;
  // part(i) for every i in [0, count), shared out over the host's threads that work for this device.
  virtual void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) = 0;
  virtual std::unique_ptr<Vector> upload(std::span<const float> values) = 0;
  // cosines, sines: [positions, half] row major.
  virtual std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                                 std::uint32_t half) = 0;
  virtual std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) = 0;
  virtual std::unique_ptr<KvCache> make_kv(const KvShape& shape) = 0;

  // ---- one step: begin, ops, choose, collect
  // So many steps may be begun and not collected. They run in the order of their begin(), with what is done to blocks
  // between.
  virtual std::uint32_t depth() const { return 1; }
  virtual void begin(const Batch& batch) = 0;
  // out[t,:] = table[tokens[t],:] widened to f32; q * s where it is quantised.
  virtual void embed(const Weight& table, Buffer& out) = 0;
  // out[t,i] = (x[t,i] * r) * scale[i], r = 1 / sqrt(sum16(x²) / E + eps), IEEE sqrt and division. rows: T, or R for
  // gathered rows.
  virtual void norm(const Buffer& x, const Vector& scale, float eps, std::uint32_t rows, Buffer& out) = 0;
  // out[t,n] = dot(x[t,:], w[n,:]) + bias[n] (no addition where there is no bias).
  //   int8, fp8  out[t,n] = dot(x[t,:], q[n,:]) * s[n] + bias[n]
  //   int4  w[n,k] = q[n,k] * s[n,k/32], which is exact
  // An infinite x times a q of 0 is NaN, though the number that was rounded to it may not have been 0.
  // w8a8 and w4a8 multiply in integers. Each row of x is quantised by groups g of 256 inputs, counted from the first:
  //   a = max |x[t,k]|;  xs[t,g] = a / 127;  r = 127 / a;  xq[t,k] = x[t,k] * r to the nearest, ties to even
  // Where r is infinite (a is 0, or nearly), xs and xq are 0; where an x is a NaN or infinite, xs is NaN and xq 0.
  // Then, sums over k exact, acc and p beginning with +0, g and the groups j of 32 inputs in g ascending:
  //   w8a8  acc = fma(sum over g of xq[t,k] * q[n,k], xs[t,g], acc);  out[t,n] = acc * s[n] + bias[n]
  //   w4a8  for each g: p = fma(sum over j of xq[t,k] * q[n,k], s[n,j], p), acc = fma(p, xs[t,g], acc);
  //         out[t,n] = acc + bias[n]
  // w16a16 multiplies bf16 by bf16, which f32 holds exactly. xb[t,k] = x[t,k] to the nearest bf16, ties to even; xb and
  // w are 0 behind K. acc begins with +0; for each pair of inputs k, k + 1, k even and ascending, the odd one first:
  //   acc = fma(xb[t,k+1], w[n,k+1], acc);  acc = fma(xb[t,k], w[n,k], acc);  then out[t,n] = acc + bias[n]
  // Here subnormal numbers are zeros of their sign wherever they are read or come out.
  virtual void linear(const Buffer& x, const Weight& w, std::uint32_t rows, Buffer& out) = 0;
  // For every row: q and k heads RMS-normed where the spec says so (norm's equation over D), then rotated by halves:
  //   lo' = fma(-hi, sin, lo*cos)   hi' = fma(lo, sin, hi*cos);   K and V then stored at the row's slot in the cache's
  //   type (KvType). int4 stores a group of 16 positions when its last row is there, by then from the open group. qkv
  //   keeps the rotated q and, for attend(), k and v as they were before storing.
  virtual void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) = 0;
  // out[t, h·D+d] for every row and query head, over positions j in [max(0, p-window+1), p] of its own sequence that
  // are kept, K and V as stored (widened to f32; int4: but those of the row's own group, from 16·⌊p/16⌋ on, as they
  // were before storing, so that it does not matter which rows came in the same step), p the row's position. Per span s
  // (positions [256s, 256s+256)) in which the row sees any:
  //   z_j = dot(q, k_j) * scale;  m_s = max z_j;  e_j = exp(z_j - m_s);  l_s = sum16 by j mod 16 of e_j;  o_s = fma
  //   over j ascending of e_j·v_j.
  // Spans merge in order: m = max(M, m_s); a = exp(M - m), b = exp(m_s - m);  L = fma(L, a, l_s*b); O = fma(O, a,
  // o_s*b); M = m (the first span is taken as it is). out = O * (1/L). Nothing that a row does not see is read for it.
  // For sequences that want accumulated scores, every position that the row sees gets round(exp(z_j - M) * (1/L) *
  // 2^32) from the row, this head and this layer, added up as integers.
  virtual void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) = 0;
  // out[t,f] = silu(gate) * up, gate = gate_up[t,f], up = gate_up[t,F+f]; silu(g) = g / (1 + exp(-g)).
  virtual void act_mul(const Buffer& gate_up, Buffer& out) = 0;
  // x[t,:] = x[t,:] + y[t,:].
  virtual void add(Buffer& x, const Buffer& y) = 0;
  // out[t, column + i] = x[t,i], for `rows` rows.
  virtual void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) = 0;
  // out[t,i] = x[t, column + i], for `rows` rows: as many columns as `out` has.
  virtual void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) = 0;
  // out[r,:] = x[logits_rows[r].row,:].
  virtual void gather_logits_rows(const Buffer& x, Buffer& out) = 0;
  // One choice per logits row from its row of logits [R, V] and its edits, or a given token's score:
  // core/sample/sampler.h, and where a draft is judged by law acceptance.h. V = `vocab` (a padded tail is never looked
  // at). Of a draft's nodes only those that the walk comes to (batch.h).
  virtual void choose(const Buffer& logits, std::uint32_t vocab) = 0;
  // Waits for the oldest step begun and not collected; writes its R choices.
  virtual void collect(std::span<Choice> choices) = 0;

  // Of the step collected last: what attend() added up for each group of 16 positions [num_accumulated_scores].
  virtual void read_accumulated_scores(std::span<std::uint64_t> out) = 0;

  // ---- between steps: whole blocks, all layers and the byte tail, in the order asked
  virtual void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) = 0;
  // K and V of single rows, all layers, in the order asked: as they are stored. Not for int4.
  virtual void copy_rows(KvCache& cache, std::span<const RowCopy> copies) = 0;
  // Whatever is read from the block's K and V is NaN until it is stored again.
  virtual void poison_block(KvCache& cache, BlockId block) = 0;
  // The block's content as bytes [block_bytes]: good for write_block() into a cache of the same shape, of any number of
  // blocks.
  virtual void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) = 0;
  virtual void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) = 0;
  // int4: what a fork of a sequence takes along.
  virtual void copy_open_group(KvCache& cache, std::uint32_t from, std::uint32_t to) = 0;
  // A block's byte tail alone [tail_bytes].
  virtual void read_tail(const KvCache& cache, BlockId block, std::span<std::byte> out) = 0;
  virtual void write_tail(KvCache& cache, BlockId block, std::span<const std::byte> bytes) = 0;

  // ---- after collect()
  // Rows of a buffer to host memory, f32, row major: hidden states that somebody wants, and whatever tests look at.
  virtual void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) = 0;

  // ---- between steps
  // The other way round, into a buffer's first rows: what a drafter kept on the host. Whole rows; `rows` may change
  // behind this.
  virtual void write(std::span<const float> rows, Buffer& buffer) = 0;

  // ---- fused: an override may be faster, never different (tests compare bit for bit)
  // norm, linear, rope_store. `scratch` is [T, E].
  virtual void norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                                   KvCache& cache);
  // norm, linear, act_mul. `scratch` is [T, E], `gate_up` [T, 2F].
  virtual void norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out);
  // linear, add: x += y·Wᵀ. `scratch` is [T, E].
  virtual void project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x);
  // linear, choose: one choice per logits row from the logits [R, V] of its row of x.
  virtual void project_choose(const Buffer& x, const Weight& head, std::uint32_t vocab, Buffer& logits);

 protected:
  std::uint32_t num_rows_ = 0;         // T of the step begun last; set by begin()
  std::uint32_t num_logits_rows_ = 0;  // R
};

}  // namespace quire::backend
