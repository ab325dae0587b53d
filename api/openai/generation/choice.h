// One answer in the making: what the engine says on a stream becomes text, tokens, an end and a score.
// Owner   the Generation. Destruction cancels a sequence that still runs.
// Thread  the io thread of its stream.
// Fails   take(): says how the engine gave the sequence up, if it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/openai/generation/request.h"
#include "api/openai/generation/visible_text.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"
#include "core/bridge/token_stream.h"
#include "core/flow/token_event.h"
#include "core/text/detokenizer.h"
#include "core/text/stop_matcher.h"

namespace quire::api::openai {

// The stop string, or the id from stop_token_ids, that ended an answer; nothing for the model's own ends and lengths.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

struct SaidToken {
  TokenId id = -1;
  float logprob = 0.0f;
  std::uint32_t offset = 0;  // code points of the answer's text that the tokens before it made
};

// A run of tokens of one answer, each with its likeliest alternatives.
struct SaidTokens {
  std::span<const SaidToken> tokens;
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

  // Takes what the stream has, so many tokens at most, up to the answer's end. kCancelled or kFailed: the engine gave
  // it up. Else kNone.
  flow::Finish take(std::size_t max_tokens);
  void abort();  // unless it has ended

  const char* finish_reason() const { return finish_reason_; }  // null until it has ended
  const StopReason& stop_reason() const { return stop_reason_; }

  // Since drop_told(); the whole answer where nothing is streamed. What completes a stop string is its last token.
  const std::string& text() const { return text_; }
  SaidTokens tokens() const { return {tokens_, top_, tokens_.empty() ? 0 : top_.size() / tokens_.size()}; }
  void drop_told();
  // All that it has, scores and embedding of its prompt included: where it has ended, and was told for the last time.
  void drop_all();

  std::uint64_t num_tokens() const { return num_tokens_; }  // the one that ended it included
  double mean_logprob() const;                              // 0 of no tokens
  // Of its prompt; once it has said something.
  std::uint32_t cached_tokens() const {
    return finish_reason_ != nullptr || !stream_ ? cached_tokens_ : stream_->cached_tokens();
  }
  // Of its prompt, where it was opened with room for them; null until they are there.
  const bridge::PromptScores* scores() const;
  const bridge::PromptEmbedding* embedding() const;  // likewise

 private:
  void take_token(const flow::TokenEvent& event);
  bool match(std::string_view piece);  // true: a stop string is complete
  void end(const char* reason);

  const GenerationRequest* request_;
  std::shared_ptr<bridge::TokenStream> stream_;  // null once ended, unless it holds scores or an embedding
  text::Detokenizer detokenizer_;
  VisibleText visible_;  // what the matcher looks at
  text::StopMatcher matcher_;
  std::string text_;
  std::vector<SaidToken> tokens_;
  std::vector<flow::Candidate> top_;
  const char* finish_reason_ = nullptr;
  StopReason stop_reason_;
  bool heard_ = false;        // the stream has said something: its scores are there
  std::uint32_t offset_ = 0;  // code points that all tokens so far made
  std::uint64_t num_tokens_ = 0;
  double logprob_sum_ = 0.0;  // of those tokens, where the request asked for it
  std::uint32_t cached_tokens_ = 0;
};

// Which `n` of one prompt's choices are answered, as indices, best first: by mean log probability, ties in their order.
std::vector<std::size_t> ranked(std::span<const Choice> choices, std::size_t n);

}  // namespace quire::api::openai
