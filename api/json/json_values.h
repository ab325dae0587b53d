// Typed reads of single values of a request's body, with checks of type and range.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field and its type or range.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace quire::api {

// Return by value: in a range-for a view of the temporary result would dangle.
simdjson::dom::array array_of(simdjson::dom::element value);
simdjson::dom::object object_of(simdjson::dom::element value);

Result<bool> boolean_of(const std::string& name, simdjson::dom::element value);
Result<std::int64_t> integer_of(const std::string& name, simdjson::dom::element value, std::int64_t lowest,
                                std::int64_t highest);
Result<std::string> string_of(const std::string& name, simdjson::dom::element value, std::size_t max_bytes);

// `accepts` must be false for a NaN.
template <typename Accepts>
Result<double> number_of(const std::string& name, simdjson::dom::element value, const char* range, Accepts accepts) {
  double number = 0;
  if (!value.is_number() || value.get_double().get(number) != simdjson::SUCCESS || !accepts(number)) {
    return invalid(name, name + " must be a number " + range);
  }
  return number;
}

std::string echoed(std::string_view name);  // the part of an unknown field's name that errors repeat
Error unknown_field(const std::string& path);
Error parse_failure(simdjson::error_code code);

}  // namespace quire::api
