// Shape checks that every backend makes at the start of every op, in one place for all backends.
// Shape   letters as in tensors.h; `rows` is T, or R for gathered rows.
// Thread  any.
// Fails   a wrong shape is our bug: CHECK.
#pragma once

#include <cstdint>

#include "core/backend/batch.h"
#include "core/backend/experts.h"
#include "core/backend/linear.h"
#include "core/backend/tensors.h"

namespace quire::backend {

void expect(const Buffer& x, std::uint32_t rows, std::uint32_t width);  // [>= rows, width]
void expect(const Vector& v, std::uint32_t size);                       // [size]
void expect(const Weight& w, std::uint32_t n, std::uint32_t k);         // [n, k]

// The batch alone: T, contiguous sequences, ascending positions, ascending rows of logits rows; exactly the rows
// without a token are in `fed`.
void expect_batch(const Batch& batch, std::uint32_t max_rows);
void expect_embed(const Batch& batch, const Weight& table, const Buffer& out, std::uint32_t num_tokens);
void expect_embed_positions(const Batch& batch, const Weight& table, std::uint32_t offset, const Buffer& out);
void expect_norm(const Buffer& x, const Norm& norm, std::uint32_t rows, const Buffer& out);
void expect_multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, const Buffer& out);
// All of linear()'s buffers, and what its parts expect.
void expect_linear(const Batch& batch, const Buffer& x, const WeightList& weights, std::uint32_t rows,
                   const Buffer& out, const Before& before, const After& after);
void expect_rope_store(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache);
void expect_attend(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache,
                   const Buffer& out);
void expect_norm_columns(const Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group,
                         const Norm& norm, std::uint32_t rows);
void expect_activate(const Buffer& x, Activation kind, bool gated, std::uint32_t rows, const Buffer& out);
void expect_multiply_by(const Buffer& x, const Buffer& y, std::uint32_t column, std::uint32_t rows);
void expect_add(const Buffer& x, const Buffer& y, std::uint32_t rows);
void expect_multiply_columns(const Buffer& x, const Vector& factors, std::uint32_t rows);
void expect_match_length(const Buffer& x, const Buffer& y, std::uint32_t rows);
void expect_cut_below(const Buffer& x, std::uint32_t width, std::uint32_t rows);
void expect_mix(Streams x, const Buffer& coefs, std::uint32_t rows, Streams out);
void expect_correct(Streams x, const Buffer& y, const Buffer& coefs, std::uint32_t rows);
void expect_place(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out);
void expect_cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out);
void expect_route(const Buffer& logits, const RouteRule& rule, const RouteVectors& vectors, std::uint32_t rows,
                  const Routes& routes);
void expect_gather_by_expert(const Buffer& x, const Routes& routes, std::uint32_t rows, const Buffer& out);
void expect_linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows,
                             const Buffer& out, const ThenActivate* then);
void expect_combine_experts(const Buffer& y, const Routes& routes, const SharedExpert& shared, std::uint32_t rows,
                            const Buffer& out);
void expect_gather_heads(const Buffer& x, std::uint32_t column, const Routes& routes, std::uint32_t rows,
                         const Buffer& out);
void expect_place_heads(const Buffer& x, const Routes& routes, std::uint32_t rows, std::uint32_t column,
                        std::uint32_t stride, const Buffer& out);
void expect_gather(const Batch& batch, const Buffer& x, const Buffer& out);
void expect_choose(const Batch& batch, const Buffer& logits, std::uint32_t vocab);

}  // namespace quire::backend
