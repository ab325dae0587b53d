// Formatter of POST /v1/completions: prompts of text or token ids are answered with choices of text.
// Owner   the Generation. Thread and Fails: see Formatter.
// Source  OpenAI's completions; stop_reason, prompt_logprobs, prompt_token_ids and token_ids of a choice are vLLM's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/completions/completion_request.h"
#include "api/completions/text_logprobs.h"
#include "api/generation/formatter.h"
#include "api/generation/generation.h"
#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api {

class CompletionFormatter final : public Formatter {
 public:
  // `services` outlives the formatter.
  explicit CompletionFormatter(const Services& services) : services_(services) {}

  Result<Done> read(const std::string& body) override;
  const GenerationRequest& request() const override { return request_; }
  Result<std::vector<std::vector<TokenId>>> prompts(Allowance& allowance) override;

  void append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) override;
  Writing write_delta(std::string& events, const AnswerFacts& facts, ChoiceDelta delta) override;
  void append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) override;
  Writing write_whole(std::string& out, const AnswerFacts& facts, std::span<const ChoiceDelta> choice_deltas,
                      Usage usage) override;

 private:
  Result<std::vector<TokenId>> ids_of(const Prompt& prompt, Allowance& allowance) const;
  const std::string& echo_of(const ChoiceDelta& delta);
  std::vector<TokenScore> scores_of(const ChoiceDelta& delta);
  Writing write_choice(std::string& json, const ChoiceDelta& delta);
  void append_usage_so_far(std::string& json, const ChoiceDelta& delta) const;

  const Services& services_;
  CompletionRequest request_;
  // [prompts] with echo: the text to repeat; none: not sent as a text, so decoded from the ids when first needed.
  std::vector<std::optional<std::string>> echoes_;
};

std::unique_ptr<Generation> complete(const Services& services, http::Request request);

}  // namespace quire::api
