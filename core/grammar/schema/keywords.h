// The table of all known keywords of JSON Schema and their treatment: the reader, the documentation and its tests are
// made from it. A keyword that is not in it is rejected.
// Thread  any.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quire::grammar {

enum class KeywordUse : std::uint8_t {
  kEnforced,    // every text obeys it
  kPartly,      // enforced in the cases that `note` names; rejected in others
  kAnnotation,  // does not restrict the valid values
  kRefused,
};

enum class KeywordHolds : std::uint8_t { kNoSchema, kSchema, kSchemas, kNamedSchemas };  // the schemas in its value

struct Keyword {
  std::string_view name;
  KeywordUse use = KeywordUse::kEnforced;
  KeywordHolds holds = KeywordHolds::kNoSchema;
  std::string_view note;  // the supported cases; of a kRefused one: the alternative
};

std::span<const Keyword> keywords();
const Keyword* find_keyword(std::string_view name);  // null: unknown. Names that begin with x- are annotations.

}  // namespace quire::grammar
