// Writer of the events of a streamed response, with ascending sequence numbers.
//   response.created, in_progress → for each item: output_item.added ... output_item.done → response.completed
// Shape   a message and reasoning have one part each: content_part.added, the deltas of its text, its whole text,
//         content_part.done; a call has the deltas of its arguments, then its whole arguments.
// Owner   a formatter; object's referents and tokens outlive the writer. Events are appended to the text, and made from
//         the facts, of the last write_to().
// Thread  one at a time.
// Source  OpenAI's API reference for streamed responses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/answer/answer_items.h"
#include "api/generation/formatter.h"
#include "api/json/response_writer.h"
#include "api/responses/message_tokens.h"
#include "api/responses/response_object.h"

namespace quire::api::responses {

class EventWriter final : public chat::ItemEvents {
 public:
  EventWriter(const ResponseObject& object, MessageTokens& tokens) : object_(object), tokens_(tokens) {}

  void write_to(std::string& events, const AnswerFacts& facts) {
    events_ = &events;
    facts_ = &facts;
  }

  void response(std::string_view type, const Progress& progress);  // an event with the whole response object

  void begin(const chat::AnswerItem& item) override;
  void more(const chat::AnswerItem& item, std::string_view text) override;
  void end(const chat::AnswerItem& item) override;
  void ends_as(std::string_view status) { end_status_ = status; }  // status of the items that end from now on

 private:
  template <typename Write>
  void event(std::string_view type, Write write);
  template <typename Write>
  void item_event(std::string_view type, const chat::AnswerItem& item, Write write);

  const ResponseObject object_;
  MessageTokens& tokens_;
  std::string* events_ = nullptr;
  const AnswerFacts* facts_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::string_view end_status_ = "completed";
};

}  // namespace quire::api::responses
