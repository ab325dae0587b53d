#include "core/chat/printing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/chat/template_error.h"
#include "core/text/unicode/unicode.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

std::string float_text(double number, const char* nan, const char* infinity) {
  if (std::isnan(number)) return nan;
  if (std::isinf(number)) return (number < 0 ? "-" : "") + std::string(infinity);
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific).ptr;
  const std::string shortest(buffer.data(), end);
  const std::size_t e = shortest.find('e');
  const int exponent = std::stoi(shortest.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return shortest;
  std::string digits = shortest.substr(0, e), sign;
  if (digits[0] == '-') sign = "-", digits.erase(0, 1);
  std::erase(digits, '.');
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.substr(whole);
  return sign + digits.substr(0, whole) + "." + (fraction.empty() ? "0" : fraction);
}

void append_hex(std::string& out, const char* prefix, int width, char32_t code) {
  std::array<char, 16> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%s%0*x", prefix, width, static_cast<unsigned>(code));
  out += buffer.data();
}

bool is_printable(char32_t code) {
  using text::Category;
  constexpr text::CategorySet kHidden = text::set_of(Category::kCc) | text::set_of(Category::kCf) |
                                        text::set_of(Category::kCs) | text::set_of(Category::kCo) |
                                        text::set_of(Category::kCn) | text::set_of(Category::kZl) |
                                        text::set_of(Category::kZp) | text::set_of(Category::kZs);
  return code == ' ' || (text::set_of(text::category_of(code)) & kHidden) == 0;
}

void append_quoted(std::string& out, const std::string& text) {
  const bool doubled = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char32_t quote = doubled ? '"' : '\'';
  out += static_cast<char>(quote);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = text::next_code_point(text, at);
    if (code == quote || code == '\\') {
      out += '\\', out += static_cast<char>(code);
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(code)) {
      text::append_utf8(out, code);
    } else if (code < 0x100) {
      append_hex(out, "\\x", 2, code);
    } else {
      append_hex(out, code < 0x10000 ? "\\u" : "\\U", code < 0x10000 ? 4 : 8, code);
    }
  }
  out += static_cast<char>(quote);
}

// Python's repr, written into one text that is counted as it grows.
class Repr {
 public:
  explicit Repr(Budget& budget) : budget_(budget) {}

  void write(const Value& given) {
    budget_.grown(out);
    const Value& value = spoken(given);
    if (value.is_undefined()) {
      out += "Undefined";
    } else if (value.is_none()) {
      out += "None";
    } else if (const bool* flag = value.as<bool>()) {
      out += *flag ? "True" : "False";
    } else if (const auto* whole = value.as<std::int64_t>()) {
      out += std::to_string(*whole);
    } else if (const double* number = value.as<double>()) {
      out += float_text(*number, "nan", "inf");
    } else if (const std::string* text = value.as_text()) {
      if (value.is_safe()) out += "Markup(";
      append_quoted(out, *text);
      if (value.is_safe()) out += ')';
    } else if (const auto* sequence = value.as<Sequence>()) {
      write_sequence(*sequence);
    } else if (const Dict* dict = value.as_dict()) {
      write_dict(*dict);
    } else {
      fail(std::string("printing a ") + value.type_name() + " is not supported");
    }
  }

  std::string out;

 private:
  void write_sequence(const Sequence& sequence) {
    const Values& values = sequence.items->values;
    switch (sequence.kind) {
      case SequenceKind::kList:
        return write_items("[", values, "]");
      case SequenceKind::kTuple:
        return write_items("(", values, values.size() == 1 ? ",)" : ")");
      case SequenceKind::kKeys:
        return write_items("dict_keys([", values, "])");
      case SequenceKind::kValues:
        return write_items("dict_values([", values, "])");
      case SequenceKind::kItems:
        return write_items("dict_items([", values, "])");
      case SequenceKind::kRange:
        break;
    }
    fail("printing a range is not supported");
  }

  void write_items(const char* begin, const Values& values, const char* end) {
    out += begin;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ", ";
      write(values[i]);
    }
    out += end;
  }

  void write_dict(const Dict& dict) {
    out += '{';
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out += ", ";
      write(dict.entries[i].first);
      out += ": ";
      write(dict.entries[i].second);
    }
    out += '}';
  }

  Budget& budget_;
};

void append_json_text(std::string& out, const std::string& text, bool ensure_ascii) {
  static constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = text::next_code_point(text, at);
    const std::size_t special = code < 0x80 ? kSpecial.find(static_cast<char>(code)) : std::string_view::npos;
    if (special != std::string_view::npos) {
      out += '\\', out += kLetters[special];
    } else if (code < 0x20 || (ensure_ascii && code >= 0x7F && code < 0x10000)) {
      append_hex(out, "\\u", 4, code);
    } else if (ensure_ascii && code >= 0x10000) {
      append_hex(out, "\\u", 4, 0xD800 + ((code - 0x10000) >> 10));
      append_hex(out, "\\u", 4, 0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      text::append_utf8(out, code);
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonLayout& layout, Budget& budget) : layout_(layout), budget_(budget) {}

  void write(const Value& value, int level) {
    budget_.grown(out);
    if (const Dict* dict = value.as_dict()) return write_dict(*dict, level);
    if (const std::string* text = value.as_text()) return append_json_text(out, *text, layout_.ensure_ascii);
    if (const auto* sequence = value.as<Sequence>();
        sequence != nullptr && (sequence->kind == SequenceKind::kList || sequence->kind == SequenceKind::kTuple)) {
      return write_list(sequence->items->values, level);
    }
    out += scalar(value);
  }

  std::string out;

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* flag = value.as<bool>()) return *flag ? "true" : "false";
    if (const auto* whole = value.as<std::int64_t>()) return std::to_string(*whole);
    if (const double* number = value.as<double>()) return float_text(*number, "NaN", "Infinity");
    fail(std::string("Object of type ") + value.type_name() + " is not JSON serializable");
  }

  void line(int level) {
    if (!layout_.indent) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += *layout_.indent;
  }

  void write_list(const Values& values, int level) {
    if (values.empty()) return void(out += "[]");
    out += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += layout_.item_separator;
      line(level + 1);
      write(values[i], level + 1);
    }
    line(level);
    out += ']';
  }

  void write_dict(const Dict& dict, int level) {
    if (dict.entries.empty()) return void(out += "{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (layout_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return less(a->first, b->first); });
    }
    out += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out += layout_.item_separator;
      line(level + 1);
      const std::string* key = entries[i]->first.as_text();
      append_json_text(out, key != nullptr ? *key : scalar(entries[i]->first), layout_.ensure_ascii);
      out += layout_.key_separator;
      write(entries[i]->second, level + 1);
    }
    line(level);
    out += '}';
  }

  const JsonLayout& layout_;
  Budget& budget_;
};

}  // namespace

std::string str(const Value& given, Budget& budget) {
  const Value& value = spoken(given);
  if (const std::string* text = value.as_text()) return *text;
  return value.is_undefined() ? "" : repr(value, budget);
}

std::string repr(const Value& value, Budget& budget) {
  Repr whole(budget);
  whole.write(value);
  budget.grown(whole.out);
  return std::move(whole.out);
}

std::string to_json(const Value& value, const JsonLayout& layout, Budget& budget) {
  JsonWriter writer(layout, budget);
  writer.write(value, 0);
  budget.grown(writer.out);
  return std::move(writer.out);
}

}  // namespace quire::chat
