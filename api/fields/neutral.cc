#include "api/fields/neutral.h"

#include <string_view>

#include "api/json/json_values.h"

namespace quire::api {

using simdjson::dom::element;

bool is_never(element) { return false; }

bool is_zero(element value) { return value.is_number() && value.get_double().value_unsafe() == 0.0; }

bool is_false(element value) { return value.is_bool() && !value.get_bool().value_unsafe(); }

bool is_true(element value) { return value.is_bool() && value.get_bool().value_unsafe(); }

bool is_empty(element value) {
  if (value.is_array()) return array_of(value).size() == 0;
  return value.is_object() && object_of(value).size() == 0;
}

bool is_left(element value) {
  std::string_view side;
  return value.get_string().get(side) == simdjson::SUCCESS && side == "left";
}

bool is_medium(element value) {
  std::string_view word;
  return value.get_string().get(word) == simdjson::SUCCESS && word == "medium";
}

bool is_usual_tier(element value) {
  std::string_view word;
  return value.get_string().get(word) == simdjson::SUCCESS &&
         (word == "auto" || word == "default" || word == "standard_only");
}

}  // namespace quire::api
