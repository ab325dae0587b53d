#include "core/model/latent.h"

namespace quire::model {

using backend::Buffer;

LatentAttention make_latent(const Weights& weights, const AttentionLayer& attention, std::uint32_t layer) {
  LatentAttention latent{*attention.latent};
  const auto norm = [&](Role role) {
    return backend::Norm{weights.vector(role, layer), latent.spec.norm_eps, backend::NormKind::kRms};
  };
  if (latent.spec.query_rank != 0) {
    latent.query = weights.list(Role::kLatentQuery, layer);
    latent.query_norm = norm(Role::kLatentQueryNorm);
  }
  latent.norm = norm(Role::kLatentNorm);
  for (std::uint32_t head = 0; head < attention.num_heads; ++head) {
    latent.keys.push_back(weights.list(Role::kLatentKey, layer, head));
    latent.values.push_back(weights.list(Role::kLatentValue, layer, head));
  }
  return latent;
}

LatentBuffers::LatentBuffers(backend::Factory& factory, const AttentionLayer& attention, std::uint32_t max_rows) {
  const LatentSpec& spec = *attention.latent;
  const std::uint32_t heads = attention.num_heads;
  const auto of_rows = [&](std::uint32_t width) { return factory.make_buffer(max_rows, width); };
  const auto of_heads = [&](std::uint32_t width) { return factory.make_buffer(max_rows * heads, width); };
  heads_ = factory.make_routes(max_rows, heads, heads);
  if (spec.query_rank != 0) {
    low_ = of_rows(spec.query_rank);
    query_ = of_rows(heads * (spec.nope_dim + spec.rope_dim));
  }
  kv_ = of_rows(attention.head_dim);
  qkv_ = of_rows((heads + 1) * attention.head_dim);
  attended_ = of_rows(heads * spec.rank);
  nope_ = of_heads(spec.nope_dim);
  rope_ = of_heads(spec.rope_dim);
  latent_ = of_heads(spec.rank);
  value_ = of_heads(spec.value_dim);
  values_ = of_rows(heads * spec.value_dim);
}

const Buffer& attend_latent(backend::Ops& ops, const LatentAttention& latent, const backend::AttentionSpec& attention,
                            const Buffer& product, std::uint32_t rows, backend::KvCache& cache,
                            const LatentBuffers& buffers) {
  const LatentSpec& spec = latent.spec;
  const std::uint32_t row_width = attention.head_dim;  // of a query, and of the cache's rows
  const backend::Routes& heads = *buffers.heads_;
  Buffer& qkv = *buffers.qkv_;
  ops.route_to_all(rows, *buffers.heads_);

  ops.cut(product, rows, product.width() - row_width, *buffers.kv_);
  ops.norm_columns(*buffers.kv_, spec.rope_dim, spec.rank, spec.rank, latent.norm, rows);
  ops.place(*buffers.kv_, rows, attention.q_width(), qkv);

  const Buffer* query = &product;
  if (spec.query_rank != 0) {
    ops.cut(product, rows, 0, *buffers.low_);
    ops.norm(*buffers.low_, latent.query_norm, rows, *buffers.low_);
    ops.linear(*buffers.low_, latent.query, rows, *buffers.query_);
    query = buffers.query_.get();
  }
  ops.gather_heads(*query, 0, heads, rows, *buffers.nope_);
  ops.gather_heads(*query, attention.num_heads * spec.nope_dim, heads, rows, *buffers.rope_);
  ops.linear_by_expert(*buffers.nope_, latent.keys, heads, rows, *buffers.latent_);
  ops.place_heads(*buffers.rope_, heads, rows, 0, row_width, qkv);
  ops.place_heads(*buffers.latent_, heads, rows, spec.rope_dim, row_width, qkv);

  ops.rope_store(attention, qkv, cache);
  ops.attend(attention, qkv, cache, *buffers.attended_);
  ops.gather_heads(*buffers.attended_, 0, heads, rows, *buffers.latent_);
  ops.linear_by_expert(*buffers.latent_, latent.values, heads, rows, *buffers.value_);
  ops.place_heads(*buffers.value_, heads, rows, 0, spec.value_dim, *buffers.values_);
  return *buffers.values_;
}

}  // namespace quire::model
