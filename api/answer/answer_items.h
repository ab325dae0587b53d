// The items of an answer, in order: each is a run of reasoning, a run of content, or one call.
// Shape   a delta continues the last item, or begins the next one and so ends the last. An answer without deltas is one
//         content item without text.
// Owner   one per answer.
// Thread  one at a time.
// Source  ours: the common form of the output items of OpenAI's Responses and the content blocks of Anthropic's
//         Messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/parts/answer_parts.h"

namespace quire::api::chat {

struct AnswerItem {
  enum class Kind : std::uint8_t { kReasoning, kContent, kCall };
  Kind kind = Kind::kContent;
  std::size_t index = 0;  // in the answer
  std::size_t call = 0;   // kCall: its index among the calls
  std::string name;       // kCall: the tool's
  std::string text;       // of kCall: the arguments
};

// The receiver of items while an answer is made: the beginning of each, without text; every delta of its text; its end.
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
  void finish(ItemEvents& events);  // the answer has ended

  const std::vector<AnswerItem>& all() const { return all_; }

 private:
  void begin(AnswerItem item, ItemEvents& events);

  std::vector<AnswerItem> all_;
};

}  // namespace quire::api::chat
