// The parts of an answer as a chat message has them: reasoning, content and tool calls.
// Shape   deltas in the order of the model's text. A call begins with one kCall delta, its name; its kArguments deltas
//         join to the text of its arguments. Calls are numbered from 0 in the order in which they begin.
// Owner   values.
// Source  OpenAI's chat completion chunks; `reasoning` is vLLM's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::api::chat {

struct Delta {
  enum class Kind { kReasoning, kContent, kCall, kArguments };
  Kind kind = Kind::kContent;
  std::size_t call = 0;  // kCall, kArguments
  std::string text;      // kCall: the tool's name
};

class Deltas {
 public:
  // Appends a delta, or joins it to the last one if both belong to one text. An empty text adds nothing.
  void add(Delta::Kind kind, std::string_view text, std::size_t call = 0);
  const std::vector<Delta>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }

 private:
  std::vector<Delta> all_;
};

struct ToolCall {
  std::string name;
  std::string arguments;
};

// All deltas of an answer joined: the message of an answer that is not streamed.
struct AnswerParts {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> calls;

  void take(const Deltas& deltas);
};

}  // namespace quire::api::chat
