// JSON Schema of a body, from its tables of fields.
// Thread  any; pure functions.
#pragma once

#include <span>
#include <string_view>

#include "api/fields/field.h"
#include "api/json/response_writer.h"
#include "api/services/services.h"

namespace quire::api {

// Writes {"type":"object",…} with the fields in `own`, then those of shared_fields() that the endpoint has and `own`
// does not. Unknown fields are allowed, as in the parser.
void write_body_schema(JsonWriter& json, Endpoint endpoint, std::span<const Field> own,
                       std::span<const std::string_view> required, const RequestLimits& limits);

}  // namespace quire::api
