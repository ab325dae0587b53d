// POST /v1/completions: prompts of text or token ids, answered as choices with text.
// Owner   the Generation. Thread and Fails  as Form says.
// Source  OpenAI's completions; choices have vLLM's stop_reason, prompt_logprobs, prompt_token_ids and token_ids, too.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/http/exchange.h"
#include "api/openai/completions/request.h"
#include "api/openai/completions/text_logprobs.h"
#include "api/openai/generation/form.h"
#include "api/openai/generation/generation.h"
#include "api/services.h"

namespace quire::api::openai {

class CompletionForm final : public Form {
 public:
  // `services` outlives it.
  explicit CompletionForm(const Services& services) : services_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) override;
  Writing write_piece(std::string& events, const AnswerFacts& facts, Piece piece) override;
  void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) override;
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces, Usage usage) override;

 private:
  Result<std::vector<TokenId>> ids_of(const Prompt& prompt, Allowance& allowance) const;
  const std::string& echo_of(const Piece& piece);
  std::vector<TokenScore> scores_of(const Piece& piece);
  Writing write_choice(std::string& json, const Piece& piece);
  void append_usage_so_far(std::string& json, const Piece& piece) const;

  const Services& services_;
  CompletionRequest request_;
  std::vector<std::optional<std::string>> echoes_;  // [prompts] with echo: their texts; none until an answer needs one
};

std::unique_ptr<Generation> complete(const Services& services, http::Request request);

}  // namespace quire::api::openai
