// The RoPE part of config.json, in both spellings: rope_theta + rope_scaling {type | rope_type, …}, or rope_parameters.
// Fails   StartError naming file and key: unknown kinds, parameters outside their range, and what a family does not
//         have: rotation of a part of a head, longrope.
// Source  transformers 5.24 modeling_rope_utils.py: precedence of the spellings, and defaults of absent keys.
#pragma once

#include <string>

#include "core/model/rope/rope_spec.h"
#include "core/model/source/json_fields.h"

namespace quire::model {

// A family's RoPE: the theta of a config without one, the part of a head that turns, and what it may have.
struct RopeDefaults {
  double theta = 10000.0;
  RopeKind kind = RopeKind::kDefault;  // kDefault, or kProportional, which it may have then, too
  double rotary_fraction = 1.0;
  bool partial = false;                  // partial_rotary_factor may differ from 1
  bool longrope = false;                 // also under its old names "su" and "yarn"
  bool sections = false;                 // kind "mrope", mrope_section: nothing special where all positions are of text
  std::uint32_t original_positions = 0;  // longrope: without original_max_position_embeddings
};

RopeConfig read_rope(const JsonFields& config, std::uint32_t max_positions, const RopeDefaults& defaults = {});
// As read_rope(), with the parameters in an object of their own.
RopeConfig read_rope_parameters(const JsonFields& config, const JsonFields& parameters, std::uint32_t max_positions,
                                const RopeDefaults& defaults = {});

// The shortest decimal that reads back as the same number.
std::string shortest(double value);
std::string shortest(float value);

}  // namespace quire::model
