// JSON Schemas and examples of types (api/json/type_text.h) and shapes.
// Thread  any; pure functions that append to JSON written front to back.
// Fails   CHECK: a type names no shape, or an example has no value; the tables are constant, and a test writes all.
// Source  JSON Schema 2020-12.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/json/response_writer.h"
#include "api/openapi/shapes/shape.h"

namespace quire::api {

// All shapes, by group.
std::vector<std::span<const Shape>> all_shapes();

// Writes members of a schema: `"type":"string"`, `"$ref":…`, `"anyOf":[…]`. `may_be_null` adds null.
void write_type(JsonWriter& json, std::string_view type, bool may_be_null = false);
// Writes the schema as the next value.
void write_shape(JsonWriter& json, const Shape& shape);
// Writes an example as the next value: of several alternatives, the first.
void write_example(JsonWriter& json, std::string_view type);

}  // namespace quire::api
