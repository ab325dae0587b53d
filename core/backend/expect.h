// Shape checks that every backend makes at the start of every op: one place that says what fits together.
// Shape   letters as in tensors.h; `rows` is T, or R for gathered rows.
// Thread  any.
// Fails   a wrong shape is our bug: CHECK.
#pragma once

#include <cstdint>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/backend/tensors.h"

namespace quire::backend {

void expect(const Buffer& x, std::uint32_t rows, std::uint32_t width);  // [>= rows, width]
void expect(const Vector& v, std::uint32_t size);                       // [size]
void expect(const Weight& w, std::uint32_t n, std::uint32_t k);         // [n, k]

// A batch in itself: T, contiguous sequences, ascending positions, logits rows' rows ascending; rows without a token
// are fed.
void expect_batch(const Batch& batch, std::uint32_t max_rows);
void expect_embed(const Batch& batch, const Weight& table, const Buffer& out);
void expect_norm(const Buffer& x, const Vector& scale, std::uint32_t rows, const Buffer& out);
void expect_linear(const Buffer& x, const Weight& w, std::uint32_t rows, const Buffer& out);
void expect_rope_store(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache);
void expect_attend(const Batch& batch, const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache,
                   const Buffer& out);
void expect_act_mul(const Buffer& gate_up, std::uint32_t rows, const Buffer& out);
void expect_add(const Buffer& x, const Buffer& y, std::uint32_t rows);
void expect_place(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out);
void expect_cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, const Buffer& out);
void expect_gather(const Batch& batch, const Buffer& x, const Buffer& out);
void expect_choose(const Batch& batch, const Buffer& logits, std::uint32_t vocab);

}  // namespace quire::backend
