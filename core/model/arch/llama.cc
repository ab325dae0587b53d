// Llama: norms before attention and MLP, RoPE by halves, a gated silu.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_llama(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "llama", .positions = 2048, .kv_heads_of_heads = true});
  set_rope(fields, {}, spec);
  set_biases(fields, spec);
  return spec;
}

}  // namespace quire::model
