// The texts of JSON as rules: what json_schema.h puts together.
// Shape   white space stands behind { [ , and before } ], nowhere else but for a space behind a colon. Each is nothing,
//         one space, or a line break and no more than kMaxIndent spaces: a small model cannot go on with it for ever.
//         Numbers have at most kMaxDigits digits before the point, as many behind it and two in the exponent.
// Owner   holds Rules& while they are written. Rules that are used at many places are made once.
// Source  RFC 8259. The bounds are ours: a signed 64-bit integer holds 18 digits, and a double 10^18 * 10^99.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/grammar/rules.h"

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

  Expr gap();    // white space where it may be
  Expr comma();  // and the white space behind it
  Expr optional(Expr part) { return rules_.repeat(part, 0, 1); }
  Expr sequence(std::initializer_list<Expr> parts) { return rules_.sequence({parts.begin(), parts.size()}); }
  Expr choice(std::initializer_list<Expr> parts) { return rules_.choice({parts.begin(), parts.size()}); }
  Expr repeat(Expr part, std::uint32_t least, std::uint32_t most);  // of any size, from few states

  Rules& rules() { return rules_; }

 private:
  enum class Shared : std::uint8_t { kGap, kCharacter, kString, kNumber, kInteger, kObject, kArray, kValue, kCount };
  Expr shared(Shared which, std::string_view name, const std::function<Expr()>& body);
  Expr character();
  Expr list(char open, std::span<const Expr> items, char close);

  Rules& rules_;
  std::array<std::optional<RuleId>, static_cast<std::size_t>(Shared::kCount)> made_;
};

// A string as it is quoted in JSON: the characters themselves wherever they may stand.
std::string json_string(std::string_view text);

// A number as it is written in JSON; values are never infinite there.

}  // namespace quire::grammar
