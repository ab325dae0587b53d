#include "core/cpu/rope_store.h"

#include "core/base/check.h"
#include "core/cpu/share_out.h"

namespace quire::cpu {

void rope_store(const Kernels& kernels, Team& team, const backend::Batch& batch, const backend::AttentionSpec& spec,
                HostBuffer& qkv, PagedCache& cache) {
  const auto& rope = static_cast<const HostRope&>(*spec.rope);
  const auto* q_norm = static_cast<const HostVector*>(spec.q_norm);
  const auto* k_norm = static_cast<const HostVector*>(spec.k_norm);
  const std::uint32_t size = spec.head_dim;
  const std::uint32_t block_tokens = cache.shape().block_tokens;
  CHECK_EQ(2 * rope.half(), size);

  for_rows(team, batch.num_rows(), 4 * spec.qkv_width() * sizeof(float), [&](std::uint32_t row) {
    const std::uint32_t position = batch.positions[row];
    const auto turn = [&](float* head, const HostVector* scale) {
      if (scale != nullptr) kernels.norm(head, scale->data(), spec.norm_eps, size, head);
      kernels.rotate(head, rope.cosines(position), rope.sines(position), rope.half());
    };
    float* q = qkv.row(row);
    float* k = q + spec.q_width();
    const float* v = k + spec.kv_width();
    for (std::uint32_t h = 0; h < spec.num_heads; ++h) turn(q + h * size, q_norm);
    const BlockId block{batch.slots[row] / block_tokens};
    const std::uint32_t offset = batch.slots[row] % block_tokens;
    for (std::uint32_t h = 0; h < spec.num_kv_heads; ++h) {
      turn(k + h * size, k_norm);
      std::byte* group = cache.group(spec.layer, block, h, offset);
      cache.codec().store(group, offset % kLanes, k + h * size, v + h * size);
    }
  });
}

}  // namespace quire::cpu
