// Every keyword of JSON Schema that this knows, and what becomes of it: the one table that the reader, the documentation and
// its tests are made from. What is not in it is refused.
// Thread  any.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quire::grammar {

enum class KeywordUse : std::uint8_t {
  kEnforced,    // the text obeys it
  kPartly,      // where `note` says so; refused elsewhere
  kAnnotation,  // says nothing about which values are valid
  kRefused,
};

enum class KeywordHolds : std::uint8_t { kNoSchema, kSchema, kSchemas, kNamedSchemas };  // what its value is made of

struct Keyword {
  std::string_view name;
  KeywordUse use = KeywordUse::kEnforced;
  KeywordHolds holds = KeywordHolds::kNoSchema;
  std::string_view note;  // what is supported; of a refused one: what to do instead
};

std::span<const Keyword> keywords();
const Keyword* find_keyword(std::string_view name);  // null: unknown. Names that begin with x- are annotations.

}  // namespace quire::grammar
