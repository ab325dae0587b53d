// Splits a model's text, as it arrives, into reasoning, content and calls.
//   text → reasoning, up to its end mark → calls and content
// Shape   the joined deltas do not depend on the cuts of the text. Reasoning is the text between its marks at the
//         beginning of the answer, without white space at its edges; white space behind it is dropped, too. Marks
//         further on are content.
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

#include "api/answer/answer_parts.h"
#include "api/answer/call_parser.h"
#include "api/answer/marker_scanner.h"

namespace quire::api::chat {

enum class ReasoningFormat : std::uint8_t { kNone, kThinkTags, kMistral };

struct Marks {
  std::string_view begin;
  std::string_view end;
};
std::optional<Marks> marks_of(ReasoningFormat form);

struct AnswerFormat {
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  bool in_reasoning = false;      // the prompt opened it: the answer begins inside reasoning
  bool include_reasoning = true;  // false: reasoning is dropped
  CallFormat calls = CallFormat::kNone;
  std::span<const std::string> tools;  // borrowed: they outlive the parser
  std::size_t max_calls = 1'000'000;   // further calls are dropped
  bool only_calls = false;             // a forced call: content is dropped, so that a truncated answer shows no marks
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& form);

  void push(std::string_view text, Deltas& out);
  void finish(Deltas& out);

 private:
  enum class State { kBegin, kReasoning, kBehindReasoning, kAnswer };

  void take(char c);
  void take_begin(char c);
  void take_answer(std::string_view text);
  void emit(Deltas& out);

  AnswerFormat form_;
  std::optional<Marks> marks_;
  std::unique_ptr<CallParser> calls_;
  State state_;
  std::string begun_;  // kBegin: white space and the first bytes of the begin mark
  std::size_t matched_ = 0;
  std::optional<MarkerScanner> end_;
  Deltas said_;  // deltas before emit() drops the unwanted ones
};

}  // namespace quire::api::chat
