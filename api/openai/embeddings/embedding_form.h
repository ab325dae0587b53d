// POST /v1/embeddings: prompts, answered with a vector each.
//   body → inputs → token ids → … → hidden states, pooled → {"object":"list","data":[{"embedding":…}]}
// Shape   one body, never a stream; an entry of `data` for each input, in order.
// Owner   the Generation. Thread and Fails  as Form says; an input that is too long for the model is answered 400.
// Source  OpenAI's embeddings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/http/exchange.h"
#include "api/openai/embeddings/request.h"
#include "api/openai/generation/form.h"
#include "api/openai/generation/generation.h"
#include "api/services.h"

namespace quire::api::openai {

class EmbeddingForm final : public Form {
 public:
  // `services` outlives it.
  explicit EmbeddingForm(const Services& services) : services_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  // Nothing is streamed.
  void append_piece(std::string&, const AnswerFacts&, const Piece&) override {}
  void append_end(std::string&, const AnswerFacts&, const Usage&) override {}
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces, Usage usage) override;

 private:
  void append_vector(std::string& json, const Piece& piece) const;

  const Services& services_;
  EmbeddingRequest request_;
};

std::unique_ptr<Generation> embed(const Services& services, http::Request request);

}  // namespace quire::api::openai
