// The texts of JSON as rules, from which json_schema.h builds a grammar.
// Shape   white space may stand after { [ , and before } ], and one space after a colon; nowhere else. White space is
//         nothing, one space, or a line break and up to kMaxIndent spaces: bounded, so that a small model cannot repeat
//         it for ever. Numbers have up to kMaxDigits digits before the point, as many after it, two in the exponent.
// Owner   borrows Rules while they are written. A rule that is used at many places is made once.
// Source  RFC 8259. The bounds are ours: a signed 64-bit integer holds 18 digits, and a double 10^18 * 10^99.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

inline constexpr std::uint32_t kMaxIndent = 32;
inline constexpr std::uint32_t kMaxDigits = 18;

class JsonText {
 public:
  explicit JsonText(Rules& rules) : rules_(rules) {}

  Expr any_value();
  Expr any_object();
  Expr any_array();
  Expr any_string();
  Expr any_number();
  Expr any_integer();
  Expr boolean();
  Expr null() { return rules_.bytes("null"); }
  Expr nothing() { return rules_.choice({}); }

  Expr string(std::uint32_t least, std::uint32_t most);  // code points; an escape counts as what it stands for
  Expr literal(const json::Value& value);                // this value; objects with their keys in this order
  Expr member(Expr key, Expr value);                     // key: value

  Expr gap();    // optional white space
  Expr comma();  // a comma and optional white space
  Expr optional(Expr part) { return rules_.repeat(part, 0, 1); }
  Expr sequence(std::initializer_list<Expr> parts) { return rules_.sequence({parts.begin(), parts.size()}); }
  Expr choice(std::initializer_list<Expr> parts) { return rules_.choice({parts.begin(), parts.size()}); }
  Expr repeat(Expr part, std::uint32_t least, std::uint32_t most);  // of any counts, with few states

  Rules& rules() { return rules_; }

 private:
  enum class Shared : std::uint8_t { kGap, kCharacter, kString, kNumber, kInteger, kObject, kArray, kValue, kCount };
  Expr shared(Shared which, std::string_view name, const std::function<Expr()>& body);
  Expr character();
  Expr list(char open, std::span<const Expr> items, char close);

  Rules& rules_;
  std::array<std::optional<RuleId>, static_cast<std::size_t>(Shared::kCount)> made_;
};

// The JSON string of a text, in quotes; it escapes only characters that may not stand for themselves.
std::string json_string(std::string_view text);

}  // namespace quire::grammar
