// Translates regular expressions into grammar expressions: ECMA-262 as JSON Schema uses it, over Unicode characters.
// Shape   literals, escapes (\d \w \s \D \W \S \n \r \t \f \v \0 \cX \xHH \uHHHH \u{H}), classes, dot (no line end),
//         groups (named ones too), | * + ? {m} {m,} {m,n}, lazy or not, and ^ $ at the ends of branches. \d \w are
//         ASCII; \s is every white space of ECMA-262. Punctuation without a meaning stands for itself.
// Fails   kInvalidArgument (no param: the caller knows the field) with the position: a malformed pattern, constructs
//         that no grammar can express (look-around, back references, \b), unsupported ones (\p, flags), exceeded
//         limits.
// Thread  any one at a time, as its Rules.
// Source  ECMA-262 22.2 with its Annex B.1.2; ours: anchors are resolved while expressions are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/rules/code_points.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

inline constexpr std::size_t kMaxPatternBytes = 8192;
inline constexpr std::uint32_t kMaxPatternDepth = 64;      // groups within groups
inline constexpr std::uint32_t kMaxPatternCount = 10'000;  // n of {m,n}

enum class RegexUse : std::uint8_t {
  kWhole,   // the whole text is a match
  kSearch,  // a part of the text is a match, unless ^ and $ anchor it
};

// Makes the expression of one character out of `ranges`: ascending, not adjacent, at least one, no surrogates. Callers
// whose text is not plain UTF-8 (inside a JSON string, for example) bring their own.
using EmitCharacter = std::function<Expr(Rules& rules, std::span<const CodePoints> ranges)>;

// python: the pattern has Python's syntax. Dot is any character but \n, a class may begin with ], {,n} counts from 0,
// \UHHHHHHHH is a character, and (?is:...) sets flags for a group.
struct RegexFlags {
  bool python = false;
  bool ignore_case = false;  // of ASCII letters; a character beyond ASCII outside ranges is rejected
  bool dot_all = false;
  bool verbose = false;  // white space and # comments outside classes are ignored
};

Result<Expr> regex(Rules& rules, std::string_view pattern, RegexUse use, const EmitCharacter& emit = emit_utf8,
                   const RegexFlags& flags = {});

}  // namespace quire::grammar
