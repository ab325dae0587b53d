// The ops of one step: plain ops over opaque row buffers, and linear(), which composes them unless a backend fuses.
// A step is begin(), ops, choose() if it has logits rows, collect().
//
// Every equation below fixes the order of its roundings, so that results do not depend on the number of rows, on
// chunking, threads or the instruction set: f32 everywhere, fma(a,b,c) rounds once, nothing is reassociated.
//   dot      acc = +0; for k ascending: acc = fma(x[k], w[k], acc). One accumulator per output.
//   sum16    16 lane accumulators, element i into lane i mod 16, i ascending (plain add, or fma for squares);
//            then lanes l and l+8 are added, l and l+4, l and l+2, l and l+1.
//   exp, expm1, log, tanh ours (core/sample/math.h), the same on every instruction set.
//
// Shape   T rows of the batch given to begin(); R logits rows. embed, embed_positions, rope_store, attend,
//         gather_logits_rows and choose work on the rows of the batch; every other op on the first `rows` rows of its
//         buffers. expect() checks buffers at the start of every op.
// Thread  engine. A device may queue ops; collect() waits for them.
// Fails   never: a wrong shape is our bug (CHECK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/batch.h"
#include "core/backend/experts.h"
#include "core/backend/linear.h"
#include "core/backend/tensors.h"

namespace quire::backend {

class StepOps {
 public:
  virtual ~StepOps() = default;

  // Maximum number of steps begun and not collected. Steps run in the order of begin(); block operations between two
  // begin() calls run between these steps.
  virtual std::uint32_t depth() const { return 1; }
  virtual void begin(const Batch& batch) = 0;
  // out[t,:] = table[tokens[t],:] widened to f32, q * s if quantised; then * scale. Tokens from num_tokens on take the
  // first row.
  virtual void embed(const Weight& table, float scale, Buffer& out, std::uint32_t num_tokens = ~0u) = 0;
  // out[t,:] = table[positions[t] + offset,:] widened to f32, q * s if quantised.
  virtual void embed_positions(const Weight& table, std::uint32_t offset, Buffer& out) = 0;
  // rms    out[t,i] = (x[t,i] * r) * s[i], r = 1 / sqrt(sum16(x²) / E + eps), IEEE sqrt and division
  // layer  m = sum16(x) / E, r = 1 / sqrt(sum16((x - m)²) / E + eps), n = (x[t,i] - m) * r;  out[t,i] = n * s[i], or
  //        fma(n, s[i], bias[i])
  // out may be x.
  virtual void norm(const Buffer& x, const Norm& norm, std::uint32_t rows, Buffer& out) = 0;
  // out[t, column + n] = dot(x[t,:], w[n,:]) + bias[n] (no addition if there is no bias).
  //   int8, fp8  out[t,n] = dot(x[t,:], q[n,:]) * s[n] + bias[n]
  //   int4       w[n,k] = q[n,k] * s[n,k/32], which is exact
  // An infinite x times a code 0 is NaN, even if the weight before quantisation was not 0.
  // w8a8 and w4a8 multiply in integers, and blocks may. Each row of x is quantised by groups g of 256 inputs, counted
  // from the first:
  //   a = max |x[t,k]|;  xs[t,g] = a / 127;  r = 127 / a;  xq[t,k] = x[t,k] * r to the nearest, ties to even
  // If r is infinite (a is 0 or tiny), xs and xq are 0; if an x is NaN or infinite, xs is NaN and xq 0. Of
  // Format::kW8A8PerRow a is that of the whole row, and xs that of all its groups.
  // Then, with sums over k exact, acc and p starting at +0, g and the groups j of 32 inputs in g ascending:
  //   w8a8  acc = fma(sum over g of xq[t,k] * q[n,k], xs[t,g], acc);  out[t,n] = acc * s[n] + bias[n]
  //   w4a8  for each g: p = fma(sum over j of xq[t,k] * q[n,k], s[n,j], p), acc = fma(p, xs[t,g], acc);
  //         out[t,n] = acc + bias[n]
  // Blocks (backend/weights/blocks.h) have w[n,k] = s v + m, s and m of a group of 16 or 32 inputs; in f32 out is a dot
  // over these. In integers x is quantised by the rules above, but in groups i of 32 inputs. Then, for all i and the
  // groups j in each ascending:
  //   acc = fma(sum over j of xq[t,k] * v[n,k] * xs[t,i], s[n,j], acc);  with minima
  //   acc = fma(sum over j of xq[t,k] * xs[t,i], m[n,j], acc);  at the end out[t,n] = acc + bias[n]
  // Sums over j are exact; their product with xs rounds.
  // w16a16 multiplies bf16 by bf16; f32 holds the product exactly. xb[t,k] = x[t,k] to the nearest bf16, ties to even;
  // xb and w are 0 beyond K. acc starts at +0; for each pair of inputs k, k + 1, k even and ascending, the odd one
  // first:
  //   acc = fma(xb[t,k+1], w[n,k+1], acc);  acc = fma(xb[t,k], w[n,k], acc);  then out[t,n] = acc + bias[n]
  // w16a16 treats subnormal inputs and results as zeros of the same sign.
  virtual void multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, Buffer& out) = 0;
  // norm's equations in place, for each group of `group` values of x[t, column .. column + width) by itself. The norm's
  // vectors have `group` values, for every group, or `width`.
  virtual void norm_columns(Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group, const Norm& norm,
                            std::uint32_t rows) = 0;
  // norm, multiply by each weight into the columns of its outputs, and what `after` says with the outputs. An override
  // may be faster, never different (tests compare bit for bit); it need not leave in `out` and `before.normed` what the
  // composition leaves there, except for q, k and v.
  virtual void linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out,
                      const Before& before = {}, const After& after = {});
  // For every row: the heads of q, k and v are normed where the spec has norms, and those of q and k rotated by halves
  // of their first r dimensions, r twice the width of the table:
  //   lo' = fma(-hi, sin, lo*cos)   hi' = fma(lo, sin, hi*cos)
  // norms_after_rope: q and k are normed then, not before. Then q = q * q_scale[position], if there is one, and, where
  // they are not 1, k = k * k_factor and v = v * v_factor.
  // K and V are then stored at the row's slot in the cache's type (KvType). int4 quantises a group of 16 positions when
  // its last row arrives; until then the group's rows are in the residual group. qkv keeps the rotated q and, for
  // attend(), k and v as before storing.
  virtual void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) = 0;
  // out[t, h·D+d] for every row and query head, p the row's position, over the stored positions j of its own sequence
  // in [max(0, p-window+1), p]. K and V are read as stored and widened to f32; int4: those of the row's own group (from
  // 16·⌊p/16⌋ on) are read as before storing, so that results do not depend on the rows that came in the same step.
  // Per span s (positions [256s, 256s+256)) in which the row attends to any:
  //   z_j = dot(q, k_j) * scale, with a softcap c then c * tanh(z_j / c), with a head's slope a then
  //   fma(a, j - p, z_j), or in bf16 fma(b, scale, z_j), b = a * bf16(j) rounded to bf16;
  //   m_s = max z_j;  e_j = exp(z_j - m_s);
  //   l_s = sum16 by j mod 16 of e_j;  o_s = fma over j ascending of e_j·v_j.
  // Spans merge in order: m = max(M, m_s); a = exp(M - m), b = exp(m_s - m);  L = fma(L, a, l_s*b);
  //   O = fma(O, a, o_s*b); M = m (the first span is taken as it is). A head's sink is merged last, as a span with
  //   m_s = its score, l_s = 1 and o_s = 0. out = O * (1/L).
  // Positions that a row does not attend to are not read for it. If a sequence requests accumulated attention scores,
  // each row, head and layer adds round(exp(z_j - M) * (1/L) * 2^32), as an integer, to every position that the row
  // attends to.
  // With a latent L, every query head reads the one row of a position as k, and its last L numbers as v; out has L
  // columns for a head.
  virtual void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) = 0;
  // out[t,f] = act(x[t,f]), f < F; gated: act(x[t,f]) * x[t,F+f].
  //   silu       g / (1 + exp(-g))
  //   gelu_tanh  g / (1 + exp(-(g * fma(c, g*g, l)))), l = 2 sqrt(2/pi), c = 0.044715 l (core/sample/exp_constants.h)
  //   relu2      max(0, g)²
  //   gelu       g times the normal distribution up to g: gelu_f32() (core/sample/math.h)
  //   relu       max(0, g)
  //   xielu      g > 0: fma(p * g, g, b * g);  else fma(expm1(min(e, g)) - g, n, b * g): by the numbers of `xielu`, and
  //              not gated
  virtual void activate(const Buffer& x, Activation kind, bool gated, std::uint32_t rows, Buffer& out,
                        const Xielu& xielu = {}) = 0;
  // x[t,:] = fma(y[t,:], scale, x[t,:]): with scale 1, x + y.
  virtual void add(Buffer& x, const Buffer& y, float scale, std::uint32_t rows) = 0;
  // x[t,i] = x[t,i] * y[t, column + i].
  virtual void multiply_by(Buffer& x, const Buffer& y, std::uint32_t column, std::uint32_t rows) = 0;
  // x[t,:] = x[t,:] * scale; with a cap other than 0, cap * tanh((x[t,:] * scale) / cap).
  virtual void rescale(Buffer& x, float scale, float cap, std::uint32_t rows) = 0;
  // x[t,i] = min(limit, max(-limit, x[t,i])); a NaN stays one.
  virtual void clip(Buffer& x, float limit, std::uint32_t rows) = 0;
  // x[t,i] = x[t,i] * factors[i].
  virtual void multiply_columns(Buffer& x, const Vector& factors, std::uint32_t rows) = 0;
  // x[t,:] = x[t,:] * r, r = sqrt(sum16(y²) / E) / sqrt(max(least, sum16(x²) / E)).
  virtual void match_length(Buffer& x, const Buffer& y, float least, std::uint32_t rows) = 0;
  // x[t,f] = max(0, x[t,f] - fma(s, c, m)), f < F = `width`; m = sum16(x[t,f]) / F, s = sqrt(sum16((x[t,f] - m)²) / F).
  virtual void cut_below(Buffer& x, std::uint32_t width, float c, std::uint32_t rows) = 0;
  // out_i[t,:] = x_i[t,:], then for j ascending fma(x_j[t,:], coefs[t, i·n + j], out_i[t,:]); n streams.
  virtual void mix(Streams x, const Buffer& coefs, std::uint32_t rows, Streams out) = 0;
  // y[t,:] = y[t,:] - x_0[t,:], then x_i[t,:] = fma(y[t,:], coefs[t,i] + 1, x_i[t,:]).
  virtual void correct(Streams x, Buffer& y, const Buffer& coefs, std::uint32_t rows) = 0;
  // out[t, column + i] = x[t,i].
  virtual void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) = 0;
  // out[t,i] = x[t, column + i], for as many columns as `out` has.
  virtual void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) = 0;
  // Chooses k experts for each row, by logits z [T, X] that are used up. Scores s_j, sums over experts by sum16:
  //   softmax      s_j = exp(z_j - max z) / sum of exp(z - max z)
  //   sigmoid      s_j = 1 / (1 + exp(-z_j))
  //   logit        s_j = z_j
  // Chosen are the k highest of c_j = s_j + bias[j], no addition without a bias; of equals the expert of lower index,
  // and a NaN is the highest of all. With groups only experts of the top_groups whose sum of the two highest c, or
  // whose highest c, is highest. The weights w_j of a row are its s_j; logit: exp(s_j - max s) / sum of exp(s - max s),
  // over the chosen ones. Then, if `normed`, w_j / max(sum of w + norm_eps, norm_least); then w_j * scale; then
  // w_j * scales[j], if there are any. Sums over a row's experts are plain, by ascending index.
  //   sparsemixer  k times: m = max z of the experts not yet chosen; chosen is the first of that z; its weight is
  //                1 / sum of exp(z - m) over those of them with (m - z) / max(|z|, m) <= margin. No vectors and no
  //                groups.
  virtual void route(Buffer& logits, const RouteRule& rule, const RouteVectors& vectors, std::uint32_t rows,
                     Routes& routes);
  // out[i,:] = the row that is the i-th by expert.
  virtual void gather_by_expert(const Buffer& x, const Routes& routes, std::uint32_t rows, Buffer& out);
  // multiply()'s equations for rows by expert, each by its own expert's weights, outputs side by side as in linear();
  // then activate() if it is asked for, or with a clamp, g and u a row's gates and ups:
  //   g = min(limit, g);  u = min(limit, max(-limit, u));  (u + 1) * (g / (1 + exp(-(alpha * g))))
  // An override may be faster, never different.
  virtual void linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows,
                                Buffer& out, const ThenActivate* then = nullptr);
  // y_i the outputs of a row's experts (rows by expert), i ascending by the expert's index: out[t,:] = y_0 * w_0, then
  // fma(y_i, w_i, out[t,:]) for the others, then fma(shared[t,:], g, out[t,:]), g = 1 / (1 + exp(-gate[t])) or 1.
  virtual void combine_experts(const Buffer& y, const Routes& routes, const SharedExpert& shared, std::uint32_t rows,
                               Buffer& out);
  // Heads as experts, of which every row has all: rows by expert are then those of head 0, those of head 1, and so on.
  virtual void route_to_all(std::uint32_t rows, Routes& routes);
  // out[i,:] = x[t, column + h·W ..], the i-th row by expert being row t of head h; W the width of `out`.
  virtual void gather_heads(const Buffer& x, std::uint32_t column, const Routes& routes, std::uint32_t rows,
                            Buffer& out);
  // out[t, column + h·stride ..] = x[i,:], likewise.
  virtual void place_heads(const Buffer& x, const Routes& routes, std::uint32_t rows, std::uint32_t column,
                           std::uint32_t stride, Buffer& out);
  // out[r,:] = x[logits_rows[r].row,:].
  virtual void gather_logits_rows(const Buffer& x, Buffer& out) = 0;
  // One sampled token per logits row from its logits [R, V] and its edits, or the score of a given token:
  // core/sample/sampler.h; for drafts with rejection sampling acceptance.h. V = `vocab`; padding columns after it are
  // never read. Of a draft's nodes only those on the accepted path are sampled (batch.h).
  virtual void choose(const Buffer& logits, std::uint32_t vocab) = 0;
  // Waits for the oldest step begun and not collected; writes its R choices.
  virtual void collect(std::span<Choice> choices) = 0;

  // Accumulated attention scores, of the step collected last, of each group of 16 positions
  // [num_accumulated_scores].
  virtual void read_accumulated_scores(std::span<std::uint64_t> out) = 0;

  // After collect(): copies rows of a buffer to host memory, f32, row-major, for pooling, drafters and tests.
  virtual void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) = 0;

  // Copies the experts of the first rows and their weights [rows, k], ascending by index in each row, for tests.
  virtual void read_routes(const Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                           std::span<float> weights);

  // Between steps: copies a drafter's rows from host memory into a buffer's first rows. `rows` may be reused on return.
  virtual void write(std::span<const float> rows, Buffer& buffer) = 0;

 protected:
  // The part of linear() after its products, by plain ops.
  void finish(Buffer& out, std::uint32_t rows, const After& after);
};

}  // namespace quire::backend
