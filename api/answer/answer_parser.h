// Splits a model's text, as it arrives, into reasoning, content and calls.
//   text → reasoning, up to its end mark → marks around the rest → calls and content
// Shape   the joined deltas do not depend on the cuts of the text. Reasoning is the text between its marks at the
//         beginning of the answer, without white space at its edges; white space behind it is dropped, too. Marks
//         further on are content. Marks around the answer are dropped, with the white space inside them. Answers of
//         gpt-oss are read by harmony_answer.h.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never. Time is linear in the text.
// Source  the marks of published templates (reasoning_format.h, call_format.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/calls/call_parser.h"
#include "api/answer/harmony_answer.h"
#include "api/answer/parts/answer_parts.h"
#include "api/answer/parts/marker_scanner.h"
#include "api/answer/reasoning_format.h"

namespace quire::api::chat {

struct AnswerFormat {
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  bool in_reasoning = false;      // the prompt opened it: the answer begins inside reasoning
  bool include_reasoning = true;  // false: reasoning is dropped
  CallFormat calls = CallFormat::kNone;
  std::optional<Marks> content_marks{};
  std::span<const CallableTool> tools;  // borrowed: they outlive the parser
  std::size_t max_calls = 1'000'000;    // further calls are dropped
  bool only_calls = false;              // a forced call: content is dropped, so that a truncated answer shows no marks
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& form);

  void push(std::string_view text, Deltas& out);
  void finish(Deltas& out);

 private:
  enum class State { kBegin, kReasoning, kBehindReasoning, kAnswer };
  // The place in the answer, relative to the marks around it.
  enum class Content { kBegin, kInside, kPlain };

  void take(char c);
  void take_begin(char c);
  void take_turn(char c);
  void take_answer(char c);
  void answer_again(std::string_view text);
  void emit(Deltas& out);

  AnswerFormat form_;
  std::optional<Marks> marks_;
  std::optional<HarmonyAnswer> harmony_;  // then nothing below is used
  std::unique_ptr<CallParser> calls_;
  State state_;
  std::string begun_;  // kBegin: white space and the first bytes of the begin mark; kBehindReasoning: those of a turn's
  std::size_t matched_ = 0;
  std::optional<MarkerScanner> end_;
  Content content_;
  std::string opening_;  // Content::kBegin: white space and the first bytes of the begin mark
  std::optional<MarkerScanner> closing_;
  Deltas said_;  // deltas before emit() drops the unwanted ones
};

}  // namespace quire::api::chat
