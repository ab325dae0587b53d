#include "api/answer/calls/functionary_calls.h"

#include <algorithm>
#include <utility>

#include "api/answer/parts/marker_scanner.h"

namespace quire::api::chat {
namespace {

constexpr std::string_view kMark = ">>>";
constexpr std::size_t kMaxRecipient = 256;
constexpr std::size_t kMaxHeld = 64;

}  // namespace

void FunctionaryCalls::take(char c, Deltas& out) {
  switch (state_) {
    case State::kRecipient:
      return take_recipient(c, out);
    case State::kText:
      return take_text(c, out);
    case State::kArguments:
      if (std::exchange(skips_space_, false) && is_space(c)) {
        skips_space_ = true;
        return;
      }
      out.add(Delta::Kind::kArguments, {&c, 1}, num_calls_ - 1);
      if (!arguments_.push(c)) {
        state_ = State::kBroken;
      } else if (arguments_.complete()) {
        state_ = State::kText;
        skips_space_ = true;
      }
      return;
    case State::kBroken:
      return out.add(Delta::Kind::kArguments, {&c, 1}, num_calls_ - 1);
  }
}

void FunctionaryCalls::finish(Deltas& out) {
  if (state_ == State::kRecipient || state_ == State::kText) out.add(Delta::Kind::kContent, held_ + recipient_);
}

void FunctionaryCalls::take_recipient(char c, Deltas& out) {
  if (is_name_char(c) && recipient_.size() < kMaxRecipient) {
    recipient_ += c;
    return;
  }
  if (c == '>' && recipient_.empty() && held_.ends_with(kMark)) {  // the last three count
    out.add(Delta::Kind::kContent, held_.substr(0, held_.size() + 1 - kMark.size()));
    held_ = kMark;
    return;
  }
  const std::string named = std::exchange(recipient_, {});
  const std::string held = std::exchange(held_, {});
  state_ = State::kText;
  const bool is_tool = std::ranges::find(tools_, named, &CallableTool::name) != tools_.end();
  if (c == '\n' && named == "all" && !is_tool) return;
  if (c == '\n' && is_tool) {
    out.add(Delta::Kind::kCall, named, num_calls_++);
    arguments_ = JsonWalker();
    skips_space_ = true;
    state_ = State::kArguments;
    return;
  }
  out.add(Delta::Kind::kContent, held + named);
  take_text(c, out);
}

void FunctionaryCalls::take_text(char c, Deltas& out) {
  if (skips_space_ && is_space(c)) return;
  skips_space_ = false;
  const bool goes_on = c == '>' || (is_space(c) && !held_.ends_with('>') && held_.size() < kMaxHeld);
  if (!goes_on) out.add(Delta::Kind::kContent, std::exchange(held_, {}));
  if (c != '>' && !is_space(c)) return out.add(Delta::Kind::kContent, {&c, 1});
  held_ += c;
  if (!held_.ends_with(kMark)) return;
  recipient_.clear();
  state_ = State::kRecipient;
}

}  // namespace quire::api::chat
