#include "core/backend/expect.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::backend {
namespace {

std::uint32_t num_logits_rows(const Batch& batch) { return static_cast<std::uint32_t>(batch.logits_rows.size()); }

void expect_tree(const Batch& batch, const SequenceRows& sequence) {
  CHECK_LE(sequence.num_nodes, sample::TokenTree::kMaxNodes);
  CHECK_LE(std::uint64_t{sequence.first_node} + sequence.num_nodes, batch.ancestors.size());
  for (std::uint32_t i = 0; i < sequence.num_nodes; ++i) {
    const std::uint64_t ancestors = batch.ancestors[sequence.first_node + i];
    CHECK_EQ(ancestors >> i, 1u);  // itself, and no later node
    CHECK_EQ(batch.positions[sequence.first_row + sequence.num_plain() + i],
             sequence.root_position() + static_cast<std::uint32_t>(std::popcount(ancestors)));
  }
}

void expect_vectors(const Norm& norm, std::uint32_t width) {
  CHECK(norm);
  expect(*norm.scale, width);
  CHECK(norm.bias == nullptr || norm.kind == NormKind::kLayer);
  if (norm.bias != nullptr) expect(*norm.bias, width);
}

void expect_heads(const HeadNorm& heads, std::uint32_t num_heads, std::uint32_t head_dim) {
  if (!heads) return;
  const std::uint32_t size = heads.norm.scale->size();
  CHECK(heads.norm.bias == nullptr || heads.norm.bias->size() == size);
  if (heads.whole_row) return expect(*heads.norm.scale, num_heads * head_dim);
  if (size != head_dim) CHECK_LE(std::uint64_t{heads.first} + num_heads * head_dim, size);
}

void expect_attention(const Batch& batch, const AttentionSpec& spec, const KvShape& shape) {
  CHECK_GT(spec.num_kv_heads, 0u);
  CHECK_GT(spec.num_heads, 0u);
  CHECK_EQ(spec.num_heads % spec.num_kv_heads, 0u);
  CHECK_EQ(spec.head_dim % 2, 0u);
  CHECK_LT(spec.layer, shape.num_layers());
  CHECK_EQ(spec.head_dim, shape.layers[spec.layer].head_dim);
  CHECK_EQ(spec.num_kv_heads, shape.layers[spec.layer].num_kv_heads);
  CHECK_EQ(spec.latent, shape.layers[spec.layer].latent);
  if (spec.latent != 0) {
    CHECK_EQ(spec.num_kv_heads, 1u);
    CHECK_LT(spec.latent, spec.head_dim);
    CHECK(spec.stores && !spec.k_norm && !spec.v_norm && shape.type != KvType::kInt4);
  }
  CHECK_LT(shape.layers[spec.layer].group, batch.num_groups());
}

}  // namespace

void expect(const Buffer& x, std::uint32_t rows, std::uint32_t width) {
  CHECK_LE(rows, x.max_rows());
  CHECK_EQ(x.width(), width);
}

void expect(const Vector& v, std::uint32_t size) { CHECK_EQ(v.size(), size); }

void expect(const Weight& w, std::uint32_t n, std::uint32_t k) {
  CHECK_EQ(w.n(), n);
  CHECK_EQ(w.k(), k);
}

void expect_batch(const Batch& batch, std::uint32_t max_rows) {
  const std::uint32_t num_rows = batch.num_rows();
  CHECK_LE(num_rows, max_rows);
  CHECK_EQ(batch.positions.size(), num_rows);
  CHECK_EQ(batch.slots.size(), std::size_t{num_rows} * batch.num_groups());
  CHECK_EQ(batch.block_tables.size() % batch.num_groups(), 0u);
  const std::size_t num_tables = batch.block_tables.size() / batch.num_groups();
  std::uint32_t next_row = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    CHECK_EQ(sequence.first_row, next_row);
    CHECK_GT(sequence.num_rows, 0u);
    next_row += sequence.num_rows;
    CHECK_LE(next_row, num_rows);
    CHECK_GT(sequence.num_rows, sequence.num_nodes);
    CHECK_EQ(batch.positions[sequence.first_row], sequence.first_position);
    const std::uint32_t last_plain = sequence.num_plain() - 1;
    CHECK_EQ(batch.positions[sequence.first_row + last_plain], sequence.first_position + last_plain);
    CHECK_LE(std::uint64_t{sequence.first_table} + sequence.num_table, num_tables);
    expect_tree(batch, sequence);
  }
  CHECK_EQ(next_row, num_rows);
  CHECK_EQ(static_cast<std::size_t>(std::ranges::count(batch.tokens, -1)), batch.fed.size());
  for (const FedRow& fed : batch.fed) CHECK(fed.row < num_rows && batch.tokens[fed.row] == -1);
  for (std::size_t r = 0; r < batch.logits_rows.size(); ++r) {
    const LogitsRow& logits_row = batch.logits_rows[r];
    CHECK_LT(logits_row.row, num_rows);
    if (r != 0) CHECK_LE(batch.logits_rows[r - 1].row, logits_row.row);
    if (logits_row.num_nodes == 0) continue;
    CHECK(logits_row.draft != nullptr && logits_row.given < 0);
    CHECK_LE(logits_row.num_nodes, logits_row.draft->size());
    CHECK_LT(r + logits_row.num_nodes, batch.logits_rows.size());
  }
}

void expect_embed(const Batch& batch, const Weight& table, const Buffer& out, std::uint32_t num_tokens) {
  expect(out, batch.num_rows(), table.k());
  for (const TokenId token : batch.tokens) {
    CHECK_GE(token, batch.fed.empty() ? 0 : -1);
    const auto id = static_cast<std::uint32_t>(token);
    CHECK(token < 0 || id < table.n() || id >= num_tokens);
  }
}

void expect_embed_positions(const Batch& batch, const Weight& table, std::uint32_t offset, const Buffer& out) {
  expect(out, batch.num_rows(), table.k());
  for (const std::uint32_t position : batch.positions) CHECK_LT(std::uint64_t{position} + offset, table.n());
}

void expect_norm(const Buffer& x, const Norm& norm, std::uint32_t rows, const Buffer& out) {
  expect_vectors(norm, x.width());
  expect(x, rows, x.width());
  expect(out, rows, x.width());
}

void expect_norm_columns(const Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group,
                         const Norm& norm, std::uint32_t rows) {
  CHECK_LE(rows, x.max_rows());
  CHECK_LE(std::uint64_t{column} + width, x.width());
  CHECK_GT(group, 0u);
  CHECK_EQ(width % group, 0u);
  CHECK(norm);
  expect_vectors(norm, norm.scale->size() == group ? group : width);
}

void expect_multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, const Buffer& out) {
  CHECK(&x != &out);
  expect(x, rows, w.k());
  CHECK_LE(rows, out.max_rows());
  CHECK_LE(std::uint64_t{column} + w.n(), out.width());
}

void expect_linear(const Batch& batch, const Buffer& x, const WeightList& weights, std::uint32_t rows,
                   const Buffer& out, const Before& before, const After& after) {
  if (before.norm) expect_norm(x, before.norm, rows, *before.normed);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    expect_multiply(before.norm ? *before.normed : x, weights[i], rows, 0, out);
  }
  expect(out, rows, weights.n());
  if (const auto* then = std::get_if<ThenRopeStore>(&after)) {
    CHECK_EQ(rows, batch.num_rows());
    expect_rope_store(batch, *then->attention, out, *then->cache);
  }
  if (const auto* then = std::get_if<ThenActivate>(&after)) {
    CHECK(!then->clamp);
    expect_activate(out, then->kind, then->gated, rows, *then->out);
  }
  if (const auto* then = std::get_if<ThenAdd>(&after)) {
    if (then->norm) expect_norm(out, then->norm, rows, out);
    expect_add(*then->x, out, rows);
  }
  if (const auto* then = std::get_if<ThenChoose>(&after)) {
    CHECK_EQ(rows, num_logits_rows(batch));
    expect_choose(batch, out, then->vocab);
  }
}

void expect_rope_store(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache) {
  const KvShape& shape = cache.shape();
  expect_attention(batch, spec, shape);
  expect(qkv, batch.num_rows(), spec.qkv_width());
  expect_heads(spec.q_norm, spec.num_heads, spec.head_dim);
  expect_heads(spec.k_norm, spec.num_kv_heads, spec.head_dim);
  expect_heads(spec.v_norm, spec.num_kv_heads, spec.head_dim);
  if (spec.norms_after_rope) {
    for (const HeadNorm* heads : {&spec.q_norm, &spec.k_norm}) {
      CHECK(heads->norm.kind == NormKind::kRms && !heads->whole_row);
      CHECK(heads->norm.scale != nullptr && heads->norm.scale->size() == spec.head_dim);
    }
  }
  const std::uint32_t turned = spec.rope == nullptr ? ~0u : spec.rope->positions();
  const std::uint32_t scaled = spec.q_scale == nullptr ? ~0u : spec.q_scale->size();
  const std::uint32_t positions = std::min(turned, scaled);
  for (const std::uint32_t position : batch.positions) CHECK_LT(position, positions);
  CHECK(spec.stores || shape.type != KvType::kInt4);
  CHECK(spec.latent == 0 || (spec.k_factor == 1.0f && spec.v_factor == 1.0f));
  for (const std::uint32_t slot : batch.slots) CHECK_LT(slot / shape.block_tokens, shape.num_blocks);
  if (shape.type != KvType::kInt4) return;
  for (const SequenceRows& sequence : batch.sequences) {
    CHECK_LT(sequence.residual_group, shape.num_residual_groups);
    CHECK_EQ(sequence.num_nodes, 0u);
  }
}

void expect_attend(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache,
                   const Buffer& out) {
  const KvShape& shape = cache.shape();
  expect_attention(batch, spec, shape);
  expect(qkv, batch.num_rows(), spec.qkv_width());
  expect(out, batch.num_rows(), spec.out_width());
  if (spec.sinks) CHECK_LE(std::uint64_t{spec.sinks.first} + spec.num_heads, spec.sinks.scores->size());
  if (spec.bias) CHECK_LE(std::uint64_t{spec.bias.first} + spec.num_heads, spec.bias.slopes->size());
  for (const SequenceRows& sequence : batch.sequences) {
    const std::uint32_t last = sequence.first_position + (sequence.num_rows - 1);
    CHECK_LT(last / shape.block_tokens, sequence.num_table);
    if (sequence.num_accumulated_scores != 0) {
      CHECK_EQ(sequence.num_accumulated_scores, last / kGroupTokens + 1);
      CHECK_LE(std::uint64_t{sequence.first_accumulated_score} + sequence.num_accumulated_scores,
               batch.num_accumulated_scores);
    }
    if (sequence.num_kept == 0) continue;
    CHECK_LE(std::uint64_t{sequence.first_kept} + sequence.num_kept, batch.kept_groups.size());
    CHECK_EQ(sequence.first_position / kSpanTokens, sequence.num_kept);
    CHECK_EQ(last / kSpanTokens, sequence.num_kept);
    CHECK_EQ(batch.kept_groups[sequence.first_kept] & 1u, 1u);
  }
}

void expect_activate(const Buffer& x, Activation kind, bool gated, std::uint32_t rows, const Buffer& out) {
  CHECK(kind != Activation::kXielu || !gated);
  CHECK(&x != &out);
  expect(x, rows, (gated ? 2 : 1) * out.width());
  expect(out, rows, out.width());
}

void expect_multiply_by(const Buffer& x, const Buffer& y, std::uint32_t column, std::uint32_t rows) {
  CHECK(&x != &y);
  CHECK_LE(rows, x.max_rows());
  CHECK_LE(rows, y.max_rows());
  CHECK_LE(std::uint64_t{column} + x.width(), y.width());
}

void expect_multiply_columns(const Buffer& x, const Vector& factors, std::uint32_t rows) {
  CHECK_LE(rows, x.max_rows());
  expect(factors, x.width());
}

void expect_match_length(const Buffer& x, const Buffer& y, std::uint32_t rows) {
  CHECK(&x != &y);
  expect(x, rows, y.width());
  expect(y, rows, x.width());
}

void expect_cut_below(const Buffer& x, std::uint32_t width, std::uint32_t rows) {
  CHECK_LE(rows, x.max_rows());
  CHECK(width > 0 && width <= x.width());
}

void expect_mix(Streams x, const Buffer& coefs, std::uint32_t rows, Streams out) {
  CHECK(!x.empty() && x.size() <= kMaxStreams);
  CHECK_EQ(out.size(), x.size());
  expect(coefs, rows, static_cast<std::uint32_t>(x.size() * x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect(*x[i], rows, x.front()->width());
    expect(*out[i], rows, x.front()->width());
    CHECK(std::ranges::find(x, out[i]) == x.end());
  }
}

void expect_correct(Streams x, const Buffer& y, const Buffer& coefs, std::uint32_t rows) {
  CHECK(!x.empty() && x.size() <= kMaxStreams);
  expect(coefs, rows, static_cast<std::uint32_t>(x.size()));
  expect(y, rows, x.front()->width());
  for (const Buffer* stream : x) {
    expect(*stream, rows, y.width());
    CHECK(stream != &y);
  }
}

void expect_add(const Buffer& x, const Buffer& y, std::uint32_t rows) {
  expect(x, rows, y.width());
  expect(y, rows, x.width());
}

void expect_place(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out) {
  CHECK(&x != &out);
  expect(x, rows, x.width());
  CHECK_LE(rows, out.max_rows());
  CHECK_LE(std::uint64_t{column} + x.width(), out.width());
}

void expect_cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out) {
  expect_place(out, rows, column, x);
}

void expect_route(const Buffer& logits, const RouteRule& rule, const RouteVectors& vectors, std::uint32_t rows,
                  const Routes& routes) {
  expect(logits, rows, rule.num_experts);
  for (const Vector* vector : {vectors.bias, vectors.scales}) {
    if (vector != nullptr) expect(*vector, rule.num_experts);
  }
  CHECK_LE(rows, routes.max_rows());
  CHECK_EQ(routes.num_experts(), rule.num_experts);
  CHECK_EQ(routes.top_k(), rule.top_k);
  CHECK(rule.top_k > 0 && rule.top_groups > 0 && rule.num_groups > 0);
  CHECK_LE(rule.top_groups, rule.num_groups);
  CHECK_EQ(rule.num_experts % rule.num_groups, 0u);
  CHECK_LE(rule.top_k, rule.num_experts / rule.num_groups * rule.top_groups);
  const bool is_plain = vectors.bias == nullptr && vectors.scales == nullptr && rule.num_groups == 1;
  CHECK(rule.score != RouteScore::kSparsemixer || is_plain);
}

void expect_gather_heads(const Buffer& x, std::uint32_t column, const Routes& routes, std::uint32_t rows,
                         const Buffer& out) {
  CHECK(&x != &out);
  CHECK_LE(rows, routes.max_rows());
  CHECK_LE(rows, x.max_rows());
  CHECK_LE(std::uint64_t{column} + std::uint64_t{routes.num_experts()} * out.width(), x.width());
  expect(out, rows * routes.top_k(), out.width());
}
void expect_place_heads(const Buffer& x, const Routes& routes, std::uint32_t rows, std::uint32_t column,
                        std::uint32_t stride, const Buffer& out) {
  CHECK(&x != &out);
  CHECK_LE(rows, routes.max_rows());
  CHECK_LE(rows, out.max_rows());
  CHECK_LE(x.width(), stride);
  CHECK_LE(std::uint64_t{column} + std::uint64_t{routes.num_experts() - 1} * stride + x.width(), out.width());
  expect(x, rows * routes.top_k(), x.width());
}
void expect_gather_by_expert(const Buffer& x, const Routes& routes, std::uint32_t rows, const Buffer& out) {
  CHECK(&x != &out);
  CHECK_LE(rows, routes.max_rows());
  expect(x, rows, out.width());
  expect(out, rows * routes.top_k(), x.width());
}

void expect_linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows,
                             const Buffer& out, const ThenActivate* then) {
  CHECK_LE(rows, routes.max_rows());
  CHECK_EQ(weights.size(), routes.num_experts());
  const std::uint32_t all = rows * routes.top_k();
  for (const WeightList& list : weights) {
    CHECK_EQ(list.size(), weights.front().size());
    for (std::size_t i = 0; i < list.size(); ++i) expect_multiply(x, list[i], all, 0, out);
    expect(out, all, list.n());
  }
  if (then == nullptr) return;
  CHECK(!then->clamp || then->gated);
  expect_activate(out, then->kind, then->gated, all, *then->out);
}

void expect_combine_experts(const Buffer& y, const Routes& routes, const SharedExpert& shared, std::uint32_t rows,
                            const Buffer& out) {
  CHECK(&y != &out && shared.rows != &out);
  CHECK_LE(rows, routes.max_rows());
  expect(y, rows * routes.top_k(), out.width());
  expect(out, rows, y.width());
  if (shared.rows != nullptr) expect(*shared.rows, rows, out.width());
  if (shared.gate != nullptr) expect(*shared.gate, rows, 1);
}

void expect_gather(const Batch& batch, const Buffer& x, const Buffer& out) {
  CHECK(&x != &out);
  expect(x, batch.num_rows(), out.width());
  expect(out, num_logits_rows(batch), x.width());
}

void expect_choose(const Batch& batch, const Buffer& logits, std::uint32_t vocab) {
  CHECK_LE(num_logits_rows(batch), logits.max_rows());
  CHECK_GT(vocab, 0u);
  CHECK_LE(vocab, logits.width());
  for (const LogitsRow& logits_row : batch.logits_rows)
    CHECK_LT(static_cast<std::int64_t>(logits_row.given), std::int64_t{vocab});
}

}  // namespace quire::backend
