// What an answer says, in the parts that a chat message has: reasoning, content, and calls of tools.
// Shape   deltas in the order in which they were said. A call begins with one kCall, its name; its kArguments pieces join to
//         the text of its arguments. Calls count from 0, and never begin out of order.
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
  // Joined with the last one where both are pieces of one text.
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

// All deltas of an answer put together: what the answer is that nobody streams.
struct AnswerParts {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> calls;

  void take(const Deltas& deltas);
};

}  // namespace quire::api::chat
