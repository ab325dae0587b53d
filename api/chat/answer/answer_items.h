// What an answer says, one item after another: a piece of reasoning, of content, or one call.
// Shape   every delta goes on with the last item or begins the next one; an item that another one follows has ended. An answer
//         that says nothing is one content without text.
// Owner   one per answer.
// Thread  one at a time.
// Source  ours: what the items of OpenAI's Responses and the blocks of Anthropic's Messages have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat/answer/answer_parts.h"

namespace quire::api::chat {

struct AnswerItem {
  enum class Kind : std::uint8_t { kReasoning, kContent, kCall };
  Kind kind = Kind::kContent;
  std::size_t index = 0;  // in the answer
  std::size_t call = 0;   // kCall: its number among the calls
  std::string name;       // kCall: the tool's
  std::string text;       // kCall: its arguments
};

// Told as an answer is made: of each item its beginning, without text, every piece of its text, and its end.
class ItemEvents {
 public:
  virtual ~ItemEvents() = default;
  virtual void begin(const AnswerItem& item) = 0;
  virtual void more(const AnswerItem& item, std::string_view text) = 0;
  virtual void end(const AnswerItem& item) = 0;
};

class AnswerItems {
 public:
  void take(const Deltas& deltas, ItemEvents& events);
  void finish(ItemEvents& events);  // the answer ends here

  const std::vector<AnswerItem>& all() const { return all_; }

 private:
  void begin(AnswerItem item, ItemEvents& events);

  std::vector<AnswerItem> all_;
};

}  // namespace quire::api::chat
