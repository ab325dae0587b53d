// JSON of a message with its content blocks, and the events of a streamed message.
//   message_start → for each block: content_block_start, deltas, content_block_stop → message_delta → message_stop
// Shape   {id, type, role, model, content: [thinking | text | tool_use], stop_reason, stop_sequence, usage};
//         system_fingerprint, seed and timings are ours, as in every answer. usage: prompt tokens that the prefix cache
//         had are in cache_read_input_tokens, all others in input_tokens; cache_creation_input_tokens is always 0,
//         because nothing is billed.
// Owner   BlockEvents: made for one call of the formatter; assistant, facts and events outlive it.
// Thread  any; pure functions, apart from the text that they append to.
// Source  Anthropic's API reference for messages and for streams of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/answer_items.h"
#include "api/chat/assistant_message.h"
#include "api/generation/formatter.h"
#include "api/json/response_writer.h"

namespace quire::api::messages {

// Reason for the end of an answer.
struct Ending {
  const char* reason = nullptr;         // stop_reason; null: the answer goes on, or was cancelled
  std::optional<std::string> sequence;  // stop sequence that ended the answer
};
Ending ending_of(const ChoiceDelta& delta, std::span<const chat::AnswerItem> items);

// Writes the message as the next JSON value.
void append_message(JsonWriter& json, const chat::AssistantMessage& assistant, const AnswerFacts& facts,
                    std::span<const chat::AnswerItem> items, const Ending& ending, const Usage& usage);

class BlockEvents final : public chat::ItemEvents {
 public:
  BlockEvents(const chat::AssistantMessage& assistant, const AnswerFacts& facts, std::string& events)
      : assistant_(assistant), facts_(facts), events_(events) {}

  void start(const Usage& usage);
  void begin(const chat::AnswerItem& item) override;
  void more(const chat::AnswerItem& item, std::string_view text) override;
  void end(const chat::AnswerItem& item) override;
  void stop(const Ending& ending, const Usage& usage);

 private:
  template <typename Write>
  void event(std::string_view type, Write write);

  const chat::AssistantMessage& assistant_;
  const AnswerFacts& facts_;
  std::string& events_;
};

}  // namespace quire::api::messages
