// Regular expressions as expressions of a grammar: ECMA-262 as JSON Schema uses it, over Unicode characters.
// Shape   literals, escapes (\d \w \s \D \W \S \n \r \t \f \v \0 \cX \xHH \uHHHH \u{H}), classes, dot (no line end),
//         groups (named ones too), | * + ? {m} {m,} {m,n}, lazy or not, and ^ $ at the ends of branches. \d \w are ASCII; \s
//         is every white space of ECMA-262. A punctuation mark that stands for nothing else stands for itself.
// Fails   kInvalidArgument (no param: the caller knows the field) saying where: what is not well formed, what no
//         grammar can follow (look-around, back references, \b), what is left out (\p, flags), and beyond the limits.
// Thread  any one at a time, as its Rules.
// Source  ECMA-262 22.2 with its Annex B.1.2; ours: anchors are resolved while expressions are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/code_points.h"
#include "core/grammar/rules.h"

namespace quire::grammar {

inline constexpr std::size_t kMaxPatternBytes = 8192;
inline constexpr std::uint32_t kMaxPatternDepth = 64;      // groups within groups
inline constexpr std::uint32_t kMaxPatternCount = 10'000;  // n of {m,n}

enum class RegexUse : std::uint8_t {
  kWhole,   // the whole text is a match
  kSearch,  // a part of it is, but for ^ and $
};

// Makes the expression of one character out of `ranges`: ascending, apart from each other, at least one, no surrogates.
// Where the text is not plain UTF-8 (inside a JSON string, say), the caller brings its own.
using EmitCharacter = std::function<Expr(Rules& rules, std::span<const CodePoints> ranges)>;

// Differences of a pattern in Python's syntax: dot is any character but \n, a class may begin with ], {,n} counts from
// 0, \UHHHHHHHH is a character, and (?is:...) sets flags for a group.
struct RegexFlags {
  bool python = false;
  bool ignore_case = false;  // of ASCII letters; others are refused beside it
  bool dot_all = false;
  bool verbose = false;  // white space and # comments outside classes count for nothing
};

Result<Expr> regex(Rules& rules, std::string_view pattern, RegexUse use, const EmitCharacter& emit = emit_utf8,
                   const RegexFlags& flags = {});

}  // namespace quire::grammar
