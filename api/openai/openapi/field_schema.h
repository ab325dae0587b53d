// A body's fields as a JSON Schema.
// Thread  any; pure functions.
#pragma once

#include <span>
#include <string_view>

#include "api/openai/fields/field.h"
#include "api/openai/response_writer.h"
#include "api/services.h"

namespace quire::api::openai {

// {"type":"object",…}: the endpoint's own fields, then those of shared_fields() that it has and `own` has not. Fields
// that no table knows are allowed, as the parser allows them.
void write_body_schema(JsonWriter& json, Endpoint endpoint, std::span<const Field> own,
                       std::span<const std::string_view> required, const RequestLimits& limits);

}  // namespace quire::api::openai
