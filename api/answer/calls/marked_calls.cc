#include "api/answer/calls/marked_calls.h"

#include <algorithm>
#include <utility>

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxHead = 256;  // a tool's name has 64 bytes at most, marks and ids a few

// The mark that begins every call of a section: "<invoke name=\"", "<server_name>"; empty: nothing does.
std::string_view first_mark(std::string_view open) {
  const std::size_t end = open.find('>');
  return trimmed(end == open.npos ? open : open.substr(0, end + 1));
}

}  // namespace

MarkedCalls::MarkedCalls(const CallSyntax& syntax, std::span<const CallableTool> tools)
    : syntax_(syntax),
      tools_(tools),
      begin_mark_(trimmed(syntax.begin)),
      end_mark_(trimmed(syntax.end)),
      close_mark_(trimmed(syntax.close)),
      fence_(trimmed(syntax.fence)),
      fence_close_(trimmed(syntax.fence_close)),
      name_mark_(trimmed(syntax.name_mark.empty() ? syntax.open : syntax.name_mark)),
      state_(syntax.is_bare ? State::kBegin : State::kText),
      begin_({begin_mark_, syntax.other_begins[0], syntax.other_begins[1]}),
      broken_({syntax.style == CallStyle::kJson ? close_mark_ : "", end_mark_, begin_mark_}) {}

void MarkedCalls::take(char c, Deltas& out) {
  switch (state_) {
    case State::kBegin:
      return take_begin(c, out);
    case State::kText:
      return take_text(c, out);
    case State::kItem:
      return take_item(c, out);
    case State::kObject:
      return take_object(c, out);
    case State::kHead:
      return take_head(c, out);
    case State::kArguments:
      return take_arguments(c, out);
    case State::kBehind:
      return take_behind(c, out);
    case State::kBroken:
      return take_broken(c, out);
  }
}

void MarkedCalls::finish(Deltas& out) {
  std::string rest;
  switch (state_) {
    case State::kText:
      begin_.finish(rest);
      break;
    case State::kObject:
      if (!object_->certain()) rest = raw_;
      break;
    case State::kArguments:
      arguments_->finish(json_);
      emit_json(out);
      if (!is_certain_) rest = raw_;
      break;
    case State::kBegin:
    case State::kItem:
    case State::kHead:
      rest = raw_;
      break;
    case State::kBehind:
      break;
    case State::kBroken:
      broken_.finish(rest);
      out.add(Delta::Kind::kArguments, rest, num_calls_ - 1);
      return;
  }
  out.add(Delta::Kind::kContent, rest);
}

// ---- text

void MarkedCalls::take_begin(char c, Deltas& out) {
  if (is_space(c)) {
    raw_ += c;
    return;
  }
  state_ = State::kText;
  if (!begins_bare(c)) return text_again(std::exchange(raw_, {}) + c, out);
  fixed_ = 0;
  in_list_ = false;
  state_ = State::kItem;
  take_item(c, out);
}

bool MarkedCalls::begins_bare(char c) const {
  if (syntax_.style == CallStyle::kJson) return is_name_char(c);
  return c == '[' || (c == '{' && !syntax_.is_list);
}

void MarkedCalls::take_text(char c, Deltas& out) {
  std::string text;
  const bool begins = begin_.take(c, text);
  out.add(Delta::Kind::kContent, text);
  if (begins) begin_section(begin_);
}

// A section begins with the mark that the scanner has found.
void MarkedCalls::begin_section(const MarkerScanner& scanner) {
  raw_ = scanner.dropped() + scanner.found();
  fixed_ = raw_.size();
  in_list_ = false;
  state_ = State::kItem;
  if (scanner.found() != trimmed(syntax_.open) && scanner.found() != name_mark_) return;
  head_ = scanner.found();  // the mark before a call
  state_ = State::kHead;
}

void MarkedCalls::text_again(std::string_view text, Deltas& out) {
  for (const char c : text) take(c, out);
}

// The held text is no call.
void MarkedCalls::no_call(Deltas& out) {
  const std::string held = std::exchange(raw_, {});
  out.add(Delta::Kind::kContent, std::string_view(held).substr(0, fixed_));
  state_ = State::kText;
  text_again(std::string_view(held).substr(fixed_), out);
}

void MarkedCalls::end_section() {
  raw_.clear();
  head_.clear();
  state_ = State::kText;
  begin_.skip_space();
}

// ---- calls

bool MarkedCalls::reads_names() const {
  return syntax_.style == CallStyle::kJson || syntax_.style == CallStyle::kTagged ||
         syntax_.style == CallStyle::kLiterals || syntax_.reads_names;
}

void MarkedCalls::take_item(char c, Deltas& out) {
  if (is_space(c)) {
    raw_ += c;
    return;
  }
  if (c == '{') return begin_object(c, out);
  if (c == '[' && !in_list_) {
    raw_ += c;
    in_list_ = true;
    return;
  }
  if (begins_name(c)) {
    head_.clear();
    state_ = State::kHead;
    return take_head(c, out);
  }
  raw_ += c;
  const bool is_fence = syntax_.style == CallStyle::kObject && !in_list_ && fence_.find(c) != fence_.npos;
  if (!is_fence || raw_.size() > fixed_ + kMaxHead) no_call(out);
}

bool MarkedCalls::begins_name(char c) const {
  return reads_names() && (is_name_char(c) || (!syntax_.open.empty() && c == syntax_.open.front()));
}

void MarkedCalls::begin_object(char c, Deltas& out) {
  object_.emplace(syntax_.style, tools_, num_calls_);
  state_ = State::kObject;
  take_object(c, out);
}

void MarkedCalls::take_object(char c, Deltas& out) {
  const CallReader::Said said = object_->take(c, out);
  if (object_->certain()) raw_.clear();
  switch (said) {
    case CallReader::Said::kMore:
      if (!object_->certain()) raw_ += c;
      return;
    case CallReader::Said::kDone:
      return end_call();
    case CallReader::Said::kDoneBefore:
      end_call();
      return take(c, out);
    case CallReader::Said::kFault: {
      fixed_ = raw_.size();  // an object of any length is not read again
      raw_ += c;
      return no_call(out);
    }
    case CallReader::Said::kBroken:
      return break_off(c, out);
  }
}

// Reads the name and the marks around it, up to the first byte of the arguments.
void MarkedCalls::take_head(char c, Deltas& out) {
  raw_ += c;
  if (ends_head(c)) {
    const CallableTool* tool = tool_in(head_);
    if (tool == nullptr) return no_call(out);
    const bool is_theirs = syntax_.style != CallStyle::kLiterals && (c == '{' || c == '<');
    return begin_arguments(*tool, is_theirs ? std::string_view(&c, 1) : std::string_view(), out);
  }
  head_ += c;
  if (!fits_head(c) || head_.size() > kMaxHead) return no_call(out);
  if (syntax_.style != CallStyle::kJson || close_mark_.empty() || !head_.ends_with(close_mark_)) return;
  head_.resize(head_.size() - close_mark_.size());  // a call without arguments
  const CallableTool* tool = tool_in(head_);
  if (tool == nullptr) return no_call(out);
  out.add(Delta::Kind::kCall, tool->name, num_calls_);
  out.add(Delta::Kind::kArguments, "{}", num_calls_++);
  end_call();
}

bool MarkedCalls::ends_head(char c) const {
  const std::string_view mark = trimmed(syntax_.name_end);
  if (syntax_.style == CallStyle::kLiterals) return c == mark.back();
  if (syntax_.style != CallStyle::kTagged) return c == '{';
  if (mark.empty()) return !head_.empty() && (is_space(c) || c == '<');
  return c == mark.back() && head_.ends_with(mark.substr(0, mark.size() - 1));
}

// False if no head goes on so. Without marks around it a head is a name and white space.
bool MarkedCalls::fits_head(char c) const {
  if (syntax_.style == CallStyle::kLiterals) return is_name_char(c) || syntax_.open.find(c) != syntax_.open.npos;
  return !begin_mark_.empty() || std::ranges::all_of(trimmed(head_), is_name_char);
}

// The tool that a head names; null: none.
const CallableTool* MarkedCalls::tool_in(std::string_view head) const {
  if (!name_mark_.empty()) {
    const std::size_t at = head.rfind(name_mark_);
    if (at == head.npos) return nullptr;
    head.remove_prefix(at + name_mark_.size());
  }
  while (!head.empty() && is_space(head.front())) head.remove_prefix(1);
  const auto named = [&](std::string_view name) -> const CallableTool* {
    const auto found = std::ranges::find(tools_, name, &CallableTool::name);
    return found == tools_.end() ? nullptr : &*found;
  };
  const std::string_view name(head.begin(), std::ranges::find_if_not(head, is_name_char));
  const std::string_view behind = head.substr(name.size());
  if (syntax_.style == CallStyle::kJson || syntax_.reads_names) {
    const bool needs_line = begin_mark_.empty();  // a name alone would make a call of any sentence
    if (needs_line && !behind.starts_with(syntax_.name_end)) return nullptr;
    if (!fence_.empty() && !trimmed(behind).empty() && !trimmed(behind).ends_with(fence_)) return nullptr;
  } else if (!trimmed(syntax_.name_end).starts_with(trimmed(behind))) {
    return nullptr;
  }
  constexpr std::string_view kNamespace = "functions.";
  const bool is_in_namespace = name.starts_with(kNamespace) && !begin_mark_.empty();
  const CallableTool* inside = is_in_namespace ? named(name.substr(kNamespace.size())) : nullptr;
  if (inside != nullptr && syntax_.open.ends_with(kNamespace)) return inside;
  const CallableTool* tool = named(name);
  return tool != nullptr ? tool : inside;
}

void MarkedCalls::begin_arguments(const CallableTool& tool, std::string_view rest, Deltas& out) {
  tool_ = &tool;
  arguments_ = make_arguments_reader(syntax_.reads_names ? syntax_of(CallFormat::kMistralArgs) : syntax_, tool);
  json_.clear();
  is_certain_ = false;
  state_ = State::kArguments;
  if (syntax_.style == CallStyle::kJson || syntax_.reads_names) {
    is_certain_ = true;
    raw_.clear();
    out.add(Delta::Kind::kCall, tool.name, num_calls_++);
  }
  for (const char c : rest) take_arguments(c, out);
}

void MarkedCalls::take_arguments(char c, Deltas& out) {
  const ArgumentsState state = arguments_->take(c, json_);
  if (!is_certain_) raw_ += c;
  emit_json(out);
  if (!is_certain_ && raw_.size() > fixed_ + 2 * kMaxHead) return no_call(out);
  switch (state) {
    case ArgumentsState::kMore:
      return;
    case ArgumentsState::kDone:
      return end_call();
    case ArgumentsState::kDoneBefore:
      end_call();
      return take(c, out);
    case ArgumentsState::kSectionDone:
      return end_section();
    case ArgumentsState::kFault:
      return is_certain_ ? break_off(c, out) : no_call(out);
  }
}

void MarkedCalls::emit_json(Deltas& out) {
  if (json_.empty()) return;
  if (!std::exchange(is_certain_, true)) {
    raw_.clear();
    out.add(Delta::Kind::kCall, tool_->name, num_calls_++);
  }
  out.add(Delta::Kind::kArguments, json_, num_calls_ - 1);
  json_.clear();
}

void MarkedCalls::break_off(char c, Deltas& out) {
  state_ = State::kBroken;
  take_broken(c, out);
}

void MarkedCalls::take_broken(char c, Deltas& out) {
  std::string arguments;
  const bool ended = broken_.take(c, arguments);
  out.add(Delta::Kind::kArguments, arguments, num_calls_ - 1);
  if (!ended) return;
  in_list_ = false;
  if (broken_.found() == begin_mark_) return begin_section(broken_);
  if (broken_.found() == close_mark_ && !end_mark_.empty()) return end_call();
  end_section();
}

// ---- behind a call

void MarkedCalls::end_call() {
  raw_.clear();
  fixed_ = 0;
  head_.clear();
  const bool is_over = !in_list_ && !syntax_.is_bare && end_mark_.empty() && close_mark_.empty();
  state_ = State::kBehind;
  if (is_over) end_section();
}

// True if the text behind a call may be the next one.
bool MarkedCalls::is_next_call() const {
  if (!reads_names() || in_list_ || (syntax_.is_bare && !begin_mark_.empty())) return false;
  const std::string_view mark = first_mark(syntax_.open);
  if (!mark.empty()) return mark.starts_with(head_) || head_.starts_with(mark);
  const bool has_names_alone = syntax_.style == CallStyle::kLiterals || begin_mark_.empty();
  return has_names_alone && std::ranges::all_of(head_, is_name_char);
}

// Expects the marks that end the call, its list and its section, or another call.
void MarkedCalls::take_behind(char c, Deltas& out) {
  if (head_.empty()) {
    if (is_space(c)) {
      raw_ += c;
      return;
    }
    if (in_list_ && c == ',') {
      raw_ = c;
      state_ = State::kItem;
      return;
    }
    if (in_list_ && c == ']') {
      in_list_ = false;
      if (end_mark_.empty()) end_section();
      return;
    }
    if (c == ';' && syntax_.is_bare && !syntax_.is_list) {
      raw_ += c;
      return;
    }
    if (c == '{' && !in_list_ && syntax_.style == CallStyle::kObject) return begin_object(c, out);
  }
  head_ += c;
  const std::string_view other_end = syntax_.other_end;
  if (head_ == end_mark_ || (head_ == other_end && !other_end.empty())) return end_section();
  if (head_ == close_mark_ || head_ == fence_close_) {
    const bool is_over = head_ == close_mark_ && end_mark_.empty() && !in_list_;
    head_.clear();
    if (is_over) end_section();
    return;
  }
  for (const std::string_view mark : {end_mark_, other_end, close_mark_, fence_close_}) {
    if (mark.starts_with(head_)) return;
  }
  if (is_next_call()) {
    raw_ = head_;
    state_ = State::kHead;
    return;
  }
  const std::string text = std::exchange(head_, {});
  end_section();
  text_again(text, out);
}

}  // namespace quire::api::chat
