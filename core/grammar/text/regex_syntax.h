// The syntax tree of a regular expression, before it becomes an expression of a grammar.
// Shape   items by number; a group's branches are rows of items; item 0 is the whole pattern, a group.
// Fails   parse_regex(): see regex.h.
// Owner   values. Thread  any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/grammar/rules/code_points.h"
#include "core/grammar/text/regex.h"

namespace quire::grammar {

struct RegexItem {
  enum class Kind : std::uint8_t { kSet, kStart, kEnd, kGroup, kRepeat };
  Kind kind = Kind::kGroup;
  bool anchored = false;                               // contains a ^ or $
  std::size_t at = 0;                                  // position of its first character in the pattern, from 1
  CodePointSet set{};                                  // kSet; may be empty
  std::vector<std::vector<std::uint32_t>> branches{};  // kGroup
  std::uint32_t part = 0;                              // kRepeat
  std::uint32_t least = 0, most = 0;                   // kRepeat; kUnbounded
};

Result<std::vector<RegexItem>> parse_regex(std::string_view pattern, const RegexFlags& flags);

Error regex_error(std::size_t at, const std::string& what);

}  // namespace quire::grammar
