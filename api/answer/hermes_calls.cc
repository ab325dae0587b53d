#include "api/answer/hermes_calls.h"

#include <string_view>

namespace quire::api::chat {
namespace {

constexpr std::string_view kToolCallTag = "<tool_call>";
constexpr std::string_view kEnd = "</tool_call>";

}  // namespace

void HermesCalls::take(char c, Deltas& out) {
  switch (state_) {
    case State::kText:
      return take_text(c, out);
    case State::kOpen:
      return take_open(c, out);
    case State::kObject:
      return take_object(c, out);
    case State::kBroken: {
      std::string arguments;
      const bool ended = end_.take(c, arguments);
      out.add(Delta::Kind::kArguments, arguments, num_calls_ - 1);
      if (ended) end_call();
      return;
    }
    case State::kClose:
      return take_close(c, out);
  }
}

void HermesCalls::finish(Deltas& out) {
  std::string rest;
  if (state_ == State::kText) {
    begin_.finish(rest);
    out.add(Delta::Kind::kContent, rest);
  } else if (state_ == State::kBroken) {
    end_.finish(rest);
    out.add(Delta::Kind::kArguments, rest, num_calls_ - 1);
  } else if (state_ == State::kOpen || (state_ == State::kObject && !reader_->certain())) {
    out.add(Delta::Kind::kContent, raw_);
  }
}

void HermesCalls::take_text(char c, Deltas& out) {
  std::string text;
  const bool begins = begin_.take(c, text);
  out.add(Delta::Kind::kContent, text);
  if (!begins) return;
  raw_ = begin_.dropped();
  raw_ += kToolCallTag;
  state_ = State::kOpen;
}

void HermesCalls::take_open(char c, Deltas& out) {
  if (is_space(c)) {
    raw_ += c;
    return;
  }
  if (c != '{') return no_call(c, out);
  reader_.emplace(tools_, num_calls_);
  state_ = State::kObject;
  take_object(c, out);
}

void HermesCalls::take_object(char c, Deltas& out) {
  switch (reader_->take(c, out)) {
    case CallReader::Said::kMore:
      if (!reader_->certain()) raw_ += c;
      return;
    case CallReader::Said::kDone:
      state_ = State::kClose;
      return;
    case CallReader::Said::kDoneBefore:
      state_ = State::kClose;
      return take_close(c, out);
    case CallReader::Said::kFault:
      return no_call(c, out);
    case CallReader::Said::kBroken:
      state_ = State::kBroken;
      return take(c, out);
  }
}

void HermesCalls::take_close(char c, Deltas& out) {
  if (c == kEnd[matched_]) {
    if (++matched_ == kEnd.size()) end_call();
    return;
  }
  if (matched_ == 0 && is_space(c)) return;
  const std::string_view begun = kEnd.substr(0, matched_);
  end_call();
  for (const char one : begun) take_text(one, out);
  take(c, out);
}

// Emits the held text as content: it is no call, as the byte `c` shows.
void HermesCalls::no_call(char c, Deltas& out) {
  out.add(Delta::Kind::kContent, raw_);
  state_ = State::kText;
  take_text(c, out);
}

void HermesCalls::end_call() {
  matched_ = 0;
  state_ = State::kText;
  begin_.skip_space();
}

}  // namespace quire::api::chat
