#include "api/json/json_values.h"

#include <cmath>

namespace quire::api {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMaxEchoedName = 64;         // bytes
constexpr double kMostExact = 9007199254740992.0;  // 2^53: a double holds every integer up to here

}  // namespace

simdjson::dom::array array_of(element value) { return value.get_array().value_unsafe(); }
simdjson::dom::object object_of(element value) { return value.get_object().value_unsafe(); }

Result<bool> boolean_of(const std::string& name, element value) {
  if (!value.is_bool()) return invalid(name, name + " must be true or false");
  return value.get_bool().value_unsafe();
}

Result<std::int64_t> integer_of(const std::string& name, element value, std::int64_t lowest, std::int64_t highest) {
  const std::string message =
      name + " must be an integer from " + std::to_string(lowest) + " to " + std::to_string(highest);
  std::int64_t number = 0;
  double real = 0.0;
  if (value.is_double() && value.get_double().get(real) == simdjson::SUCCESS && std::abs(real) <= kMostExact &&
      real == std::floor(real)) {
    number = static_cast<std::int64_t>(real);                       // such as 2.0
  } else if (value.type() != simdjson::dom::element_type::INT64) {  // a UINT64 is above every `highest`
    return invalid(name, message);
  } else {
    number = value.get_int64().value_unsafe();
  }
  if (!(number >= lowest && number <= highest)) return invalid(name, message);
  return number;
}

Result<std::string> string_of(const std::string& name, element value, std::size_t max_bytes) {
  if (!value.is_string()) return invalid(name, name + " must be a string");
  const std::string_view text = value.get_string().value_unsafe();
  if (text.size() > max_bytes) {
    return invalid(name, name + " may have at most " + std::to_string(max_bytes) + " bytes");
  }
  return std::string(text);
}

std::string echoed(std::string_view name) { return std::string(name.substr(0, kMaxEchoedName)); }

Error unknown_field(const std::string& path) { return invalid(path, path + " is an unknown field: leave it out"); }

Error parse_failure(simdjson::error_code code) {
  switch (code) {
    case simdjson::EMPTY:
      return invalid("", "the body is empty: send a JSON object");
    case simdjson::DEPTH_ERROR:
      return invalid("", "the body is nested too deeply");
    case simdjson::NUMBER_ERROR:
      return invalid("", "the body has a number that is malformed or out of range");
    case simdjson::UTF8_ERROR:
      return invalid("", "the body is not valid UTF-8");
    default:
      return invalid("", "the body is not valid JSON");
  }
}

}  // namespace quire::api
