// Formatter of POST /v1/embeddings: each input is answered with one vector.
//   body → inputs → token ids → … → hidden states, pooled → {"object":"list","data":[{"embedding":…}]}
// Shape   one body, never a stream; one entry of `data` per input, in order.
// Owner   the Generation. Thread and Fails: see Formatter; an input that is too long for the model is answered 400.
// Source  OpenAI's embeddings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/embeddings/embedding_request.h"
#include "api/generation/formatter.h"
#include "api/generation/generation.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api {

class EmbeddingFormatter final : public Formatter {
 public:
  // `services` outlives the formatter.
  explicit EmbeddingFormatter(const Services& services) : services_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  // Never called: embeddings are not streamed.
  void append_delta(std::string&, const AnswerFacts&, const ChoiceDelta&) override {}
  void append_end(std::string&, const AnswerFacts&, const Usage&) override {}
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                      Usage usage) override;

 private:
  void append_vector(std::string& json, const ChoiceDelta& delta) const;

  const Services& services_;
  EmbeddingRequest request_;
};

std::unique_ptr<Generation> embed(const Services& services, http::Request request);

}  // namespace quire::api
