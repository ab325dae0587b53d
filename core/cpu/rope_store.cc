#include "core/cpu/rope_store.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/cpu/team/share_out.h"

namespace quire::cpu {

using backend::AttentionSpec;
using backend::Batch;
using backend::SequenceRows;

namespace {

void store_groups(const Batch& batch, const SequenceRows& sequence, const AttentionSpec& spec, const HostBuffer& qkv,
                  PagedCache& cache);

}  // namespace

RopeStore::RopeStore(const Kernels& kernels, const Batch& batch, const AttentionSpec& spec, HostBuffer& qkv,
                     PagedCache& cache)
    : kernels_(kernels),
      batch_(batch),
      spec_(spec),
      qkv_(qkv),
      cache_(cache),
      rope_(static_cast<const HostRope*>(spec.rope)) {
  if (rope_ != nullptr) CHECK_LE(2 * rope_->half(), spec.head_dim);
}

void RopeStore::norm_rows(std::uint32_t row) const {
  float* q = qkv_.row(row);
  const auto norm_row = [&](float* heads, const backend::HeadNorm& norm, std::uint32_t width) {
    if (norm && norm.whole_row) norm_values(kernels_, norm.norm, heads, heads, 0, width);
  };
  norm_row(q, spec_.q_norm, spec_.q_width());
  if (!spec_.stores) return;
  norm_row(q + spec_.q_width(), spec_.k_norm, spec_.kv_width());
  norm_row(q + spec_.q_width() + spec_.kv_width(), spec_.v_norm, spec_.kv_width());
}

void RopeStore::rotate_queries(std::uint32_t row, Range heads) const {
  const std::uint32_t position = batch_.positions[row];
  float* q = qkv_.row(row);
  for (std::uint32_t h = heads.first; h < heads.last; ++h) {
    float* head = q + h * spec_.head_dim;
    turn(head, h, spec_.q_norm, position);
    if (spec_.q_scale == nullptr) continue;
    kernels_.rescale(head, static_cast<const HostVector&>(*spec_.q_scale).data()[position], 0.0f, spec_.head_dim);
  }
}

void RopeStore::store_keys(std::uint32_t row, Range heads) const {
  const std::uint32_t size = spec_.head_dim;
  const std::uint32_t block_tokens = cache_.shape().block_tokens;
  float* k = qkv_.row(row) + spec_.q_width();
  float* v = k + spec_.kv_width();
  const BlockId block{batch_.slots[row] / block_tokens};
  const std::uint32_t offset = batch_.slots[row] % block_tokens;
  for (std::uint32_t h = heads.first; h < heads.last; ++h) {
    turn(k + h * size, h, spec_.k_norm, batch_.positions[row]);
    if (spec_.latent == 0) norm_head(v + h * size, h, spec_.v_norm);
    if (spec_.k_factor != 1.0f) kernels_.rescale(k + h * size, spec_.k_factor, 0.0f, size);
    if (spec_.v_factor != 1.0f) kernels_.rescale(v + h * size, spec_.v_factor, 0.0f, size);
    if (!stores_rows()) continue;
    std::byte* group = cache_.group(spec_.layer, block, h, offset);
    cache_.codec(spec_.layer).store(group, offset % kLanes, k + h * size, v + h * size);
  }
}

void RopeStore::turn(float* head, std::uint32_t index, const backend::HeadNorm& norm, std::uint32_t position) const {
  if (!spec_.norms_after_rope) norm_head(head, index, norm);
  rotate(head, position);
  if (spec_.norms_after_rope) norm_head(head, index, norm);
}

void RopeStore::norm_head(float* head, std::uint32_t index, const backend::HeadNorm& norm) const {
  if (!norm || norm.whole_row) return;
  const bool shared = norm.norm.scale->size() == spec_.head_dim;
  norm_values(kernels_, norm.norm, head, head, shared ? 0 : norm.first + index * spec_.head_dim, spec_.head_dim);
}

void RopeStore::rotate(float* head, std::uint32_t position) const {
  if (rope_ != nullptr) kernels_.rotate(head, rope_->cosines(position), rope_->sines(position), rope_->half());
}

void rope_store(const Kernels& kernels, Team& team, const Batch& batch, const AttentionSpec& spec, HostBuffer& qkv,
                PagedCache& cache) {
  const RopeStore rows(kernels, batch, spec, qkv, cache);
  for_rows(team, batch.num_rows(), 4 * spec.qkv_width() * sizeof(float), [&](std::uint32_t row) {
    rows.norm_rows(row);
    rows.rotate_queries(row, {0, spec.num_heads});
    if (spec.stores) rows.store_keys(row, {0, spec.num_kv_heads});
  });
  if (rows.stores_rows()) return;
  const auto num_sequences = static_cast<std::uint32_t>(batch.sequences.size());
  for_rows(team, num_sequences, batch.num_rows() / num_sequences * 4 * spec.kv_width() * sizeof(float),
           [&](std::uint32_t s) { store_groups(batch, batch.sequences[s], spec, qkv, cache); });
}

namespace {

// int4: stores the sequence's groups that are complete now into their blocks, and the rows of the last, unfinished one
// into the residual group. attend() needs the first group as this step found it: it is copied first, because the last
// one may take its place.
void store_groups(const Batch& batch, const SequenceRows& sequence, const AttentionSpec& spec, const HostBuffer& qkv,
                  PagedCache& cache) {
  const std::uint32_t size = spec.head_dim;
  const std::uint32_t block_tokens = cache.shape().block_tokens;
  const std::uint32_t begin = sequence.first_position;
  const std::uint32_t end = begin + sequence.num_rows;
  for (std::uint32_t head = 0; head < spec.num_kv_heads; ++head) {
    const auto open_row = [&](std::uint32_t lane) {
      return cache.open_row(sequence.residual_group, spec.layer, head, lane);
    };
    const auto found_row = [&](std::uint32_t lane) {
      return cache.found_row(sequence.residual_group, spec.layer, head, lane);
    };
    const auto k_of = [&](std::uint32_t position) {
      return qkv.row(sequence.first_row + (position - begin)) + spec.q_width() + head * size;
    };
    for (std::uint32_t lane = 0; lane < begin % kLanes; ++lane) std::copy_n(open_row(lane), 2 * size, found_row(lane));

    for (std::uint32_t start = begin / kLanes * kLanes; start < end; start += kLanes) {
      if (start + kLanes > end) {
        for (std::uint32_t position = std::max(start, begin); position < end; ++position) {
          std::copy_n(k_of(position), size, open_row(position % kLanes));
          std::copy_n(k_of(position) + spec.kv_width(), size, open_row(position % kLanes) + size);
        }
        break;
      }
      const float* k[kLanes];
      const float* v[kLanes];
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const bool is_earlier = start + lane < begin;
        k[lane] = is_earlier ? found_row(lane) : k_of(start + lane);
        v[lane] = k[lane] + (is_earlier ? size : spec.kv_width());
      }
      const BlockId block{batch.slots[sequence.first_row + (std::max(start, begin) - begin)] / block_tokens};
      cache.codec(spec.layer).store_all(cache.group(spec.layer, block, head, start % block_tokens), k, v);
    }
  }
}

}  // namespace
}  // namespace quire::cpu
