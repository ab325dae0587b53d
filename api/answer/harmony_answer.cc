#include "api/answer/harmony_answer.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "api/answer/calls/call_format.h"
#include "api/answer/parts/marker_scanner.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxHeader = 512;
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kTo = "to=";
constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>", kStart, kChannel};

// True if a header may begin so.
bool is_header(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return std::ranges::any_of(std::initializer_list<std::string_view>{kStart, kChannel, kTo},
                             [&](std::string_view mark) { return text.starts_with(mark) || mark.starts_with(text); });
}

// The word behind `mark`, up to white space or another mark; empty: there is none.
std::string_view word_behind(std::string_view mark, std::string_view header) {
  const std::size_t at = header.find(mark);
  if (at == header.npos) return {};
  header.remove_prefix(at + mark.size());
  return header.substr(0, header.find_first_of(" <\n\t\r"));
}

}  // namespace

void HarmonyAnswer::take(char c, Deltas& out) {
  if (state_ == State::kHeader) return take_header(c, out);
  take_body(c, out);
}

void HarmonyAnswer::finish(Deltas& out) {
  if (state_ == State::kBody) {
    emit(std::exchange(mark_, {}), out);
    return end_body(out);
  }
  const bool is_cut = std::ranges::any_of(std::initializer_list<std::string_view>{kStart, kChannel, kTo},
                                          [&](std::string_view mark) { return header_.find(mark) != header_.npos; });
  if (!is_cut && !trimmed(header_).empty()) emit(header_, out);  // a cut header is not content
}

void HarmonyAnswer::take_header(char c, Deltas& out) {
  header_ += c;
  if (header_.ends_with(kMessage) && is_header(header_)) {
    header_.resize(header_.size() - kMessage.size());
    return begin_body(out);
  }
  const bool fits = is_header(header_);
  if (fits && header_.size() < kMaxHeader) return;
  kind_ = Delta::Kind::kContent;
  is_empty_ = true;
  state_ = State::kBody;
  if (fits) return emit(std::exchange(header_, {}), out);  // too long for a header: its marks are content, too
  for (const char one : std::exchange(header_, {})) take(one, out);
}

void HarmonyAnswer::begin_body(Deltas& out) {
  const std::string header = std::exchange(header_, {});
  std::string_view recipient = word_behind(kTo, header);
  constexpr std::string_view kNamespace = "functions.";
  if (recipient.starts_with(kNamespace)) recipient.remove_prefix(kNamespace.size());
  is_empty_ = true;
  state_ = State::kBody;
  if (std::ranges::find(tools_, recipient, &CallableTool::name) != tools_.end()) {
    kind_ = Delta::Kind::kArguments;
    out.add(Delta::Kind::kCall, recipient, num_calls_++);
    return;
  }
  const bool is_reasoning = recipient.empty() && word_behind(kChannel, header) == "analysis";
  kind_ = is_reasoning ? Delta::Kind::kReasoning : Delta::Kind::kContent;
  bool& has_any = is_reasoning ? has_reasoning_ : has_content_;
  if (has_any) out.add(kind_, "\n\n");
  if (!recipient.empty() && recipient != "all") emit(header + std::string(kMessage), out);
}

void HarmonyAnswer::take_body(char c, Deltas& out) {
  const auto goes_on = [&](std::string_view mark) { return mark.starts_with(mark_ + c); };
  if (!mark_.empty() && std::ranges::none_of(kEnds, goes_on)) emit(std::exchange(mark_, {}), out);
  if (mark_.empty() && c != '<') return emit({&c, 1}, out);
  mark_ += c;
  if (std::ranges::find(kEnds, mark_) == std::end(kEnds)) return;
  end_body(out);
  state_ = State::kHeader;
  if (mark_ == kStart || mark_ == kChannel) header_ = mark_;
  mark_.clear();
}

void HarmonyAnswer::end_body(Deltas& out) {
  if (kind_ == Delta::Kind::kArguments && is_empty_) emit("{}", out);
  kind_ = Delta::Kind::kContent;
}

void HarmonyAnswer::emit(std::string_view text, Deltas& out) {
  if (text.empty()) return;
  is_empty_ = false;
  if (kind_ == Delta::Kind::kReasoning) has_reasoning_ = true;
  if (kind_ == Delta::Kind::kContent) has_content_ = true;
  out.add(kind_, text, kind_ == Delta::Kind::kArguments ? num_calls_ - 1 : 0);
}

}  // namespace quire::api::chat
