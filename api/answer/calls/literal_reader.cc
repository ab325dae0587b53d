#include "api/answer/calls/literal_reader.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "api/answer/parts/marker_scanner.h"
#include "core/base/json.h"

namespace quire::api::chat {
namespace {

using enum ArgumentsState;

constexpr std::size_t kMaxOpen = 64;
constexpr std::string_view kUnknownCharacter = "\xEF\xBF\xBD";  // U+FFFD

bool is_key_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80 || c == '_' || c == '-' || c == '.' || c == '$';
}

bool is_json_number(const std::string& text) {
  const Result<json::Value> value = json::parse(text, 1);
  return value && value->is_number();
}

// A number in Python's spelling as JSON has it: 1_000, +5, .5, 5.; empty: it is none.
std::string number_of(std::string_view word) {
  std::string text(word);
  std::erase(text, '_');
  if (text.starts_with('+')) text.erase(0, 1);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() > first && text[first] == '.') text.insert(first, "0");
  if (text.ends_with('.')) text += '0';
  return is_json_number(text) ? text : std::string();
}

// In front of the quotes of a Python string that is text.
bool is_string_prefix(std::string_view word) { return word == "r" || word == "R" || word == "u" || word == "U"; }

void append_word(std::string_view word, std::string& json) {
  while (!word.empty() && is_space(word.back())) word.remove_suffix(1);
  if (word == "True" || word == "true") {
    json += "true";
  } else if (word == "False" || word == "false") {
    json += "false";
  } else if (word == "None" || word == "none" || word == "null") {
    json += "null";
  } else if (const std::string number = number_of(word); !number.empty()) {
    json += number;
  } else {
    json += '"';
    append_escaped(word, json);
    json += '"';
  }
}

std::string utf8_of(unsigned long code_point) {
  const auto byte = [](unsigned long value) { return static_cast<char>(value); };
  const auto more = [&](unsigned shift) { return byte(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0 | code_point >> 6), more(0)};
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) return std::string(kUnknownCharacter);
  if (code_point < 0x10000) return {byte(0xE0 | code_point >> 12), more(6), more(0)};
  return {byte(0xF0 | code_point >> 18), more(12), more(6), more(0)};
}

}  // namespace

void append_escaped(std::string_view text, std::string& json) {
  constexpr std::string_view kControls = "\b\f\n\r\t";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (const std::size_t at = kControls.find(c); at != kControls.npos) {
      json += {'\\', "bfnrt"[at]};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      json += escaped;
    } else {
      json += c;
    }
  }
}

LiteralReader::LiteralReader(char close, char separator, std::string_view quote)
    : levels_{{'}', close, false}}, separator_(separator), mark_(quote) {}

std::string LiteralReader::json_of(std::string_view literal) {
  LiteralReader reader;
  std::string json;
  for (const char c : literal) {
    if (reader.take(c, json) != kMore) return {};
  }
  if (reader.take(']', json) != kDone || json.size() == 1) return {};
  json.pop_back();
  return json;
}

ArgumentsState LiteralReader::take(char c, std::string& json) {
  switch (state_) {
    case State::kKey:
    case State::kBareKey:
      return take_key(c, json);
    case State::kSeparator:
      return take_separator(c, json);
    case State::kValue:
    case State::kFirstItem:
      return take_value(c, json);
    case State::kMark:
      return take_mark(c, json);
    case State::kString:
      return take_string(c, json);
    case State::kEscape:
      return take_escape(c, json);
    case State::kHex:
      return take_hex(c, json);
    case State::kBare:
      return take_bare(c, json);
    case State::kAfterEmpty:
    case State::kAfterString:
      return take_after_string(c, json);
    case State::kAfter:
      return take_after(c, json);
  }
  return kFault;
}

ArgumentsState LiteralReader::take_key(char c, std::string& json) {
  if (state_ == State::kBareKey) {
    if (!is_key_char(c)) {
      state_ = State::kSeparator;
      return take_separator(c, json);
    }
    key_ += c;
    return kMore;
  }
  if (is_space(c)) return kMore;
  if (c == levels_.back().close) return close(json);
  key_.clear();
  is_key_ = true;
  if (c == '"' || c == '\'') return begin_string({&c, 1}, json);
  if (!mark_.empty() && c == mark_[0]) {
    matched_ = 1;
    state_ = State::kMark;
    return kMore;
  }
  if (!is_key_char(c)) return kFault;
  key_ += c;
  state_ = State::kBareKey;
  return kMore;
}

ArgumentsState LiteralReader::take_separator(char c, std::string& json) {
  if (is_space(c)) return kMore;
  if (c != (is_arguments() ? separator_ : ':')) return fault(key_, json);
  Level& level = levels_.back();
  if (level.has_parts) {
    json += ", ";
  } else if (is_arguments()) {
    json += '{';
  }
  level.has_parts = true;
  is_key_ = false;
  json += '"';
  append_escaped(key_, json);
  json += "\": ";
  state_ = State::kValue;
  return kMore;
}

ArgumentsState LiteralReader::take_value(char c, std::string& json) {
  if (is_space(c)) return kMore;
  Level& level = levels_.back();
  if (c == level.close) return state_ == State::kFirstItem ? close(json) : kFault;
  if (c == ',') return kFault;
  if (level.json_close == ']') {
    if (level.has_parts) json += ", ";
    level.has_parts = true;
  }
  if (c == '"' || c == '\'') return begin_string({&c, 1}, json);
  if (c == '[') return open(']', ']', json);
  if (c == '{') return open('}', '}', json);
  if (c == '(' && mark_.empty()) return open(']', ')', json);
  if (!mark_.empty() && c == mark_[0]) {
    matched_ = 1;
    state_ = State::kMark;
    return kMore;
  }
  bare_ = c;
  state_ = State::kBare;
  return kMore;
}

ArgumentsState LiteralReader::take_mark(char c, std::string& json) {
  if (c == mark_[matched_]) return ++matched_ == mark_.size() ? begin_string(mark_, json) : kMore;
  if (is_key_) return fault(std::string_view(mark_).substr(0, matched_), json);
  bare_.assign(mark_, 0, matched_);
  state_ = State::kBare;
  return take_bare(c, json);
}

ArgumentsState LiteralReader::begin_string(std::string_view quote, std::string& json) {
  if (!is_key_) json += '"';
  is_raw_ = false;
  go_on_string(quote);
  return kMore;
}

void LiteralReader::go_on_string(std::string_view quote) {
  quote_ = quote;
  matched_ = 0;
  is_empty_ = true;
  state_ = State::kString;
}

ArgumentsState LiteralReader::end_string(std::string& json) {
  if (is_key_) {
    state_ = State::kSeparator;
  } else if (quote_ == mark_) {
    json += '"';
    state_ = State::kAfter;
  } else {
    state_ = is_empty_ && quote_.size() == 1 ? State::kAfterEmpty : State::kAfterString;
  }
  return kMore;
}

ArgumentsState LiteralReader::take_string(char c, std::string& json) {
  if (c == '\\' && quote_ != mark_) {
    write(std::string_view(quote_).substr(0, std::exchange(matched_, 0)), json);
    state_ = State::kEscape;
    return kMore;
  }
  if (c != quote_[matched_]) {  // a quote mark's first byte occurs in it only once, or it is one byte three times
    write(std::string_view(quote_).substr(0, matched_), json);
    matched_ = 0;
  }
  if (c == quote_[matched_]) return ++matched_ == quote_.size() ? end_string(json) : kMore;
  is_empty_ = false;
  write({&c, 1}, json);
  return kMore;
}

ArgumentsState LiteralReader::take_escape(char c, std::string& json) {
  constexpr std::string_view kEscapes = "abfnrtv0\\'\"/";
  constexpr std::string_view kValues{"\a\b\f\n\r\t\v\0\\'\"/", 12};
  if (is_raw_) {
    is_empty_ = false;
    state_ = State::kString;
    const char both[] = {'\\', c};
    write({both, 2}, json);
    return kMore;
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    escape_ = c;
    hex_.clear();
    state_ = State::kHex;
    return kMore;
  }
  state_ = State::kString;
  is_empty_ = false;
  if (c == '\n') return kMore;
  if (const std::size_t at = kEscapes.find(c); at != kEscapes.npos) {
    write(kValues.substr(at, 1), json);
  } else {
    const char both[] = {'\\', c};
    write({both, 2}, json);
  }
  return kMore;
}

ArgumentsState LiteralReader::take_hex(char c, std::string& json) {
  if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return fault(hex_, json);
  hex_ += c;
  if (hex_.size() < (escape_ == 'x' ? 2u : escape_ == 'u' ? 4u : 8u)) return kMore;
  const unsigned long code_point = std::strtoul(hex_.c_str(), nullptr, 16);
  state_ = State::kString;
  is_empty_ = false;
  if (escape_ == 'u' && !is_key_ && code_point >= 0xD800 && code_point < 0xE000) {
    json += "\\u" + hex_;  // half of a pair, as JSON has it
    return kMore;
  }
  // The second half of a pair, behind the first.
  const bool joins = is_key_ && code_point >= 0xDC00 && code_point < 0xE000 && half_ != 0 && key_.size() == half_end_;
  if (joins) key_.resize(half_end_ - kUnknownCharacter.size());
  write(utf8_of(joins ? 0x10000 + ((half_ - 0xD800) << 10) + (code_point - 0xDC00) : code_point), json);
  half_ = code_point >= 0xD800 && code_point < 0xDC00 ? code_point : 0;
  half_end_ = key_.size();
  return kMore;
}

ArgumentsState LiteralReader::take_bare(char c, std::string& json) {
  if (c != ',' && c != levels_.back().close) {
    if (mark_.empty() && (c == '"' || c == '\'') && is_string_prefix(bare_)) {
      begin_string({&c, 1}, json);
      is_raw_ = bare_ == "r" || bare_ == "R";
      return kMore;
    }
    if (mark_.empty() && std::string_view("([{\"'").find(c) != std::string_view::npos) return fault(bare_, json);
    bare_ += c;
    return kMore;
  }
  append_word(bare_, json);
  state_ = State::kAfter;
  return take_after(c, json);
}

// Another string that follows, white space or not, is a part of the same.
ArgumentsState LiteralReader::take_after_string(char c, std::string& json) {
  const bool is_quote = mark_.empty() && (c == '"' || c == '\'');
  if (state_ == State::kAfterEmpty && is_quote && c == quote_[0]) {
    go_on_string(std::string(3, c));
    is_empty_ = false;
    return kMore;
  }
  if (is_quote) {
    is_raw_ = false;
    go_on_string({&c, 1});
    return kMore;
  }
  if (is_space(c)) {
    state_ = State::kAfterString;
    return kMore;
  }
  json += '"';
  state_ = State::kAfter;
  return take_after(c, json);
}

ArgumentsState LiteralReader::take_after(char c, std::string& json) {
  if (is_space(c)) return kMore;
  if (c == levels_.back().close) return close(json);
  if (c != ',' || (is_single_ && levels_.size() == 1)) return kFault;
  state_ = levels_.back().json_close == ']' ? State::kFirstItem : State::kKey;
  return kMore;
}

ArgumentsState LiteralReader::fault(std::string_view held, std::string& json) {
  if (levels_.front().has_parts) json += held;
  return kFault;
}

ArgumentsState LiteralReader::open(char json_close, char close, std::string& json) {
  if (levels_.size() == kMaxOpen) return kFault;
  levels_.push_back({json_close, close, false});
  json += json_close == ']' ? '[' : '{';
  state_ = json_close == ']' ? State::kFirstItem : State::kKey;
  return kMore;
}

ArgumentsState LiteralReader::close(std::string& json) {
  const Level level = levels_.back();
  if (is_arguments() && !level.has_parts) json += '{';
  levels_.pop_back();
  json += level.json_close;
  state_ = State::kAfter;
  return levels_.empty() ? kDone : kMore;
}

void LiteralReader::write(std::string_view text, std::string& json) {
  if (is_key_) {
    key_ += text;
  } else {
    append_escaped(text, json);
  }
}

}  // namespace quire::api::chat
