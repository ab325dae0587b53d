// POST /v1/messages: a conversation, answered with a message of blocks. And count_tokens: how long its prompt is.
//   body → messages, tools → a Turn → text → thinking, text, calls → blocks of a message, or its events
// Shape   one answer. Put together, the events of a stream are the message that is not streamed.
// Owner   the Generation. Thread and Fails  as Form says; errors are in Anthropic's shape, in a stream as the event `error`.
// Source  Anthropic's API reference for messages.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/chat/answer/answer_items.h"
#include "api/chat/answer/answer_parser.h"
#include "api/chat/turn.h"
#include "api/http/exchange.h"
#include "api/messages/message_object.h"
#include "api/messages/messages_request.h"
#include "api/openai/generation/form.h"
#include "api/openai/generation/generation.h"
#include "api/services.h"

namespace quire::api::messages {

class MessagesForm final : public openai::Form {
 public:
  // `services` outlives it.
  explicit MessagesForm(const Services& services) : services_(services), turn_(services) {}

  Result<Done> read(const std::string& body) override;
  const openai::GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_piece(std::string& events, const openai::AnswerFacts& facts, const openai::Piece& piece) override;
  void append_end(std::string& events, const openai::AnswerFacts& facts, const openai::Usage& usage) override;
  void append_error(std::string& events, const openai::AnswerFacts& facts, const Error& error) override;
  openai::Writing write_whole(std::string& out, const openai::AnswerFacts& facts, std::span<const openai::Piece> pieces,
                              openai::Usage usage) override;
  openai::ErrorShape error_shape() const override { return openai::ErrorShape::kAnthropic; }

 private:
  const Services& services_;
  MessagesRequest request_;
  chat::Turn turn_;

  // ---- of a stream
  std::optional<chat::AnswerParser> parser_;
  chat::AnswerItems items_;
  Ending ending_;
};

std::unique_ptr<openai::Generation> converse(const Services& services, http::Request request);

// {"input_tokens": N}, or a refusal.
http::Response count_tokens(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api::messages
