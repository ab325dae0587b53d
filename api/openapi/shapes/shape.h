// JSON objects as tables of their members, from which /openapi.json gets its schemas and examples.
// Shape   one Shape is one schema in #/components/schemas. Types are text: api/json/type_text.h.
// Owner   constant tables.
// Thread  any.
#pragma once

#include <span>
#include <string_view>

namespace quire::api {

inline constexpr std::string_view kComposed = "*";

struct Member {
  std::string_view name;  // with ? at its end: may be absent
  std::string_view type;
  std::string_view help;
  // JSON of a value. kComposed: made from the examples of the type's parts. Empty: the same, but an example leaves out
  // a member that may be absent.
  std::string_view example = {};
};

struct Shape {
  std::string_view name;  // the class in generated clients, which have a Response, a Client and an Unset of their own
  std::string_view help;
  std::span<const Member> shared = {};  // members that several shapes have in front
  std::span<const Member> members = {};
  std::string_view type = {};  // instead of members: the type that this name stands for
  bool closed = false;         // other members are refused
};

}  // namespace quire::api
