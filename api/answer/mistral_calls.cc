#include "api/answer/mistral_calls.h"

#include <algorithm>
#include <string_view>

namespace quire::api::chat {
namespace {

constexpr std::string_view kToolCalls = "[TOOL_CALLS]";
constexpr std::string_view kArgs = "[ARGS]";
constexpr std::string_view kId = "[CALL_ID]";
constexpr std::size_t kMaxHead = 256;  // a tool's name has 64 bytes at most, an id a few

// The name in "name", "name[ARGS]" or "name[CALL_ID]id[ARGS]"; empty for any other text.
std::string_view name_of(std::string_view head) {
  while (!head.empty() && is_space(head.back())) head.remove_suffix(1);
  const std::size_t end = head.find('[');
  const std::string_view name = head.substr(0, end);
  if (end == head.npos) return name;
  const std::string_view marks = head.substr(end);
  return marks == kArgs || (marks.starts_with(kId) && marks.ends_with(kArgs)) ? name : std::string_view();
}

}  // namespace

void MistralCalls::take(char c, Deltas& out) {
  switch (state_) {
    case State::kText:
      return take_text(c, out);
    case State::kOpen:
      return take_open(c, out);
    case State::kItem:
      return take_item(c, out);
    case State::kObject:
      return take_object(c, out);
    case State::kAfterItem:
      return take_after_item(c, out);
    case State::kName:
      return take_name(c, out);
    case State::kArguments:
      return take_arguments(c, out);
    case State::kBroken:
      return out.add(Delta::Kind::kArguments, {&c, 1}, num_calls_ - 1);
  }
}

void MistralCalls::finish(Deltas& out) {
  std::string rest;
  if (state_ == State::kText) {
    begin_.finish(rest);
  } else if (state_ == State::kOpen || state_ == State::kItem || state_ == State::kName ||
             (state_ == State::kObject && !reader_->certain())) {
    rest = raw_;
  }
  out.add(Delta::Kind::kContent, rest);
}

void MistralCalls::take_text(char c, Deltas& out) {
  std::string text;
  const bool begins = begin_.take(c, text);
  out.add(Delta::Kind::kContent, text);
  if (!begins) return;
  raw_ = begin_.dropped();
  raw_ += kToolCalls;
  state_ = State::kOpen;
}

void MistralCalls::take_open(char c, Deltas& out) {
  if (c == '{') return begin_object(c, false, out);
  if (!is_space(c) && c != '[') {
    head_.clear();
    state_ = State::kName;
    return take_name(c, out);
  }
  raw_ += c;
  if (c == '[') state_ = State::kItem;
}

void MistralCalls::take_item(char c, Deltas& out) {
  if (c == '{') return begin_object(c, true, out);
  if (!is_space(c)) return no_call(c, out);
  raw_ += c;
}

void MistralCalls::take_object(char c, Deltas& out) {
  const CallReader::Said said = reader_->take(c, out);
  if (reader_->certain()) raw_.clear();
  switch (said) {
    case CallReader::Said::kMore:
      if (!reader_->certain()) raw_ += c;
      return;
    case CallReader::Said::kDone:
    case CallReader::Said::kDoneBefore:
      if (in_list_) {
        state_ = State::kAfterItem;
      } else {
        go_back_to_text();
      }
      if (said == CallReader::Said::kDoneBefore) take(c, out);
      return;
    case CallReader::Said::kFault:
      return no_call(c, out);
    case CallReader::Said::kBroken:
      state_ = State::kBroken;
      return take(c, out);
  }
}

void MistralCalls::take_after_item(char c, Deltas& out) {
  if (is_space(c)) return;
  if (c == ',') {
    raw_ = c;
    state_ = State::kItem;
    return;
  }
  go_back_to_text();
  if (c != ']') take_text(c, out);
}

void MistralCalls::take_name(char c, Deltas& out) {
  if (c != '{') {
    if (head_.size() == kMaxHead) return no_call(c, out);
    head_ += c;
    raw_ += c;
    return;
  }
  const std::string name(name_of(head_));
  if (std::find(tools_.begin(), tools_.end(), name) == tools_.end()) return no_call(c, out);
  out.add(Delta::Kind::kCall, name, num_calls_++);
  arguments_ = JsonWalker();
  state_ = State::kArguments;
  take_arguments(c, out);
}

void MistralCalls::take_arguments(char c, Deltas& out) {
  out.add(Delta::Kind::kArguments, {&c, 1}, num_calls_ - 1);
  if (!arguments_.push(c)) {
    state_ = State::kBroken;
  } else if (arguments_.complete()) {
    go_back_to_text();
  }
}

void MistralCalls::begin_object(char c, bool in_list, Deltas& out) {
  in_list_ = in_list;
  reader_.emplace(tools_, num_calls_);
  state_ = State::kObject;
  take_object(c, out);
}

void MistralCalls::go_back_to_text() {
  raw_.clear();
  state_ = State::kText;
  begin_.skip_space();
}

void MistralCalls::no_call(char c, Deltas& out) {
  out.add(Delta::Kind::kContent, raw_);
  raw_.clear();
  state_ = State::kText;
  take_text(c, out);
}

}  // namespace quire::api::chat
