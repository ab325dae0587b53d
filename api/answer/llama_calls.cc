#include "api/answer/llama_calls.h"

#include <string_view>
#include <utility>

namespace quire::api::chat {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";

}  // namespace

void LlamaCalls::take(char c, Deltas& out) {
  switch (state_) {
    case State::kBegin:
      return take_begin(c, out);
    case State::kTagged:
      if (c == '{') return begin_object(c, out);
      if (!is_space(c)) return no_call(c, out);
      raw_ += c;
      return;
    case State::kText:
      return take_text(c, out);
    case State::kObject:
      return take_object(c, out);
    case State::kAfter:
      if (c == '{') return begin_object(c, out);
      if (c == ';' || is_space(c)) {
        raw_ += c;
        return;
      }
      raw_.clear();
      state_ = State::kText;
      return take_text(c, out);
    case State::kBroken:
      return out.add(Delta::Kind::kArguments, {&c, 1}, num_calls_ - 1);
  }
}

void LlamaCalls::finish(Deltas& out) {
  std::string rest;
  if (state_ == State::kText) {
    tag_.finish(rest);
  } else if (state_ == State::kBegin || state_ == State::kTagged || (state_ == State::kObject && !reader_->certain())) {
    rest = std::move(raw_);
  }
  out.add(Delta::Kind::kContent, rest);
}

void LlamaCalls::take_begin(char c, Deltas& out) {
  if (c == '{') return begin_object(c, out);
  if (is_space(c)) {
    raw_ += c;
    return;
  }
  state_ = State::kText;
  const std::string space = std::exchange(raw_, {});
  for (const char one : space) take_text(one, out);
  take_text(c, out);
}

void LlamaCalls::take_text(char c, Deltas& out) {
  std::string text;
  const bool tagged = tag_.take(c, text);
  out.add(Delta::Kind::kContent, text);
  if (!tagged) return;
  raw_ = tag_.dropped();
  raw_ += kTag;
  state_ = State::kTagged;
}

void LlamaCalls::begin_object(char c, Deltas& out) {
  reader_.emplace(tools_, num_calls_);
  state_ = State::kObject;
  take_object(c, out);
}

void LlamaCalls::take_object(char c, Deltas& out) {
  switch (reader_->take(c, out)) {
    case CallReader::Said::kMore:
      if (!reader_->certain()) raw_ += c;
      return;
    case CallReader::Said::kDone:
      raw_.clear();
      state_ = State::kAfter;
      return;
    case CallReader::Said::kDoneBefore:
      raw_.clear();
      state_ = State::kAfter;
      return take(c, out);
    case CallReader::Said::kFault:
      return no_call(c, out);
    case CallReader::Said::kBroken:
      state_ = State::kBroken;
      return take(c, out);
  }
}

void LlamaCalls::no_call(char c, Deltas& out) {
  out.add(Delta::Kind::kContent, raw_);
  raw_.clear();
  state_ = State::kText;
  take_text(c, out);
}

}  // namespace quire::api::chat
