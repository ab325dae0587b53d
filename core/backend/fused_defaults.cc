// The meaning of every fused op: the composition of plain ones.
#include "core/backend/ops.h"

namespace quire::backend {

void Ops::norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv, KvCache& cache) {
  norm(x, *layer.input_norm, layer.norm_eps, num_rows_, scratch);
  linear(scratch, *layer.qkv, num_rows_, qkv);
  rope_store(layer.attention, qkv, cache);
}

void Ops::norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) {
  norm(x, *layer.post_norm, layer.norm_eps, num_rows_, scratch);
  linear(scratch, *layer.gate_up, num_rows_, gate_up);
  act_mul(gate_up, out);
}

void Ops::project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) {
  linear(y, w, num_rows_, scratch);
  add(x, scratch);
}

void Ops::project_choose(const Buffer& x, const Weight& head, std::uint32_t vocab, Buffer& logits) {
  linear(x, head, num_logits_rows_, logits);
  choose(logits, vocab);
}

}  // namespace quire::backend
