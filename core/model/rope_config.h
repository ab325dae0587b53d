// The rope part of config.json, in both spellings: rope_theta + rope_scaling {type | rope_type, …}, or rope_parameters.
// Fails   StartError naming file and key: unknown kinds, parameters outside their range, rotation of a part of a head.
// Source  transformers 5.23 modeling_rope_utils.py: which spelling wins, and what absent keys mean.
#pragma once

#include <string>

#include "core/model/config.h"
#include "core/model/json_fields.h"

namespace quire::model {

RopeConfig read_rope(const JsonFields& config, std::uint32_t max_positions);

// The shortest decimal that reads back as the same number.
std::string shortest(double value);
std::string shortest(float value);

}  // namespace quire::model
