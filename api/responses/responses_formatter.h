// Formatter of POST /v1/responses: a conversation is answered with items.
//   body → messages, tools → AssistantMessage → text → reasoning, content, calls → items of a response, or its events
// Shape   one answer. The events of a stream add up to the response that is returned without streaming.
// Owner   the Generation. Thread and Fails: see Formatter; an error in a stream is the event response.failed.
// Source  OpenAI's API reference for responses.
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
#include "api/responses/event_writer.h"
#include "api/responses/message_tokens.h"
#include "api/responses/response_object.h"
#include "api/responses/responses_request.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::responses {

class ResponsesFormatter final : public Formatter {
 public:
  // `services` outlives the formatter.
  explicit ResponsesFormatter(const Services& services)
      : services_(services),
        assistant_(services),
        object_(request_, assistant_, tokens_, services),
        events_(object_, tokens_) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  // The end repeats the answer's text four times: with the events of its text, its part, its item and the response.
  std::size_t num_repeats() const override { return 4; }
  void append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) override;
  void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) override;
  void append_error(std::string& events, const AnswerFacts& facts, const Error& error) override;
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                      Usage usage) override;

 private:
  void open(std::string& events, const AnswerFacts& facts);
  // Deltas that the parser makes of `delta`, and of the answer's end if `delta` is the last one.
  chat::Deltas deltas_of(chat::AnswerParser& parser, const ChoiceDelta& delta);
  ResponseUsage usage_of(const Usage& usage, std::span<const chat::AnswerItem> items) const;

  const Services& services_;
  ResponsesRequest request_;
  chat::AssistantMessage assistant_;
  MessageTokens tokens_;  // used only if log probabilities are returned
  ResponseObject object_;

  // ---- only if streamed, except items_
  EventWriter events_;
  std::optional<chat::AnswerParser> parser_;
  chat::AnswerItems items_;
  bool opened_ = false;
  std::string_view status_ = "in_progress";
};

std::unique_ptr<Generation> respond(const Services& services, http::Request request);

}  // namespace quire::api::responses
