// Answers read as clients read them: deltas joined on the way.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/answer/answer_parser.h"

namespace quire::api::chat::test {

// `tools` outlive the format.
inline AnswerFormat format_of(std::span<const CallableTool> tools, CallFormat calls,
                              ReasoningFormat reasoning = ReasoningFormat::kNone) {
  AnswerFormat form;
  form.calls = calls;
  form.reasoning = reasoning;
  form.tools = tools;
  return form;
}

// The parts of an answer that comes in these pieces.
inline AnswerParts parts_of(const AnswerFormat& form, const std::vector<std::string>& pieces) {
  AnswerParser parser(form);
  AnswerParts parts;
  Deltas deltas;
  for (const std::string& piece : pieces) {
    parser.push(piece, deltas);
    parts.take(deltas);
    deltas.clear();
  }
  parser.finish(deltas);
  parts.take(deltas);
  return parts;
}

// "[reasoning]content|name{arguments}|…"
inline std::string shown(const AnswerParts& parts) {
  std::string text = "[" + parts.reasoning + "]" + parts.content;
  for (const ToolCall& call : parts.calls) text += "|" + call.name + call.arguments;
  return text;
}

}  // namespace quire::api::chat::test
