// POST /v1/chat/completions: a conversation, answered with messages.
//   body → messages, tools → the template's text → token ids → ... → text → reasoning, content, calls → message or deltas
// Shape   a stream of a choice: its role, then deltas of reasoning, content and calls, then its finish_reason. Log
//         probabilities and token ids stand beside the first delta of the tokens that they are of.
// Owner   the Generation. Thread and Fails  as Form says.
// Source  OpenAI's chat completions; reasoning, stop_reason and token ids are vLLM's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/chat/answer/answer_parser.h"
#include "api/chat/chat_request.h"
#include "api/chat/turn.h"
#include "api/http/exchange.h"
#include "api/openai/generation/form.h"
#include "api/openai/generation/generation.h"
#include "api/openai/response_writer.h"
#include "api/services.h"

namespace quire::api::chat {

class ChatForm final : public openai::Form {
 public:
  // `services` outlives it.
  explicit ChatForm(const Services& services) : services_(services), turn_(services) {}

  Result<Done> read(const std::string& body) override;
  const openai::GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_piece(std::string& events, const openai::AnswerFacts& facts, const openai::Piece& piece) override;
  void append_end(std::string& events, const openai::AnswerFacts& facts, const openai::Usage& usage) override;
  openai::Writing write_whole(std::string& out, const openai::AnswerFacts& facts, std::span<const openai::Piece> pieces,
                              openai::Usage usage) override;

 private:
  struct Streamed {  // one choice, so far
    AnswerParser parser;
    bool calls = false;
  };

  using WriteDelta = std::function<void(openai::JsonWriter&)>;  // as the next value
  void append_event(std::string& events, const openai::AnswerFacts& facts, const openai::Piece& piece,
                    const WriteDelta& write_delta, bool tells_tokens, bool ends) const;
  openai::Writing write_choice(std::string& json, const openai::AnswerFacts& facts, const openai::Piece& piece) const;
  void append_logprobs(openai::JsonWriter& writer, const openai::Piece& piece) const;

  const Services& services_;
  ChatRequest request_;
  Turn turn_;
  std::vector<Streamed> streamed_;  // [n] where the answer is streamed
};

std::unique_ptr<openai::Generation> chat(const Services& services, http::Request request);

}  // namespace quire::api::chat
