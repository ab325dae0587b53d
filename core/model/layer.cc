#include "core/model/layer.h"

#include <utility>

#include "core/base/check.h"

namespace quire::model {

using backend::HeadNorm;

QkvClip take_clip(const AttentionLayer& spec, backend::AttentionSpec& attention) {
  QkvClip clip{.limit = spec.qkv_clip};
  if (!clip || !spec.clips_normed) return clip;
  CHECK(!attention.norms_after_rope && !attention.v_norm);
  clip.q_norm = std::exchange(attention.q_norm, {});
  clip.k_norm = std::exchange(attention.k_norm, {});
  return clip;
}

void clip_qkv(backend::StepOps& ops, const QkvClip& clip, const backend::AttentionSpec& attention, std::uint32_t rows,
              backend::Buffer& qkv) {
  const auto norm = [&](const HeadNorm& heads, std::uint32_t column, std::uint32_t width) {
    if (heads) ops.norm_columns(qkv, column, width, heads.whole_row ? width : attention.head_dim, heads.norm, rows);
  };
  norm(clip.q_norm, 0, attention.q_width());
  if (attention.stores) norm(clip.k_norm, attention.q_width(), attention.kv_width());
  ops.clip(qkv, clip.limit, rows);
}

}  // namespace quire::model
