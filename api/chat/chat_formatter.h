// Formatter of POST /v1/chat/completions: a conversation is answered with assistant messages.
//   body → messages, tools → the template's text → token ids → ... → text → reasoning, content, calls → message or
//   deltas
// Shape   the stream of a choice: its role, then deltas of reasoning, content and calls, then its finish_reason. Log
//         probabilities and token ids of tokens are in the first event that is made of these tokens.
// Owner   the Generation. Thread and Fails: see Formatter.
// Source  OpenAI's chat completions; reasoning, stop_reason and token ids are vLLM's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/chat/assistant_message.h"
#include "api/chat/chat_request.h"
#include "api/generation/formatter.h"
#include "api/generation/generation.h"
#include "api/json/response_writer.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::chat {

class ChatFormatter final : public Formatter {
 public:
  // `services` outlives the formatter.
  explicit ChatFormatter(const Services& services) : services_(services), assistant_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) override;
  void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) override;
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                      Usage usage) override;

 private:
  struct Streamed {  // state of one streamed choice
    AnswerParser parser;
    bool calls = false;  // a call was emitted
  };

  using WriteDelta = std::function<void(JsonWriter&)>;  // writes the delta as the next JSON value
  void append_event(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta,
                    const WriteDelta& write_delta, bool has_tokens, bool ends) const;
  Writing write_choice(std::string& json, const AnswerFacts& facts, const ChoiceDelta& delta) const;
  void append_logprobs(JsonWriter& writer, const ChoiceDelta& delta) const;

  const Services& services_;
  ChatRequest request_;
  AssistantMessage assistant_;
  std::vector<Streamed> streamed_;  // [n] if the answer is streamed
};

std::unique_ptr<Generation> chat(const Services& services, http::Request request);

}  // namespace quire::api::chat
