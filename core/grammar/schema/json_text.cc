#include "core/grammar/schema/json_text.h"

#include <charconv>
#include <cstdio>
#include <vector>

namespace quire::grammar {
namespace {

constexpr std::uint32_t kBlock = 256;  // long repetitions are made of blocks of so many parts

ByteSet bytes_between(unsigned char first, unsigned char last) {
  ByteSet set;
  for (unsigned byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

ByteSet any_of(std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.set(static_cast<unsigned char>(c));
  return set;
}

ByteSet digits() { return any_of("0123456789"); }

}  // namespace

Expr JsonText::shared(Shared which, std::string_view name, const std::function<Expr()>& body) {
  std::optional<RuleId>& made = made_[static_cast<std::size_t>(which)];
  if (!made) {
    made = rules_.declare(std::string(name));  // before its body, which may use it
    const RuleId rule = *made;
    rules_.define(rule, body());
  }
  return rules_.use(*made);
}

Expr JsonText::gap() {
  return shared(Shared::kGap, "white space", [this] {
    const Expr indent = rules_.repeat(rules_.bytes(" "), 0, kMaxIndent);
    return choice({rules_.bytes(""), rules_.bytes(" "), sequence({rules_.bytes("\n"), indent})});
  });
}

Expr JsonText::comma() { return sequence({rules_.bytes(","), gap()}); }

Expr JsonText::member(Expr key, Expr value) {
  return sequence({key, rules_.bytes(":"), optional(rules_.bytes(" ")), value});
}

Expr JsonText::character() {
  return shared(Shared::kCharacter, "character", [this] {
    const Expr hex = rules_.byte_set(any_of("0123456789abcdefABCDEF"));
    const Expr d = rules_.byte_set(any_of("dD"));
    const Expr high = sequence({d, rules_.byte_set(any_of("89abAB")), hex, hex});
    const Expr low = sequence({d, rules_.byte_set(any_of("cdefCDEF")), hex, hex});
    const Expr pair = sequence({high, rules_.bytes("\\u"), low});
    const Expr other = choice({sequence({rules_.byte_set(any_of("0123456789abcefABCEF")), hex, hex, hex}),
                               sequence({d, rules_.byte_set(any_of("01234567")), hex, hex})});
    const Expr escaped =
        choice({rules_.byte_set(any_of("\"\\/bfnrt")), sequence({rules_.bytes("u"), choice({other, pair})})});
    const ByteSet plain = bytes_between(0x20, 0x7F) & ~any_of("\"\\");
    return choice(
        {rules_.byte_set(plain), rules_.code_points(0x80, 0x10FFFF), sequence({rules_.bytes("\\"), escaped})});
  });
}

Expr JsonText::any_string() {
  return shared(Shared::kString, "string", [this] { return string(0, kUnbounded); });
}

Expr JsonText::string(std::uint32_t least, std::uint32_t most) {
  return sequence({rules_.bytes("\""), repeat(character(), least, most), rules_.bytes("\"")});
}

Expr JsonText::boolean() { return choice({rules_.bytes("true"), rules_.bytes("false")}); }

Expr JsonText::any_integer() {
  return shared(Shared::kInteger, "integer", [this] {
    const Expr first = rules_.byte_set(any_of("123456789"));
    const Expr rest = rules_.repeat(rules_.byte_set(digits()), 0, kMaxDigits - 1);
    return choice({rules_.bytes("0"), sequence({optional(rules_.bytes("-")), first, rest})});
  });
}

Expr JsonText::any_number() {
  return shared(Shared::kNumber, "number", [this] {
    const Expr digit = rules_.byte_set(digits());
    const Expr first = rules_.byte_set(any_of("123456789"));
    const Expr whole = choice({rules_.bytes("0"), sequence({first, rules_.repeat(digit, 0, kMaxDigits - 1)})});
    const Expr part = sequence({rules_.bytes("."), rules_.repeat(digit, 1, kMaxDigits)});
    const Expr exponent =
        sequence({rules_.byte_set(any_of("eE")), optional(rules_.byte_set(any_of("+-"))), rules_.repeat(digit, 1, 2)});
    return sequence({optional(rules_.bytes("-")), whole, optional(part), optional(exponent)});
  });
}

Expr JsonText::any_object() {
  return shared(Shared::kObject, "object", [this] {
    const Expr one = member(any_string(), any_value());
    const Expr more = rules_.repeat(sequence({comma(), one}), 0, kUnbounded);
    return sequence({rules_.bytes("{"), optional(sequence({gap(), one, more, gap()})), rules_.bytes("}")});
  });
}

Expr JsonText::any_array() {
  return shared(Shared::kArray, "array", [this] {
    const Expr more = rules_.repeat(sequence({comma(), any_value()}), 0, kUnbounded);
    return sequence({rules_.bytes("["), optional(sequence({gap(), any_value(), more, gap()})), rules_.bytes("]")});
  });
}

Expr JsonText::any_value() {
  return shared(Shared::kValue, "value", [this] {
    return choice({any_object(), any_array(), any_string(), any_number(), boolean(), null()});
  });
}

Expr JsonText::list(char open, std::span<const Expr> items, char close) {
  if (items.empty()) return rules_.bytes(std::string{open, close});
  std::vector<Expr> parts{rules_.bytes({&open, 1}), gap(), items[0]};
  for (const Expr item : items.subspan(1)) {
    parts.push_back(comma());
    parts.push_back(item);
  }
  parts.push_back(gap());
  parts.push_back(rules_.bytes({&close, 1}));
  return rules_.sequence(parts);
}

Expr JsonText::literal(const json::Value& value) {
  std::vector<Expr> items;
  switch (value.kind()) {
    case json::Kind::kNull:
      return null();
    case json::Kind::kBool:
      return rules_.bytes(value.get_bool() ? "true" : "false");
    case json::Kind::kString:
      return rules_.bytes(json_string(std::string_view(value.get_string())));
    case json::Kind::kArray:
      for (const auto& item : value.get_array()) items.push_back(literal(item));
      return list('[', items, ']');
    case json::Kind::kObject:
      for (const auto& item : value.get_object()) {
        items.push_back(member(rules_.bytes(json_string(std::string_view(item.name))), literal(item.value)));
      }
      return list('{', items, '}');
    default:
      return rules_.bytes(json::number_text(value));
  }
}

// A chain of `most` states would be correct, but too large: a schema may have maxLength 65536 a hundred times.
Expr JsonText::repeat(Expr part, std::uint32_t least, std::uint32_t most) {
  if (most != kUnbounded ? most <= 2 * kBlock : least <= 2 * kBlock) return rules_.repeat(part, least, most);
  const RuleId block = rules_.declare("block");
  rules_.define(block, rules_.repeat(part, kBlock, kBlock));
  const Expr blocks = rules_.repeat(rules_.use(block), least / kBlock, least / kBlock);
  const Expr rest = rules_.repeat(part, least % kBlock, least % kBlock);
  if (most == kUnbounded) return sequence({blocks, rest, rules_.repeat(part, 0, kUnbounded)});
  const std::uint32_t more = most - least;
  if (more <= 2 * kBlock) return sequence({blocks, rest, rules_.repeat(part, 0, more)});
  // With q = more / 256 and r = more % 256: i < q blocks and j <= 256 + r parts make every number from 0 to 256 q + r.
  const Expr more_blocks = rules_.repeat(rules_.use(block), 0, more / kBlock - 1);
  return sequence({blocks, rest, more_blocks, rules_.repeat(part, 0, kBlock + more % kBlock)});
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) {
          out += c;
        } else {
          char escape[8];
          std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
          out += escape;
        }
    }
  }
  return out + "\"";
}

}  // namespace quire::grammar
