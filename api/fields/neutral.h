// Predicates for the values at which an unsupported field changes nothing.
// Shape   no value is null: a null field counts as not given.
// Thread  any; pure functions.
#pragma once

#include <simdjson.h>

namespace quire::api {

bool is_never(simdjson::dom::element value);  // for a field that may only be null
bool is_zero(simdjson::dom::element value);
bool is_false(simdjson::dom::element value);
bool is_true(simdjson::dom::element value);
bool is_empty(simdjson::dom::element value);  // a list or an object
bool is_left(simdjson::dom::element value);
bool is_medium(simdjson::dom::element value);      // of verbosity
bool is_usual_tier(simdjson::dom::element value);  // the only service tier, by any of its names

}  // namespace quire::api
