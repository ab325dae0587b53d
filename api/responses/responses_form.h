// POST /v1/responses: a conversation, answered with items.
//   body → messages, tools → a Turn → text → reasoning, content, calls → items of a response, or its events
// Shape   one answer. Put together, the events of a stream are the response that is not streamed.
// Owner   the Generation. Thread and Fails  as Form says; a fault in a stream is response.failed.
// Source  OpenAI's API reference for responses.
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
#include "api/openai/generation/form.h"
#include "api/openai/generation/generation.h"
#include "api/responses/event_writer.h"
#include "api/responses/message_tokens.h"
#include "api/responses/response_object.h"
#include "api/responses/responses_request.h"
#include "api/services.h"

namespace quire::api::responses {

class ResponsesForm final : public openai::Form {
 public:
  // `services` outlives it.
  explicit ResponsesForm(const Services& services)
      : services_(services), turn_(services), object_(request_, turn_, tokens_, services), events_(object_, tokens_) {}

  Result<Done> read(const std::string& body) override;
  const openai::GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  // With the text, its part, its item and the response.
  std::size_t num_told_again() const override { return 4; }
  void append_piece(std::string& events, const openai::AnswerFacts& facts, const openai::Piece& piece) override;
  void append_end(std::string& events, const openai::AnswerFacts& facts, const openai::Usage& usage) override;
  void append_error(std::string& events, const openai::AnswerFacts& facts, const Error& error) override;
  openai::Writing write_whole(std::string& out, const openai::AnswerFacts& facts, std::span<const openai::Piece> pieces,
                              openai::Usage usage) override;

 private:
  void open(std::string& events, const openai::AnswerFacts& facts);
  // What the parser makes of the piece, and of the end behind a last one.
  chat::Deltas deltas_of(chat::AnswerParser& parser, const openai::Piece& piece);
  ResponseUsage usage_of(const openai::Usage& usage, std::span<const chat::AnswerItem> items) const;

  const Services& services_;
  ResponsesRequest request_;
  chat::Turn turn_;
  MessageTokens tokens_;  // where log probabilities are told
  ResponseObject object_;

  // ---- of a stream
  EventWriter events_;
  std::optional<chat::AnswerParser> parser_;
  chat::AnswerItems items_;
  bool opened_ = false;
  std::string_view status_ = "in_progress";
};

std::unique_ptr<openai::Generation> respond(const Services& services, http::Request request);

}  // namespace quire::api::responses
