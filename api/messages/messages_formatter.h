// Formatter of POST /v1/messages: a conversation is answered with a message of blocks. Also count_tokens: the length of
// a conversation's prompt.
//   body → messages, tools → AssistantMessage → text → thinking, text, calls → blocks of a message, or its events
// Shape   one answer. The events of a stream add up to the message that is returned without streaming.
// Owner   the Generation. Thread and Fails: see Formatter; errors have Anthropic's shape, in a stream as the event
//         `error`.
// Source  Anthropic's API reference for messages.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/answer/answer_items.h"
#include "api/answer/answer_parser.h"
#include "api/chat/assistant_message.h"
#include "api/generation/formatter.h"
#include "api/generation/generation.h"
#include "api/messages/message_object.h"
#include "api/messages/messages_request.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::messages {

class MessagesFormatter final : public Formatter {
 public:
  // `services` outlives the formatter.
  explicit MessagesFormatter(const Services& services) : services_(services), assistant_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) override;
  void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) override;
  void append_error(std::string& events, const AnswerFacts& facts, const Error& error) override;
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                      Usage usage) override;
  ErrorShape error_shape() const override { return ErrorShape::kAnthropic; }

 private:
  const Services& services_;
  MessagesRequest request_;
  chat::AssistantMessage assistant_;

  // ---- only if streamed
  std::optional<chat::AnswerParser> parser_;
  chat::AnswerItems items_;
  Ending ending_;
};

std::unique_ptr<Generation> converse(const Services& services, http::Request request);

// Answers {"input_tokens": N}, or an error.
http::Response count_tokens(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api::messages
