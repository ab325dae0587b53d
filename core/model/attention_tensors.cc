#include "core/model/attention_tensors.h"

#include <algorithm>
#include <utility>

namespace quire::model {

TensorPart weight_part(const std::string& name, std::vector<std::uint64_t> shape) {
  return {.name = name + ".weight", .shape = std::move(shape)};
}

void reorder_pairs(const ModelSpec& spec, const AttentionLayer& attention, TensorPart& rows) {
  rows.head_rows = attention.rope_head_dim();
  rows.turned = spec.ropes[attention.rope].rotary_dims(attention.rope_head_dim());
}

void copy_kv_heads(const AttentionLayer& attention, TensorPart& rows) {
  rows.copies = attention.kv_copies;
  if (rows.copies > 1) rows.head_rows = attention.head_dim;
}

std::vector<TensorPart> AttentionTensors::first() const { return attention().latent ? latent() : qkv(); }

std::vector<TensorPart> AttentionTensors::second_query() const {
  return latent_query(spec_.names.q_high, attention().latent->query_rank);
}

// A transposed part of the matrix that takes latents to K and V of all heads, unless the tensor has it so.
TensorPart AttentionTensors::key(std::uint32_t head) const {
  if (!spec_.names.k_high.empty()) return of_head(spec_.names.k_high, head, attention().latent->rank);
  TensorPart part = high(head);
  part.transposed = true;
  part.first_input = std::exchange(part.first_row, 0);
  part.num_inputs = attention().latent->nope_dim;
  return part;
}

TensorPart AttentionTensors::value(std::uint32_t head) const {
  if (!spec_.names.v_high.empty()) return of_head(spec_.names.v_high, head, attention().latent->value_dim);
  TensorPart part = high(head);
  part.first_row += attention().latent->nope_dim;
  part.rows = attention().latent->value_dim;
  return part;
}

TensorPart AttentionTensors::of_head(const std::string& name, std::uint32_t head, std::uint64_t rows) const {
  const LatentSpec& latent = *attention().latent;
  TensorPart one =
      part(name, {attention().num_heads, rows, name == spec_.names.k_high ? latent.nope_dim : latent.rank});
  one.matrix = head;
  return one;
}

// From the head's first row on.
TensorPart AttentionTensors::high(std::uint32_t head) const {
  const LatentSpec& latent = *attention().latent;
  const std::uint64_t rows = std::uint64_t{latent.nope_dim} + latent.value_dim;
  TensorPart whole = part(spec_.names.kv_high, {attention().num_heads * rows, latent.rank});
  whole.first_row = head * rows;
  return whole;
}

TensorPart AttentionTensors::part(const std::string& name, std::vector<std::uint64_t> shape) const {
  return weight_part(name_in_layer(spec_.names, layer_, name), std::move(shape));
}

void AttentionTensors::turn_pairs(TensorPart& rows) const {
  if (attention().interleaved && attention().rope != AttentionLayer::kNoRope) reorder_pairs(spec_, attention(), rows);
}

// Columns of heads that meet the latent, then those that turn.
std::vector<TensorPart> AttentionTensors::latent_query(const std::string& name, std::uint64_t inputs) const {
  const LatentSpec& latent = *attention().latent;
  const std::uint64_t stride = latent.nope_dim + latent.rope_dim;
  TensorPart nope = part(name, {attention().num_heads * stride, inputs});
  TensorPart rope = nope;
  nope.rows = std::uint64_t{attention().num_heads} * latent.nope_dim;
  nope.run = latent.nope_dim;
  rope.first_row = latent.nope_dim;
  rope.rows = std::uint64_t{attention().num_heads} * latent.rope_dim;
  rope.run = latent.rope_dim;
  nope.stride = rope.stride = stride;
  turn_pairs(rope);
  return {nope, rope};
}

std::vector<TensorPart> AttentionTensors::latent() const {
  const TensorNames& names = spec_.names;
  const LatentSpec& latent = *attention().latent;
  std::vector<TensorPart> parts;
  if (latent.query_rank != 0) {
    parts.push_back(part(names.q_low, {latent.query_rank, spec_.hidden}));
  } else {
    parts = latent_query(names.q, spec_.hidden);
  }
  TensorPart kv = part(names.kv_low, {attention().head_dim, spec_.hidden});
  TensorPart rope = kv;
  kv.rows = rope.first_row = latent.rank;
  rope.rows = latent.rope_dim;
  turn_pairs(rope);
  parts.insert(parts.end(), {rope, kv});
  return parts;
}

std::vector<TensorPart> AttentionTensors::qkv() const {
  const TensorNames& names = spec_.names;
  const std::uint64_t q = attention().q_width();
  const std::uint64_t kv = attention().kv_width() / attention().kv_copies;
  std::vector<TensorPart> parts;
  if (!names.qkv.empty() && names.qkv_by_kv_head) {
    parts = qkv_by_kv_head(q, kv);
  } else if (!names.qkv.empty()) {
    for (const auto& [first, rows] : {std::pair{std::uint64_t{0}, q}, std::pair{q, kv}, std::pair{q + kv, kv}}) {
      parts.push_back(part(names.qkv, {q + 2 * kv, spec_.hidden}));
      parts.back().first_row = first;
      parts.back().rows = rows;
    }
  } else {
    parts.push_back(part(names.q, {q, spec_.hidden}));
    if (!attention().kv_source) {
      parts.push_back(part(names.k, {kv, spec_.hidden}));
      parts.push_back(part(attention().v_is_k ? names.k : names.v, {kv, spec_.hidden}));
    }
  }
  for (std::size_t i = 1; i < parts.size(); ++i) copy_kv_heads(attention(), parts[i]);
  for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 2); ++i) turn_pairs(parts[i]);
  return parts;
}

std::vector<TensorPart> AttentionTensors::qkv_by_kv_head(std::uint64_t q, std::uint64_t kv) const {
  const TensorNames& names = spec_.names;
  const std::uint64_t num_kv = kv / attention().head_dim;
  const std::uint64_t queries = q / num_kv;
  const std::uint64_t stride = queries + 2 * std::uint64_t{attention().head_dim};
  std::vector<TensorPart> parts;
  std::uint64_t first = 0;
  for (const std::uint64_t run : {queries, std::uint64_t{attention().head_dim}, std::uint64_t{attention().head_dim}}) {
    TensorPart& rows = parts.emplace_back(part(names.qkv, {q + 2 * kv, spec_.hidden}));
    rows.first_row = first;
    rows.rows = run * num_kv;
    rows.run = run;
    rows.stride = stride;
    first += run;
  }
  return parts;
}

}  // namespace quire::model
