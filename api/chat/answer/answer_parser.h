// What a model says, taken apart as it comes: reasoning, content, calls.
//   text → reasoning, up to its end mark → calls and content
// Shape   the deltas, put together, do not depend on how the text was cut. Reasoning is what stands between its marks
//         where the answer begins with it, white space at its edges dropped; marks further on are content.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never. Time is linear in the text.
// Source  the marks of published templates: <think> of DeepSeek, Qwen and others, [THINK] of Mistral.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/chat/answer/answer_parts.h"
#include "api/chat/answer/call_parser.h"
#include "api/chat/answer/marker_scanner.h"

namespace quire::api::chat {

enum class ReasoningForm : std::uint8_t { kNone, kThinkTags, kMistral };

struct Marks {
  std::string_view begin;
  std::string_view end;
};
std::optional<Marks> marks_of(ReasoningForm form);

struct AnswerForm {
  ReasoningForm reasoning = ReasoningForm::kNone;
  bool in_reasoning = false;      // the prompt opened it: the answer begins inside
  bool include_reasoning = true;  // false: it is taken out and told to nobody
  CallForm calls = CallForm::kNone;
  std::span<const std::string> tools;  // outlive the parser
  std::size_t max_calls = 1'000'000;   // what comes behind so many is told to nobody
  bool only_calls = false;             // a forced call: content is left out, so a cut answer shows no marks
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerForm& form);

  void push(std::string_view text, Deltas& out);
  void finish(Deltas& out);

 private:
  enum class State { kBegin, kReasoning, kBehindReasoning, kAnswer };

  void take(char c);
  void take_begin(char c);
  void take_answer(std::string_view text);
  void tell(Deltas& out);

  AnswerForm form_;
  std::optional<Marks> marks_;
  std::unique_ptr<CallParser> calls_;
  State state_;
  std::string begun_;  // kBegin: white space, and the mark's first bytes
  std::size_t matched_ = 0;
  std::optional<MarkerScanner> end_;
  Deltas said_;  // before what nobody is told is left out
};

}  // namespace quire::api::chat
