#include "api/answer/calls/tagged_reader.h"

#include <utility>

#include "api/answer/calls/literal_reader.h"
#include "api/answer/parts/marker_scanner.h"
#include "core/base/json.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxValueDepth = 64;

std::string as_json_string(std::string_view text) {
  std::string json = "\"";
  append_escaped(text, json);
  return json + '"';
}

// The JSON of a parameter's text, by the types that the parameter may have.
std::string json_of_value(std::string_view text, std::uint8_t types) {
  const std::string_view value = trimmed(text);
  const Result<json::Value> parsed = json::parse(value, kMaxValueDepth);
  const bool is_json = parsed && !parsed->is_string();
  if (is_json && (types & type_of(*parsed)) != 0) return std::string(value);
  const bool may_be_python = value == "True" || value == "False" || value == "None" || value.starts_with('[') ||
                             value.starts_with('{') || value.starts_with('(');
  if (may_be_python && !is_json) {
    std::string json = LiteralReader::json_of(value);
    const Result<json::Value> read = json::parse(json, kMaxValueDepth);
    if (read && (types & type_of(*read)) != 0) return json;
  }
  if (parsed && parsed->is_string() && (types & kTextType) == 0) return std::string(value);
  return is_json && (types & kTextType) == 0 ? std::string(value) : as_json_string(text);
}

}  // namespace

TaggedReader::TaggedReader(const CallSyntax& syntax, const CallableTool& tool)
    : syntax_(syntax),
      tool_(tool),
      key_begin_(trimmed(syntax.parameter.key_begin)),
      key_end_(trimmed(syntax.parameter.key_end)),
      value_end_(trimmed(syntax.parameter.end)),
      call_end_(trimmed(syntax.close.empty() ? syntax.end : syntax.close)),
      on_lines_(syntax.parameter.key_end.ends_with('\n') && syntax.parameter.string_begin.empty()) {}

ArgumentsState TaggedReader::take(char c, std::string& json) {
  switch (state_) {
    case State::kBetween:
      return take_between(c, json);
    case State::kKey:
      text_ += c;
      if (text_.ends_with(key_end_)) {
        text_.resize(text_.size() - key_end_.size());
        begin_key(std::exchange(text_, {}), json);
      }
      return ArgumentsState::kMore;
    case State::kValueBegin:
      text_ += c;
      if (c == syntax_.parameter.string_begin.back()) begin_value(json);
      return ArgumentsState::kMore;
    case State::kValue:
      take_value(c, json);
      return ArgumentsState::kMore;
  }
  return ArgumentsState::kFault;
}

// Between parameters: another one begins, the call ends, or its section does.
ArgumentsState TaggedReader::take_between(char c, std::string& json) {
  if (text_.empty() && is_space(c)) return ArgumentsState::kMore;
  text_ += c;
  const std::string_view close_mark = trimmed(syntax_.close);
  const std::string_view end_mark = trimmed(syntax_.end);
  if (text_ == key_begin_) {
    text_.clear();
    state_ = State::kKey;
  } else if (text_ == close_mark) {
    return close(ArgumentsState::kDone, json);
  } else if (text_ == end_mark) {
    return close(ArgumentsState::kSectionDone, json);
  } else if (!key_begin_.starts_with(text_) && !close_mark.starts_with(text_) && !end_mark.starts_with(text_)) {
    if (!has_begun_) return ArgumentsState::kFault;
    text_.clear();  // no mark
    if (c == key_begin_[0] || c == end_mark[0]) text_ = c;
  }
  return ArgumentsState::kMore;
}

ArgumentsState TaggedReader::close(ArgumentsState state, std::string& json) {
  json += has_begun_ ? "}" : "{}";
  return state;
}

void TaggedReader::finish(std::string& json) {
  if (state_ == State::kValue && mark_.starts_with(call_end_)) end_value(json);
  if (state_ == State::kBetween) json += has_begun_ ? "}" : "{}";
}

void TaggedReader::begin_key(std::string_view key, std::string& json) {
  key_ = trimmed(key);
  types_ = tool_.types_of(key_);
  state_ = State::kValueBegin;
  if (syntax_.parameter.string_begin.empty()) begin_value(json);
}

void TaggedReader::begin_value(std::string& json) {
  // A mark of its own for strings tells the type, whatever the schema says.
  const std::string held = std::exchange(text_, {});
  const std::string_view mark = trimmed(held);
  const ParameterSyntax& parameter = syntax_.parameter;
  if (parameter.string_begin != parameter.other_begin) {
    if (mark == trimmed(parameter.string_begin)) types_ = kTextType;
    if (mark == trimmed(parameter.other_begin) && (types_ & ~kTextType) != 0) types_ &= ~kTextType;
  }
  is_dropped_ = !keys_.insert(key_).second;
  mark_.clear();
  is_at_begin_ = true;
  is_blank_ = true;
  holds_break_ = false;
  json_value_.reset();
  state_ = State::kValue;
  if (is_dropped_) return;
  json += std::exchange(has_begun_, true) ? ", " : "{";
  json += as_json_string(key_) + ": ";
  if (types_ == kTextType) json += '"';
}

void TaggedReader::take_value(char c, std::string& json) {
  const bool in_string = json_value_ && json_value_->in_string();
  if (is_blank_ && !is_space(c)) {
    is_blank_ = false;
    if (types_ != kTextType && (c == '[' || c == '{')) json_value_.emplace();
  }
  if (json_value_ && !json_value_->push(c)) json_value_.reset();
  if (in_string) return add(c, json);
  mark_ += c;
  // Behind what may have been the end of the call, only the value's own end tells that it was not.
  if (mark_.starts_with(call_end_)) {
    if (!mark_.ends_with(value_end_)) return;
    mark_.resize(mark_.size() - value_end_.size());
    for (const char held : std::exchange(mark_, {})) add(held, json);
    return end_value(json);
  }
  if (mark_ == value_end_) return end_value(json);
  if (const std::optional<std::string_view> key = next_key()) {
    const std::string next(*key);
    end_value(json);
    return begin_key(next, json);
  }
  std::size_t first = 0;
  while (!may_be_mark(std::string_view(mark_).substr(first))) add(mark_[first++], json);
  mark_.erase(0, first);
}

// The name in the mark that begins another parameter; nothing if mark_ is none, or the tool has no such parameter or
// has got it.
std::optional<std::string_view> TaggedReader::next_key() const {
  const std::string_view mark = mark_;
  if (!mark.starts_with(key_begin_) || !mark.ends_with(key_end_)) return std::nullopt;
  const std::string_view key = mark.substr(key_begin_.size(), mark.size() - key_begin_.size() - key_end_.size());
  if (!tool_.types.contains(key) || keys_.contains(key)) return std::nullopt;
  return key;
}

bool TaggedReader::may_be_mark(std::string_view text) const {
  if (value_end_.starts_with(text) || call_end_.starts_with(text) || key_begin_.starts_with(text)) return true;
  if (!text.starts_with(key_begin_)) return false;
  const std::string_view rest = text.substr(key_begin_.size());
  const std::size_t end = rest.find(key_end_.front());
  if (end != rest.npos) return key_end_.starts_with(rest.substr(end)) && tool_.types.contains(rest.substr(0, end));
  const auto next = tool_.types.lower_bound(rest);
  return next != tool_.types.end() && next->first.starts_with(rest);
}

void TaggedReader::add(char c, std::string& json) {
  const bool begins = std::exchange(is_at_begin_, false);
  if (on_lines_ && begins && c == '\n') return;
  if (std::exchange(holds_break_, false)) text_ += '\n';
  holds_break_ = on_lines_ && c == '\n';
  if (!holds_break_) text_ += c;
  if (types_ != kTextType || is_dropped_) return;
  append_escaped(text_, json);
  text_.clear();
}

void TaggedReader::end_value(std::string& json) {
  const std::string value = std::exchange(text_, {});
  mark_.clear();
  state_ = State::kBetween;
  if (is_dropped_) return;
  json += types_ == kTextType ? "\"" : json_of_value(value, types_);
}

}  // namespace quire::api::chat
