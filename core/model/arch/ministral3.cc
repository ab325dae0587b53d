// Ministral 3: Mistral with q that grows with the position.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// The settings of a config without any.
void set_default_rope(ModelSpec& spec) {
  RopeConfig rope;
  rope.kind = RopeKind::kYarn;
  rope.theta = 1e6;
  rope.factor = 16.0;
  rope.original_positions = 16384;
  rope.mscale = rope.mscale_all_dim = 1.0;
  spec.ropes = {rope};
  for (LayerSpec& layer : spec.layers) layer.attention.q_scale = PositionScale{0.1, rope.original_positions};
}

void set_given_rope(const JsonFields& fields, ModelSpec& spec) {
  set_rope(fields, {.theta = 1e6}, spec);
  set_position_scale(fields, spec);
}

}  // namespace

ModelSpec read_ministral3(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "ministral3";
  defaults.positions = 262144;
  defaults.kv_heads = 8;
  defaults.head_dim = 128;
  defaults.eps = 1e-5;
  ModelSpec spec = read_model(fields, defaults);
  auto parameters = fields.optional_object("rope_scaling");
  if (!parameters || parameters->keys().empty()) parameters = fields.optional_object("rope_parameters");
  parameters ? set_given_rope(fields, spec) : set_default_rope(spec);
  for (LayerSpec& layer : spec.layers) layer.attention.window = read_window(fields, 0);
  return spec;
}

}  // namespace quire::model
