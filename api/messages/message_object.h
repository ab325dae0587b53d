// A message as JSON, its blocks, and the events of one that is streamed.
//   message_start → of each block: content_block_start, deltas, content_block_stop → message_delta → message_stop
// Shape   {id, type, role, model, content: [thinking | text | tool_use], stop_reason, stop_sequence, usage}; timings and seed are
//         ours, as in every answer. Of the prompt's tokens those that the cache had are told apart, and none of them is
//         written to it for money.
// Owner   BlockEvents: made for one call of a form; turn, facts and events outlive it.
// Thread  any; pure functions but for the text that they append to.
// Source  Anthropic's API reference for messages and for streams of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/chat/answer/answer_items.h"
#include "api/chat/turn.h"
#include "api/openai/generation/form.h"
#include "api/openai/response_writer.h"

namespace quire::api::messages {

// Why an answer ended.
struct Ending {
  const char* reason = nullptr;         // null: it goes on, or somebody cancelled it
  std::optional<std::string> sequence;  // the stop sequence that ended it
};
Ending ending_of(const openai::Piece& piece, std::span<const chat::AnswerItem> items);

// As the next value.
void append_message(openai::JsonWriter& json, const chat::Turn& turn, const openai::AnswerFacts& facts,
                    std::span<const chat::AnswerItem> items, const Ending& ending, const openai::Usage& usage);

class BlockEvents final : public chat::ItemEvents {
 public:
  BlockEvents(const chat::Turn& turn, const openai::AnswerFacts& facts, std::string& events)
      : turn_(turn), facts_(facts), events_(events) {}

  void start(const openai::Usage& usage);
  void begin(const chat::AnswerItem& item) override;
  void more(const chat::AnswerItem& item, std::string_view text) override;
  void end(const chat::AnswerItem& item) override;
  void stop(const Ending& ending, const openai::Usage& usage);

 private:
  template <typename Write>
  void event(std::string_view type, Write write);

  const chat::Turn& turn_;
  const openai::AnswerFacts& facts_;
  std::string& events_;
};

}  // namespace quire::api::messages
