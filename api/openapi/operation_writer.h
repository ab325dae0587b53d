// One operation of /openapi.json, and the headers of answers, to which operations refer.
// Thread  any; a pure function that appends to JSON written front to back.
// Source  OpenAPI 3.1.0, sections 4.8.10 to 4.8.17.
#pragma once

#include "api/json/response_writer.h"
#include "api/openapi/operations.h"
#include "api/services/services.h"

namespace quire::api {

// Each writes the next value.
void write_answer_headers(JsonWriter& json);
void write_operation(JsonWriter& json, const Operation& operation, const Services& services);

}  // namespace quire::api
