// One choice of an answer under way: turns the events of a stream into text, tokens, a finish reason and a score.
// Owner   the Generation. Destruction cancels the sequence if it still runs.
// Thread  the io thread of its stream, or the worker that writes the answer meanwhile.
// Fails   take() returns the engine's reason if the engine gave the sequence up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/generation/visible_text.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"
#include "core/bridge/token_stream.h"
#include "core/flow/token_event.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::api {

// The stop string, or the id from stop_token_ids, that ended an answer; monostate if EOS or the length did.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

struct AnswerToken {
  TokenId id = -1;
  float logprob = 0.0f;
  std::uint32_t offset = 0;  // code points of the answer's text before this token
};

// A run of tokens of one answer, each with its likeliest alternatives.
struct AnswerTokens {
  std::span<const AnswerToken> tokens;
  std::span<const flow::Candidate> top;  // [tokens, num_top] likeliest first; the token itself need not be among them
  std::size_t num_top = 0;

  std::span<const flow::Candidate> top_of(std::size_t i) const { return top.subspan(i * num_top, num_top); }
};

class Choice {
 public:
  // `request` outlives it.
  Choice(std::shared_ptr<bridge::TokenStream> stream, std::shared_ptr<const text::Tokenizer> tokenizer,
         const GenerationRequest& request);
  Choice(Choice&&) = default;
  Choice& operator=(Choice&&) = delete;
  ~Choice();

  // Takes the stream's pending events, at most `max_tokens` tokens, up to the answer's end. Returns kCancelled, kLate,
  // kNoToken or kFailed if the engine gave the sequence up, else kNone.
  flow::Finish take(std::size_t max_tokens);
  void abort();  // cancels its sequence and ends it with "abort", unless it has ended

  const char* finish_reason() const { return finish_reason_; }  // null until it has ended
  const StopReason& stop_reason() const { return stop_reason_; }

  // Text and tokens since the last drop_emitted(); of an answer that is not streamed, all. The last token is the one
  // that completed a stop string.
  const std::string& text() const { return text_; }
  AnswerTokens tokens() const { return {tokens_, top_, tokens_.empty() ? 0 : top_.size() / tokens_.size()}; }
  void drop_emitted();
  // Frees everything, scores and embedding of its prompt included. Called once it has ended and was written completely.
  void drop_all();

  std::uint64_t num_tokens() const { return num_tokens_; }  // including the token that ended it
  double mean_logprob() const;                              // 0 without tokens
  // Cached tokens of its prompt; known once the stream has delivered an event.
  std::uint32_t cached_tokens() const {
    return finish_reason_ != nullptr || !stream_ ? cached_tokens_ : stream_->cached_tokens();
  }
  // Scores of its prompt, if the stream was opened with a buffer for them; null until they are complete.
  const bridge::PromptScores* scores() const;
  const bridge::PromptEmbedding* embedding() const;  // likewise

 private:
  void take_token(const flow::TokenEvent& event);
  bool match(std::string_view delta);  // true: a stop string is complete
  void end(const char* reason);

  const GenerationRequest* request_;
  std::shared_ptr<bridge::TokenStream> stream_;  // null once it has ended, unless it holds scores or an embedding
  text::Detokenizer detokenizer_;
  VisibleText visible_;  // splits off the text that the matcher does not see
  text::StopMatcher matcher_;
  std::string text_;
  std::vector<AnswerToken> tokens_;
  std::vector<flow::Candidate> top_;
  const char* finish_reason_ = nullptr;
  StopReason stop_reason_;
  bool has_output_ = false;   // the stream has delivered an event, so its scores are complete
  std::uint32_t offset_ = 0;  // code points of the text so far
  std::uint64_t num_tokens_ = 0;
  double logprob_sum_ = 0.0;  // of all tokens, if sampling.logprob is set
  std::uint32_t cached_tokens_ = 0;
};

// Indices of the `n` choices of one prompt that are answered: the best by mean log probability, best first, ties in
// their order. If all are answered, they keep their order.
std::vector<std::size_t> ranked(std::span<const Choice> choices, std::size_t n);

}  // namespace quire::api
