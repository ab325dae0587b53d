// A tool as the parser of calls sees it: its name, and the JSON types that each of its parameters may have. Formats
// that write parameters one by one do not quote strings, so that only the type tells "5" from 5.
// Owner   values.
// Thread  any.
// Fails   never: what a schema does not say may be any type.
// Source  JSON Schema 2020-12; $ref, allOf, anyOf and oneOf are followed to a depth of 16, in 10,000 schemas and values
//         at most.
#pragma once

#include <cctype>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/base/json.h"

namespace quire::api::chat {

enum ValueType : std::uint8_t {
  kTextType = 1,
  kNumberType = 2,
  kBoolType = 4,
  kNullType = 8,
  kArrayType = 16,
  kObjectType = 32,
  kAnyType = 63,
};

struct CallableTool {
  std::string name;
  std::map<std::string, std::uint8_t, std::less<>> types;  // by parameter, a set of ValueTypes
  std::uint8_t other_types = kAnyType;                     // of parameters that the schema does not name

  std::uint8_t types_of(std::string_view parameter) const {
    const auto found = types.find(parameter);
    return found == types.end() ? other_types : found->second;
  }
};

// `parameters`: a JSON Schema as text; empty: none.
CallableTool callable_tool(std::string name, std::string_view parameters = {});

ValueType type_of(const json::Value& value);

// A byte of a tool's name.
inline bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

}  // namespace quire::api::chat
