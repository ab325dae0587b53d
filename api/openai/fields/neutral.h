// Values at which a field that is not supported changes nothing.
// Thread  any; pure functions. A null never comes here.
#pragma once

#include <simdjson.h>

namespace quire::api::openai {

bool is_never(simdjson::dom::element value);  // null alone
bool is_zero(simdjson::dom::element value);
bool is_false(simdjson::dom::element value);
bool is_true(simdjson::dom::element value);
bool is_empty(simdjson::dom::element value);  // a list or an object
bool is_left(simdjson::dom::element value);
bool is_medium(simdjson::dom::element value);      // how much is said
bool is_usual_tier(simdjson::dom::element value);  // the one that there is, by any of its names

}  // namespace quire::api::openai
